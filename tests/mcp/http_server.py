"""Serve a registry over HTTP in a thread of the test, and ask it like any client."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from bunko import activity
from bunko.interfaces.http.app import build_app, build_server
from bunko.interfaces.http.listener import open_listening_socket
from bunko.interfaces.http.metrics import ServerMetrics
from bunko.interfaces.tools.registry import ToolRegistry

PATIENCE = 60.0
TOKEN = "a-token-of-this-test"
BEARER = {"Authorization": f"Bearer {TOKEN}"}


class Reply(NamedTuple):
    """A whole answer."""

    status: int
    headers: http.client.HTTPMessage
    text: str


def ask(port: int, path: str, *, method: str = "GET", body: str | None = None, **headers: str) -> Reply:
    """Send a request on a connection of its own."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        connection.request(method, path, body, headers)
        response = connection.getresponse()
        return Reply(response.status, response.headers, response.read().decode())
    finally:
        connection.close()


@contextmanager
def serving(registry: ToolRegistry, *, stateless: bool = False) -> Iterator[int]:
    """Serve a registry while the block runs; yield the port."""
    metrics = ServerMetrics()
    activity.set_listener(metrics)
    app = build_app(registry, token=TOKEN, host="127.0.0.1", stateless=stateless, metrics=metrics)
    server = build_server(app)
    with open_listening_socket("127.0.0.1", 0, allow_remote=False) as listener:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield int(listener.getsockname()[1])
        finally:
            server.should_exit = True
            thread.join(PATIENCE)
            activity.set_listener(None)
