"""Kernels out: Monte Carlo Graph Search over the reasoning graph, its baselines, generators and runner."""
