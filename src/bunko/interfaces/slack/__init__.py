"""Answer in Slack: questions about the library, and commands that change it."""
