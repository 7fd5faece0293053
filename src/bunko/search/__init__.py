"""Answer queries: analyze, rank, fuse, extract passages, cite."""
