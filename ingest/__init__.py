"""Trajectories in: read, check, verify, relabel, merge; and the teacher that makes new ones."""
