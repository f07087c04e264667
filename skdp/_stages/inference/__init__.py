"""Intervals for coefficients: a Newton step from a fit's solution, and its covariance."""
