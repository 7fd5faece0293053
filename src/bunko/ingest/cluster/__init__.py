"""Prepare and embed documents on a Ray cluster."""
