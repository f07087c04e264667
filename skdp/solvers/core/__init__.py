"""Solvers for general use, and reference implementations that belong to none of the five papers."""
