"""Find a library, its files and its settings, before it is opened."""
