"""Tools that need versions of their own: a virtual environment each, and a worker inside it."""
