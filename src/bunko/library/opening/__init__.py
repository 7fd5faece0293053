"""Find, open and configure a library."""
