"""Implement the algorithms of five papers, in a folder for each, which summarises the paper."""
