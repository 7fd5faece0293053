"""Write tools to files, and take such files into a library."""
