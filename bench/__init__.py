"""Benchmarks: each returns tables of figures, next to a peer measured in the same run."""

import os

# A second BLAS thread waits for work by spinning, and its waiting would be counted as everybody's CPU time.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
