"""`bunko serve` with calls that hang in C code and never end: they wait for a byte from a silent server.

`HANG_PORT` is the port of that server, `HANG` names what hangs besides the tool `verify`, and `HANG_CALLS` limits how
many calls run at once.
"""

from __future__ import annotations

import os
import socket
from typing import Any

from bunko.interfaces.cli.commands import serve
from bunko.interfaces.cli.main import main
from bunko.interfaces.mcp import resources, server
from bunko.library.library import Library


def hang(*_: Any, **__: Any) -> Any:
    """Wait for a byte that never comes; no cancellation reaches this."""
    with socket.create_connection(("127.0.0.1", int(os.environ["HANG_PORT"]))) as connection:
        connection.recv(1)


if __name__ == "__main__":
    Library.verify_citation = hang  # type: ignore[method-assign]
    if os.environ.get("HANG") == "resources":
        resources.list_resources = hang
    if os.environ.get("HANG") == "close":
        Library.close = hang  # type: ignore[method-assign]
        serve.CLOSE_SECONDS = 0.2
    if limit := os.environ.get("HANG_CALLS"):
        server.MAX_CALLS = int(limit)
        server.MAX_WAIT_SECONDS = 0.2
    main()
