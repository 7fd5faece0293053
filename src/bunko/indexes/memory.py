"""Rank straight from the rows of a store: the plain reference that other indexes are compared with."""
