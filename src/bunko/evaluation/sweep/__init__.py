"""A judged set and a grid of settings in, the best of its points out, with what questions it never saw say of it."""
