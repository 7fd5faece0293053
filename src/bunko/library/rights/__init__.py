"""What callers of a library, and libraries among documents, may do, and what was done."""
