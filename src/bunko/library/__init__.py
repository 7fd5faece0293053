"""Open a library, search it and keep it up to date: the one door that interfaces use."""
