"""Read rows of every kind, plan a fit, charge for it and run it, on one path."""
