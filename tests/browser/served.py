"""Serve a library with its API and page on loopback, from a thread of the test."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext
from starlette.types import ASGIApp

from bunko.interfaces.http.app import build_app, build_server
from bunko.interfaces.http.listener import open_listening_socket
from bunko.interfaces.http.sessions import LoginLinks
from bunko.interfaces.tools.registry import ToolRegistry
from bunko.library.library import Library
from tests.browser.sample import open_sample

PATIENCE = 60.0
TOKEN = "a token of these tests alone"


@dataclass(frozen=True)
class ServedPage:
    """A server on loopback: where it is, its library, and a session of whoever started it."""

    address: str
    library: Library
    session: str  # as a browser sends it: name=value

    def sign_in(self, context: BrowserContext) -> None:
        """Give a browser the session."""
        name, _, value = self.session.partition("=")
        context.add_cookies(
            [{"name": name, "value": value, "url": self.address, "httpOnly": True, "sameSite": "Strict"}]
        )


@contextmanager
def serve_page(library_folder: Path, wrap: Callable[[ASGIApp], ASGIApp] = lambda app: app) -> Iterator[ServedPage]:
    """Serve a library for as long as the block runs; `wrap` puts something in front of the app."""
    links = LoginLinks()
    with pytest.MonkeyPatch.context() as patch, open_sample(library_folder) as library:
        patch.setenv("XDG_CONFIG_HOME", str(library_folder / "config"))
        app = build_app(ToolRegistry(lambda: library), token=TOKEN, host="127.0.0.1", links=links)
        server = build_server(wrap(app))
        with open_listening_socket("127.0.0.1", 0, allow_remote=False) as listener:
            thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
            thread.start()
            try:
                port = int(listener.getsockname()[1])
                yield ServedPage(f"http://127.0.0.1:{port}", library, _follow_link(port, links.create()))
            finally:
                server.should_exit = True
                thread.join(PATIENCE)


def _follow_link(port: int, token: str) -> str:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        connection.request("GET", f"/login?token={token}")
        response = connection.getresponse()
        assert response.status == 303, response.read()
        return response.headers["Set-Cookie"].partition(";")[0]
    finally:
        connection.close()
