"""The corpus of the demonstration model: pairs of code that are right by construction.

A *family* draws a random program and renders it in a *state* (which techniques were applied, each with its
*idiom*); a technique changes the state. ``samples`` puts two such pairs into the prompts of ``search/prompts/``.
"""
