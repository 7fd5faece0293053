"""Ways into a library for people and assistants; they hold no logic."""
