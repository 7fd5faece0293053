"""Sweep a grid of settings over a judged set."""
