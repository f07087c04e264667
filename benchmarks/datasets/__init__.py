"""Data sets: each module has NAME and load(seed) -> Split, or raises Unavailable."""
