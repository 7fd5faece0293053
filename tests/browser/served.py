"""Serve the page of a library on loopback, from a thread of the test."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bunko.interfaces.http.app import build_server
from bunko.interfaces.http.listener import open_listening_socket
from bunko.interfaces.page.app import build_page
from bunko.interfaces.tools.registry import ToolRegistry
from tests.browser.sample import open_sample

PATIENCE = 60.0


@dataclass(frozen=True)
class ServedPage:
    """Where the page is."""

    address: str


@contextmanager
def serve_page(library_folder: Path) -> Iterator[ServedPage]:
    """Serve the page of a library for as long as the block runs."""
    registry = ToolRegistry(lambda: open_sample(library_folder))
    server = build_server(build_page(registry))
    with open_listening_socket("127.0.0.1", 0, allow_remote=False) as listener:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield ServedPage(f"http://127.0.0.1:{listener.getsockname()[1]}")
        finally:
            server.should_exit = True
            thread.join(PATIENCE)
            registry.close()
