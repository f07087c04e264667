"""Implement the algorithms of five papers, in a folder for each, which summarises the paper.

Excesses that purposes quote are medians of ``benchmarks/papers/results/next_to_gd.csv``.
"""
