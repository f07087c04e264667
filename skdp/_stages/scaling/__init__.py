"""Estimate range, centre and size of columns from private histograms.

``stage`` requests a histogram of magnitudes, and others in bins of ever better ranges, with the
budget of ``shares``. It tests the ranges again halfway through a solver's steps. ``distributions``
has the table of candidates, and their posterior given such histograms, ``estimates`` the range,
mean and scale that follow from it. ``refinements`` are the cases that a posterior cannot decide.
"""
