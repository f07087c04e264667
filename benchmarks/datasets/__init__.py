"""Data sets: each module has load(seed) -> Split in raw columns, or raises Unavailable."""
