"""Find the definitions of source code; `definitions` runs this file in a process of its own.

A request is a media type, a line end and the text.
"""

from __future__ import annotations

import sys

from bunko.readers.code import LANGUAGES_BY_TYPE
from bunko.readers.definitions import parse_definitions
from bunko.readers.helper_process import limit_memory, read_request, write_message


def main(max_bytes: int) -> None:
    """Answer requests until stdin ends; a tree takes about 50 times the bytes of its text."""
    limit_memory(max_bytes)
    requests, answers = sys.stdin.buffer, sys.stdout.buffer
    while (request := read_request(requests)) is not None:
        media_type, _, data = request.partition(b"\n")
        definitions = parse_definitions(data, LANGUAGES_BY_TYPE[media_type.decode()])
        write_message(answers, {"end": list(definitions)})
        answers.flush()


if __name__ == "__main__":
    main(int(sys.argv[1]))
