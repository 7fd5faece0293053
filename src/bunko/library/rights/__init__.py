"""What each caller of a library may do, and what it did."""
