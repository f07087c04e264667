"""Solvers of five papers, a folder for each, whose docstring says what the paper proves."""
