"""Where documents come from: a place on disk or on the web comes in, entries and their bytes go out."""
