"""Headline experiments of the papers, one module each: `python -m benchmarks.papers.h22`."""
