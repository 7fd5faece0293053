"""Serve MCP over streamable HTTP: on loopback by default, with a token, and closed to other web sites."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import uvicorn
from mcp.server.transport_security import TransportSecuritySettings
from starlette.types import ASGIApp

from bunko.activity import set_listener
from bunko.interfaces.http.authorization import Authorizer, TokenGuard
from bunko.interfaces.http.client_logs import limit_client_logs
from bunko.interfaces.http.connections import LimitedConnection
from bunko.interfaces.http.endpoints import CountRequests, Endpoint, MetricsPage, answer_health, answer_readiness
from bunko.interfaces.http.listener import LOOPBACK_HOSTS
from bunko.interfaces.http.metrics import ServerMetrics
from bunko.interfaces.http.readiness import Readiness
from bunko.interfaces.mcp.server import BunkoServer
from bunko.interfaces.tools.registry import ToolRegistry

_MAX_SESSIONS = 1000  # of clients that went away without ending theirs
_SESSION_IDLE_SECONDS = 1800.0
_MAX_HEADER_BYTES = 16_384
_KEEP_ALIVE_SECONDS = 5  # between two requests
_BACKLOG = 128  # connections that wait to be accepted
_SHUTDOWN_SECONDS = 5  # for calls that still run


def build_app(
    registry: ToolRegistry,
    *,
    token: str,
    host: str,
    allowed_hosts: Sequence[str] = (),
    stateless: bool = False,
    metrics: ServerMetrics | None = None,
) -> ASGIApp:
    """Return the ASGI app, which checks the token, then Host and Origin, before it handles a request.

    A stateless app keeps no sessions, so that any of several processes can answer each request.
    """
    host_names = [*LOOPBACK_HOSTS, *allowed_hosts, *([host] if host not in ("0.0.0.0", "::") else [])]
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
    inner = BunkoServer(registry, is_local=False, keeps_sessions=not stateless).streamable_http_app(
        transport_security=security, host=host, max_sessions=_MAX_SESSIONS, session_idle_timeout=_SESSION_IDLE_SECONDS,
        stateless_http=stateless,
    )  # fmt: skip
    metrics, readiness = metrics or ServerMetrics(), Readiness(registry)
    # Behind the token: from behind a proxy on the same machine, every client seems to be on loopback.
    app: ASGIApp = Endpoint(inner, security, "/metrics", MetricsPage(metrics, registry, readiness).answer)
    app = TokenGuard(app, Authorizer(registry, token))
    # In front of it: load balancers have no token. They learn nothing but a sentence that names nothing.
    app = Endpoint(app, security, "/readyz", partial(answer_readiness, readiness))
    app = Endpoint(app, security, "/healthz", answer_health)
    return CountRequests(app, metrics)


def serve_http(
    registry: ToolRegistry,
    listener: socket.socket,
    *,
    token: str,
    host: str,
    allowed_hosts: Sequence[str],
    shared_folder: Path | None = None,
) -> None:
    """Serve HTTP clients on a listening socket until stopped.

    One of several workers, which share the socket and a folder for their metrics, keeps no sessions.
    """
    metrics = ServerMetrics(shared_folder)
    app = build_app(
        registry, token=token, host=host, allowed_hosts=allowed_hosts, stateless=shared_folder is not None,
        metrics=metrics,
    )  # fmt: skip
    set_listener(metrics)
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
    limit_client_logs()
    return uvicorn.Server(config)
