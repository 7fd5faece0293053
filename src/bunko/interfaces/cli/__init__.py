"""The command line: commands for people, JSON for scripts."""
