"""Ways into a library for people, programs and assistants: read a request, call the library, show what it returns."""
