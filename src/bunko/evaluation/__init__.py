"""Measure how well searches answer judged queries."""
