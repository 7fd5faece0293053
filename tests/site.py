"""Run a web site on loopback that records every request, for tests."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from time import monotonic
from types import TracebackType
from typing import Any, Self


@dataclass(frozen=True)
class Asked:
    """One request as it came; header names are in small letters, `time` is monotonic."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    time: float


@dataclass(frozen=True)
class Raw:
    """Bytes that are written to the connection as they are, status line and all; then it is closed."""

    parts: Iterable[bytes]


Headers = Mapping[str, str] | Iterable[tuple[str, str]]
# A body in parts is sent as chunks, each as soon as it is there.
Reply = tuple[int, Headers, bytes | Iterable[bytes]] | Raw
Answer = Reply | Callable[[Asked], Reply]


def html(body: str, status: int = 200, *, charset: str = "utf-8", **headers: str) -> Reply:
    """Return the answer that holds a page; `last_modified="…"` becomes the header Last-Modified."""
    named = {name.replace("_", "-").title(): value for name, value in headers.items()}
    return status, {"Content-Type": f"text/html; charset={charset}", **named}, body.encode(charset)


def text(body: str, status: int = 200, kind: str = "text/plain") -> Reply:
    """Return the answer that holds a text: a robots.txt, a sitemap."""
    return status, {"Content-Type": f"{kind}; charset=utf-8"}, body.encode()


class _Server(ThreadingHTTPServer):
    daemon_threads = False
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass  # whoever asked hung up, which is what many tests are about


class Site:
    """A real threaded server; pages may be added or changed while it runs, and one that is not there is a 404.

    `released` is set when the site closes: a page that should never end waits on it.
    """

    def __init__(
        self, pages: Mapping[str, Answer] | None = None, *, tls: ssl.SSLContext | None = None, port: int = 0
    ) -> None:
        self.pages: dict[str, Answer] = dict(pages or {})
        self.asked: list[Asked] = []
        self.connections = 0
        self.released = threading.Event()
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        site = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True
            wbufsize = -1

            def setup(self) -> None:
                with site._lock:
                    site.connections += 1
                    site._open.add(self.request)
                if isinstance(self.request, ssl.SSLSocket):
                    self.request.do_handshake()
                super().setup()

            def finish(self) -> None:
                with site._lock:
                    site._open.discard(self.request)
                with suppress(OSError):
                    super().finish()

            def _answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                headers = {name.lower(): value for name, value in self.headers.items()}
                asked = Asked(self.command, self.path, headers, body, monotonic())
                with site._lock:
                    site.asked.append(asked)
                    answer = site.pages.get(self.path) or site.pages.get(self.path.partition("?")[0])
                reply = answer(asked) if callable(answer) else answer
                site._send(self, reply or text("There is no such page.", 404))

            do_GET = do_POST = do_HEAD = _answer  # noqa: N815

            def log_message(self, *_: object) -> None:
                pass

        self._server = _Server(("127.0.0.1", port), Handler)
        self.port: int = self._server.server_address[1]
        self.host = f"127.0.0.1:{self.port}"
        self.address = f"{'https' if tls else 'http'}://{self.host}"
        if tls:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    def url(self, path: str = "/") -> str:
        """Return the whole address of a path."""
        return self.address + path

    @property
    def paths(self) -> list[str]:
        """The paths asked for, in order."""
        return [asked.path for asked in self.asked]

    def _send(self, handler: BaseHTTPRequestHandler, reply: Reply) -> None:
        with suppress(OSError):
            if isinstance(reply, Raw):
                handler.close_connection = True
                for part in reply.parts:
                    handler.wfile.write(part)
                    handler.wfile.flush()
                return
            status, headers, body = reply
            named = list(headers.items() if isinstance(headers, Mapping) else headers)
            names = {name.lower() for name, _ in named}
            handler.send_response(status)
            for name, value in named:
                handler.send_header(name, value)
            if isinstance(body, bytes):
                if "content-length" not in names and status != 304:
                    handler.send_header("Content-Length", str(len(body)))
                handler.end_headers()
                if handler.command != "HEAD" and status != 304:
                    handler.wfile.write(body)
                return
            handler.send_header("Transfer-Encoding", "chunked")
            handler.end_headers()
            handler.wfile.flush()
            for part in body:
                handler.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
                handler.wfile.flush()
            handler.wfile.write(b"0\r\n\r\n")

    def close(self) -> None:
        """Hang up on everybody and stop."""
        self.released.set()
        self._server.shutdown()
        with self._lock:
            for connection in self._open:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
        self._server.server_close()
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
