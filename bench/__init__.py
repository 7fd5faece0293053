"""Benchmarks; each returns tables of figures, beside a peer measured in the same run."""

import os

# A second BLAS thread spins while it waits for work, and that would count as CPU time of every step.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
