"""Serve a small library in two languages as people do, and ask it as programs and browsers do."""

from __future__ import annotations

import http.client
import socket
import threading
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import uvicorn

from bunko.interfaces.http.app import build_app, build_server
from bunko.interfaces.http.listener import open_listening_socket
from bunko.interfaces.http.monitoring import ServerMetrics
from bunko.interfaces.http.parts import ALL_PARTS, Part
from bunko.interfaces.http.sessions import LoginLinks
from bunko.interfaces.tools.registry import ToolRegistry
from bunko.library.library import Library
from bunko.library.open import open_library
from bunko.library.opening.paths import locate_library
from bunko.library.rights.identity_provider import IdentityProvider
from bunko.runtime import activity
from bunko.settings.schema import SignInSection

PATIENCE = 60.0
TOKEN = "the-token-of-this-server"
BEARER = {"Authorization": f"Bearer {TOKEN}"}
EXAMPLES = Path(__file__).parents[2] / "examples" / "library"


class Reply(NamedTuple):
    """A whole answer."""

    status: int
    headers: http.client.HTTPMessage
    text: str


def ask(port: int, path: str, *, method: str = "GET", body: str | bytes | None = None, **headers: str) -> Reply:
    """Send a request on a connection of its own."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        connection.request(method, path, body, headers)
        response = connection.getresponse()
        return Reply(response.status, response.headers, response.read().decode())
    finally:
        connection.close()


@dataclass(frozen=True)
class Site:
    """A server on loopback: where it is, its library, and a session of whoever started it."""

    port: int
    library: Library
    links: LoginLinks
    session: str = ""  # as a browser sends it: name=value

    @property
    def address(self) -> str:
        """Where it is, as browsers say: without a path."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def login_address(self) -> str:
        """An address that signs a browser in, once."""
        return f"{self.address}/login?token={self.links.create()}"

    def ask(self, path: str, *, method: str = "GET", body: str | bytes | None = None, **headers: str) -> Reply:
        """Send a request with no session and no token."""
        return ask(self.port, path, method=method, body=body, **headers)

    def visit(self, path: str, **headers: str) -> Reply:
        """Send what a browser with a session sends."""
        return self.ask(path, **{"Accept": "text/html", "Cookie": self.session, **headers})

    def call(self, path: str, *, method: str = "GET", body: str | bytes | None = None, **headers: str) -> Reply:
        """Send what a program with the server's token sends."""
        return self.ask(path, method=method, body=body, **{**BEARER, **headers})


@contextmanager
def serve_app(registry: ToolRegistry, *, sign_in: Mapping[str, Any] | None = None, **options: Any) -> Iterator[int]:
    """Serve a registry in a thread while the block runs; yield the port. `sign_in` are settings."""
    metrics = ServerMetrics()
    activity.set_listener(metrics)
    with open_listening_socket("127.0.0.1", 0, allow_remote=False) as listener:
        port = int(listener.getsockname()[1])
        if sign_in is not None:
            section = SignInSection(**{"url": f"http://127.0.0.1:{port}", **sign_in})
            options["provider"] = IdentityProvider(section)
        server = build_server(build_app(registry, token=TOKEN, host="127.0.0.1", metrics=metrics, **options))
        try:
            with run_in_thread(server, listener):
                yield port
        finally:
            activity.set_listener(None)


@contextmanager
def run_in_thread(server: uvicorn.Server, listener: socket.socket) -> Iterator[threading.Thread]:
    """Run a server while the block runs; its error is raised here, where it belongs, and not in a later test."""
    errors: list[BaseException] = []

    def run() -> None:
        try:
            server.run(sockets=[listener])
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield thread
    finally:
        server.should_exit = True
        thread.join(PATIENCE)
    if errors:
        raise errors[0]


@contextmanager
def serve_site(
    folder: Path,
    *,
    parts: Collection[Part] = ALL_PARTS,
    documents: Path = EXAMPLES,
    environ: Mapping[str, str] | None = None,
    requests_per_second: float = 1000.0,
    sign_in: Mapping[str, Any] | None = None,
) -> Iterator[Site]:
    """Serve a library in this folder, with some documents as a tool called `notes`, while the block runs."""
    links = LoginLinks()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CONFIG_HOME", str(folder / "config"))
        patch.setenv("XDG_DATA_HOME", str(folder / "data"))
        with open_library(locate_library(library=folder / "library", environ={}), environ=environ or {}) as library:
            library.add(documents, name="notes", description="Notes, decisions and recipes of a small team.")
            library.import_("notes")
            options = {"links": links, "parts": parts, "requests_per_second": requests_per_second}
            with serve_app(ToolRegistry(lambda: library), sign_in=sign_in, **options) as port:
                site = Site(port, library, links)
                yield Site(port, library, links, follow_link(site) if "page" in parts else "")


def follow_link(site: Site) -> str:
    """Follow a link that works once; return the session as a browser sends it."""
    reply = site.ask(site.login_address.removeprefix(site.address))
    assert reply.status == 303, reply.text
    return reply.headers["Set-Cookie"].partition(";")[0]
