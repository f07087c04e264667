"""Estimate range, centre and size of columns from private histograms."""
