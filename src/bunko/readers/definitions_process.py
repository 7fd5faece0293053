"""Find the definitions of source code; `definitions` runs this file in a process of its own.

A request is a media type, a line end and the text.
"""

from __future__ import annotations

import sys

from bunko.readers.code import LANGUAGES_BY_TYPE
from bunko.readers.definitions import parse_definitions
from bunko.readers.helper_process import limit_memory, read_request, write_message

_MAX_MEMORY_BYTES = 1 << 30  # a tree takes about 50 times the bytes of its text


def main() -> None:
    """Answer requests until stdin ends."""
    limit_memory(_MAX_MEMORY_BYTES)
    requests, answers = sys.stdin.buffer, sys.stdout.buffer
    while (request := read_request(requests)) is not None:
        media_type, _, data = request.partition(b"\n")
        definitions = parse_definitions(data, LANGUAGES_BY_TYPE[media_type.decode()])
        write_message(answers, {"end": list(definitions)})
        answers.flush()


if __name__ == "__main__":
    main()
