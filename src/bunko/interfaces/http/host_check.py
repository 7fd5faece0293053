"""Refuse requests under a foreign name of this machine, and those that pages of other sites send."""

from __future__ import annotations

import re
from collections.abc import Sequence

from mcp.server.transport_security import TransportSecurityMiddleware, TransportSecuritySettings
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from bunko.interfaces.http.listener import LOOPBACK_HOSTS
from bunko.interfaces.http.refusals import refuse

_WRONG_HOST = "This server does not answer under this name"
WRONG_ORIGIN = "Pages of other sites may not use this server"
# The SDK takes whatever follows a name and a colon for a port.
_AUTHORITY = re.compile(r"(\[[^\]]*\]|[^:]*)(:[0-9]{1,5})?")
_HINT = "Whoever runs it can allow the name in the setting serve.allowed_hosts."


def allowed_addresses(host: str, allowed_hosts: Sequence[str]) -> TransportSecuritySettings:
    """Return the values of Host and Origin that a server accepts."""
    host_names = [*LOOPBACK_HOSTS, *allowed_hosts, *([host] if host not in ("0.0.0.0", "::") else [])]
    authorities = [f"[{name}]" if ":" in name else name for name in dict.fromkeys(host_names)]
    # Always set: without it the SDK checks nothing if the host is not a loopback name.
    return TransportSecuritySettings(
        enable_dns_rebinding_protection=True,
        allowed_hosts=[*(f"{authority}:*" for authority in authorities), *authorities],
        allowed_origins=[
            f"{scheme}://{authority}{port}"
            for scheme in ("http", "https")
            for authority in authorities
            for port in ("", ":*")
        ],
    )


class HostCheck:
    """Lets through only requests whose Host and Origin are names of this server: others are answered 421 and 403."""

    def __init__(self, app: ASGIApp, addresses: TransportSecuritySettings) -> None:
        self._app, self._check = app, TransportSecurityMiddleware(addresses)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        if scope["type"] == "http" and (status := await self._find_refusal(Request(scope))) is not None:
            code, message = ("wrong_host", _WRONG_HOST) if status == 421 else ("wrong_origin", WRONG_ORIGIN)
            await refuse(scope, status, code, message, _HINT)(scope, receive, send)
            return
        await self._app(scope, receive, send)

    async def _find_refusal(self, request: Request) -> int | None:
        if not _AUTHORITY.fullmatch(request.headers.get("host", "")):
            return 421
        refused = await self._check.validate_request(request)
        return None if refused is None else refused.status_code
