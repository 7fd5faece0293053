"""Benchmarks: each prints a table of ratios to a peer measured in the same run."""
