"""Check, describe and maintain a library."""
