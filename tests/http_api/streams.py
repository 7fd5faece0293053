"""Read server-sent events from a real server."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

PATIENCE = 30.0


class EventStream:
    """The events of a server, in the order in which they come."""

    def __init__(self, response: http.client.HTTPResponse) -> None:
        self.response = response

    def next(self, *names: str) -> tuple[str, Any]:
        """Return the next event with one of these names, or the next comment if the name is empty."""
        lines: list[str] = []
        while True:
            line = self.response.readline().decode()
            assert line, "the stream has ended"
            if line != "\n":
                lines.append(line.rstrip("\n"))
                continue
            fields = dict(text.split(": ", 1) for text in lines if not text.startswith(":"))
            name = fields.get("event", "comment" if lines and lines[0].startswith(":") else "")
            if name in names:
                return name, json.loads(fields.get("data", "null"))
            lines = []


@contextmanager
def open_events(port: int, token: str) -> Iterator[EventStream]:
    """Listen until the block ends."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        connection.request("GET", "/api/v1/events", headers={"Authorization": f"Bearer {token}"})
        yield EventStream(connection.getresponse())
    finally:
        connection.close()
