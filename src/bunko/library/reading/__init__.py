"""Find, list and read the documents of a library."""
