"""The command line: nouns and verbs for people, JSON for scripts."""
