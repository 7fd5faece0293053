"""Send requests to the API in memory, as a caller that was checked before."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import urlencode

import anyio

from bunko.interfaces.api.app import build_api
from bunko.interfaces.sender import ClientIdentity
from bunko.interfaces.tools.registry import ToolRegistry
from bunko.library.library import Library
from bunko.types.access import ALL_RIGHTS, Caller, Rights

EVERYTHING = Caller("tester", "http", ALL_RIGHTS)


class Reply(NamedTuple):
    """A whole answer."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class ApiClient:
    """A client of the API over a library."""

    def __init__(
        self, library: Library, caller: Caller = EVERYTHING, *, is_local: bool = False, read_only: bool = False
    ) -> None:
        self.registry = ToolRegistry(lambda: library, read_only=read_only)
        self.caller, self._is_local = caller, is_local
        self._app = build_api(self.registry)

    def limited_to(self, *, read: tuple[str, ...] = (), write: tuple[str, ...] = ()) -> ApiClient:
        """Return a client whose token has other rights, to the same server."""
        client = object.__new__(ApiClient)
        client.registry, client._app, client._is_local = self.registry, self._app, self._is_local
        client.caller = Caller("limited", "http", Rights(read, write))
        return client

    def get(self, path: str, /, headers: Any = None, **query: Any) -> Reply:
        return self.send("GET", path, headers=headers, **query)

    def post(self, path: str, /, body: Any = None, **query: Any) -> Reply:
        return self.send("POST", path, body=body, **query)

    def send(
        self,
        method: str,
        path: str,
        /,
        *,
        body: Any = None,
        content: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        **query: Any,
    ) -> Reply:
        """Send a request; a body that is given is sent as JSON."""
        sent = {"host": "localhost"} | dict(headers or {})
        if body is not None:
            content, sent = json.dumps(body).encode(), {"content-type": "application/json"} | sent
        raw_path = path if path.startswith("/api") else f"/api/v1{path}"
        scope = {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method, "scheme": "http",
            "path": raw_path, "raw_path": raw_path.encode(), "root_path": "",
            "query_string": urlencode(query, doseq=True).encode(),
            "headers": [(name.lower().encode(), value.encode()) for name, value in sent.items()],
            "client": ("127.0.0.1", 50000), "server": ("127.0.0.1", 8765),
            "bunko.identity": ClientIdentity(self.caller, is_local_user=self._is_local),
        }  # fmt: skip
        messages: list[Any] = []

        async def receive() -> Any:
            return {"type": "http.request", "body": content or b"", "more_body": False}

        async def send(message: Any) -> None:
            messages.append(message)

        anyio.run(self._app, scope, receive, send)
        start = messages[0]
        got = {name.decode(): value.decode() for name, value in start["headers"]}
        return Reply(start["status"], got, b"".join(message.get("body", b"") for message in messages[1:]))
