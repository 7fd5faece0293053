"""Judged questions in, how well a search answers them out."""
