"""Show the library in a browser: pages rendered here, with small scripts of our own."""
