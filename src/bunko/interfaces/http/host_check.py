"""Refuse requests under a foreign name of this machine, and those that pages of other sites send."""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Sequence

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from bunko.interfaces.http.client_logs import CLIENT_LOG
from bunko.interfaces.http.refusals import refuse
from bunko.interfaces.sender import LOOPBACK_HOSTS

_log = logging.getLogger(CLIENT_LOG)

_WRONG_HOST = "This server does not answer under this name"
WRONG_ORIGIN = "Pages of other sites may not use this server"
_PORT = r"(?::[0-9]{1,5})?"
_HOST = re.compile(rf"(\[[^\]]*\]|[^:]*){_PORT}")
_ORIGIN = re.compile(rf"https?://(\[[^\]]*\]|[^:]*){_PORT}")
_HINT = "Whoever runs it can allow the name in the setting serve.allowed_hosts."


def allowed_names(host: str, allowed_hosts: Sequence[str]) -> frozenset[str]:
    """Return the names that a server answers to, as a URL writes them; any port and scheme will do."""
    host_names = [*LOOPBACK_HOSTS, *allowed_hosts, *([host] if host not in ("0.0.0.0", "::") else [])]
    return frozenset(f"[{name}]" if ":" in name else name for name in host_names)


class HostCheck:
    """Lets through only requests whose Host and Origin are names of this server: others are answered 421 and 403."""

    def __init__(self, app: ASGIApp, names: Collection[str]) -> None:
        self._app, self._names = app, names

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        if scope["type"] == "http":
            headers = Headers(scope=scope)
            host, origin = headers.get("host", ""), headers.get("origin", "")
            if not self._is_allowed(_HOST, host):
                _log.warning("Invalid Host header: %s", host)
                await refuse(scope, 421, "wrong_host", _WRONG_HOST, _HINT)(scope, receive, send)
                return
            if origin and not self._is_allowed(_ORIGIN, origin):
                _log.warning("Invalid Origin header: %s", origin)
                await refuse(scope, 403, "wrong_origin", WRONG_ORIGIN, _HINT)(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _is_allowed(self, form: re.Pattern[str], text: str) -> bool:
        match = form.fullmatch(text)
        return match is not None and match[1] in self._names
