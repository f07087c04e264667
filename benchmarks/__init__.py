"""Benchmarks of skdp: accuracy at a given budget, and speed as ratios in one run."""
