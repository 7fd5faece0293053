"""Open a library, search it and keep it up to date; interfaces use only this package."""
