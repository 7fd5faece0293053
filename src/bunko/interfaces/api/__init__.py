"""Answer HTTP requests with JSON: the API under /api/v1."""
