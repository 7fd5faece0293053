"""Answer programs in JSON, under /api/v1."""
