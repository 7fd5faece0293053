"""Serve MCP over streamable HTTP: on loopback by default, with a token, and closed to other web sites."""

from __future__ import annotations

import socket
from collections.abc import Sequence

import uvicorn
from mcp.server.transport_security import TransportSecuritySettings
from starlette.types import ASGIApp

from bunko.errors import SettingsError
from bunko.interfaces.mcp.authorization import Authorizer, TokenGuard
from bunko.interfaces.mcp.connections import LimitedConnection
from bunko.interfaces.mcp.server import BunkoServer
from bunko.interfaces.tools.registry import ToolRegistry

_LOOPBACK_HOSTS = ("127.0.0.1", "localhost", "::1")
_MAX_SESSIONS = 1000  # of clients that went away without ending theirs
_SESSION_IDLE_SECONDS = 1800.0
_MAX_HEADER_BYTES = 16_384
_KEEP_ALIVE_SECONDS = 5  # between two requests
_BACKLOG = 128  # connections that wait to be accepted
_SHUTDOWN_SECONDS = 5  # for calls that still run


def build_app(registry: ToolRegistry, *, token: str, host: str, allowed_hosts: Sequence[str] = ()) -> ASGIApp:
    """Return the ASGI app, which checks the token, then Host and Origin, before it handles a request."""
    host_names = [*_LOOPBACK_HOSTS, *allowed_hosts, *([host] if host not in ("0.0.0.0", "::") else [])]
    authorities = [f"[{name}]" if ":" in name else name for name in dict.fromkeys(host_names)]
    # Always set: without it the SDK checks nothing if the host is not a loopback name.
    security = TransportSecuritySettings(
        enable_dns_rebinding_protection=True,
        allowed_hosts=[*(f"{authority}:*" for authority in authorities), *authorities],
        allowed_origins=[
            f"{scheme}://{authority}{port}"
            for scheme in ("http", "https")
            for authority in authorities
            for port in ("", ":*")
        ],
    )
    inner = BunkoServer(registry, is_local=False).streamable_http_app(
        transport_security=security, host=host, max_sessions=_MAX_SESSIONS, session_idle_timeout=_SESSION_IDLE_SECONDS
    )
    return TokenGuard(inner, Authorizer(registry, token))


def open_listening_socket(host: str, port: int, *, allow_remote: bool) -> socket.socket:
    """Return a listening socket; port 0 selects a free port."""
    if host not in _LOOPBACK_HOSTS and not allow_remote:
        raise SettingsError(
            f"Listening on {host} would accept connections from other machines",
            hint="Add --allow-remote if you want this, and put a TLS proxy in front of it.",
        )
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        raise SettingsError(
            f"Cannot listen on {host}, port {port}: {error.strerror}", hint="Choose another --host or --port."
        ) from error


def serve_http(
    registry: ToolRegistry, listener: socket.socket, *, token: str, host: str, allowed_hosts: Sequence[str]
) -> None:
    """Serve HTTP clients on a listening socket until stopped."""
    app = build_app(registry, token=token, host=host, allowed_hosts=allowed_hosts)
    build_server(app).run(sockets=[listener])


def build_server(app: ASGIApp) -> uvicorn.Server:
    """Return the server of an app, with limits for its clients."""
    # h11 is always installed and trims header values as HTTP requires; httptools, which may be installed, does not.
    config = uvicorn.Config(
        app,
        http=LimitedConnection,
        ws="none",
        h11_max_incomplete_event_size=_MAX_HEADER_BYTES,
        backlog=_BACKLOG,
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=_SHUTDOWN_SECONDS,
        log_level="warning",
        access_log=False,
    )
    return uvicorn.Server(config)
