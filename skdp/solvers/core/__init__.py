"""Provide solvers for general use, and reference solvers of other than the five papers."""
