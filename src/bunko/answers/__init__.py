"""Find the sources of an answer, and verify what it says by them."""
