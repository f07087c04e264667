"""Data sets: each module has load(seed) -> Split in raw columns, or raises Unavailable.

One with ON_DEMAND = True is run only by name.
"""
