"""Serve MCP, the API and the page over HTTP: on loopback by default, with a token, and closed to other web sites."""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable, Collection, Sequence
from functools import partial
from pathlib import Path

import uvicorn
from starlette.types import ASGIApp

from bunko.interfaces.http.authorization import Authorizer, TokenGuard
from bunko.interfaces.http.connections import LimitedConnection
from bunko.interfaces.http.guards import (
    BodyLimit,
    HostCheck,
    RateLimit,
    ResponseHeaders,
    allowed_names,
    limit_client_logs,
)
from bunko.interfaces.http.monitoring import (
    CountRequests,
    MetricsPage,
    PathEndpoint,
    Readiness,
    ServerMetrics,
    answer_health,
    answer_readiness,
)
from bunko.interfaces.http.parts import ALL_PARTS, Part, PartRouter
from bunko.interfaces.http.provider import METADATA_PATHS, ProviderUsers
from bunko.interfaces.http.sessions import LoginLinks
from bunko.interfaces.http.sign_in import SignIn
from bunko.interfaces.tools.registry import ToolRegistry
from bunko.library.rights.identity_provider import IdentityProvider
from bunko.runtime.activity import set_listener

_MAX_HEADER_BYTES = 16_384
KEEP_ALIVE_SECONDS = 5  # between two requests
_BACKLOG = 128  # connections that wait to be accepted
SHUTDOWN_SECONDS = 5  # for calls that still run
_DRAIN_SECONDS = 30  # the same in one of several workers; their supervisor waits less if all of them end


def build_app(
    registry: ToolRegistry,
    *,
    token: str,
    host: str,
    allowed_hosts: Sequence[str] = (),
    parts: Collection[Part] = ALL_PARTS,
    stateless: bool = False,
    metrics: ServerMetrics | None = None,
    links: LoginLinks | None = None,
    requests_per_second: float = 0.0,
    provider: IdentityProvider | None = None,
) -> ASGIApp:
    """Return the ASGI app with its parts, behind the checks of Host and Origin and then of the token or session.

    A stateless app keeps no sessions of MCP, so that any of several processes can answer each request. `links` lets
    the user who started the process sign in, and `provider` those whom it knows. Without `requests_per_second`, callers
    may send as many as they like.
    """
    metrics, readiness = metrics or ServerMetrics(), Readiness(registry)
    users = ProviderUsers(provider) if provider is not None else None
    authorizer = Authorizer(registry, token, links, users)
    app: ASGIApp = PartRouter(_build_parts(registry, parts, stateless=stateless))
    # Behind the token: from behind a proxy on the same machine, every client seems to be on loopback.
    app = PathEndpoint(app, "/metrics", MetricsPage(metrics, registry, readiness).answer)
    if requests_per_second:
        app = RateLimit(app, requests_per_second)
    if "page" in parts:
        from bunko.interfaces.page.app import sign_in_page

        page = partial(sign_in_page, provider=provider)
        app = TokenGuard(app, authorizer, public_path="/assets/", sign_in=page)
        app = SignIn(app, authorizer, partial(page, next_path="/"))
    else:
        app = TokenGuard(app, authorizer)
    app = BodyLimit(app)
    # In front of it: load balancers have no token. They learn nothing but a sentence that names nothing.
    app = PathEndpoint(app, "/readyz", partial(answer_readiness, readiness))
    app = PathEndpoint(app, "/healthz", answer_health)
    if users is not None:
        for path in METADATA_PATHS:
            app = PathEndpoint(app, path, users.answer_metadata)
        allowed_hosts = [*allowed_hosts, users.provider.host]
    return CountRequests(ResponseHeaders(HostCheck(app, allowed_names(host, allowed_hosts))), metrics)


def _build_parts(registry: ToolRegistry, names: Collection[Part], *, stateless: bool) -> dict[Part, ASGIApp]:
    """Return the parts that are on; what the others need is not even imported."""
    parts: dict[Part, ASGIApp] = {}
    if "mcp" in names:
        from bunko.interfaces.mcp.server import BunkoServer
        from bunko.interfaces.mcp.streamable_http import build_mcp

        parts["mcp"] = build_mcp(BunkoServer(registry, keeps_sessions=not stateless), stateless=stateless)
    if "api" in names:
        from bunko.interfaces.api.app import build_api

        parts["api"] = build_api(registry)
    if "page" in names:
        from bunko.interfaces.page.app import build_page

        parts["page"] = build_page(registry)
    return parts


def serve_http(
    registry: ToolRegistry,
    listener: socket.socket,
    *,
    token: str,
    host: str,
    allowed_hosts: Sequence[str] = (),
    parts: Collection[Part] = ALL_PARTS,
    shared_folder: Path | None = None,
    links: LoginLinks | None = None,
    requests_per_second: float = 0.0,
    provider: IdentityProvider | None = None,
    note_ready: Callable[[], None] = lambda: None,
) -> None:
    """Serve HTTP clients on a listening socket until stopped.

    One of several workers, which share the socket and a folder for their metrics, keeps no sessions of MCP. It calls
    `note_ready` once it can answer searches.
    """
    metrics = ServerMetrics(shared_folder)
    app = build_app(
        registry, token=token, host=host, allowed_hosts=allowed_hosts, parts=parts,
        stateless=shared_folder is not None, metrics=metrics, links=links, requests_per_second=requests_per_second,
        provider=provider,
    )  # fmt: skip
    set_listener(metrics)
    readiness, is_ready = Readiness(registry), False

    async def check_ready() -> None:
        nonlocal is_ready
        if not is_ready and not await readiness.problem():
            is_ready = True
            note_ready()

    server = build_server(app) if shared_folder is None else build_server(app, _DRAIN_SECONDS, check_ready)
    server.run(sockets=[listener])


def build_server(
    app: ASGIApp,
    end_seconds: int = SHUTDOWN_SECONDS,
    each_second: Callable[[], Awaitable[None]] | None = None,
) -> uvicorn.Server:
    """Return the server of an app, with limits for its clients."""
    # h11 is always installed and trims header values as HTTP requires; httptools, which may be installed, does not.
    config = uvicorn.Config(
        app,
        http=LimitedConnection,
        ws="none",
        h11_max_incomplete_event_size=_MAX_HEADER_BYTES,
        backlog=_BACKLOG,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=end_seconds,
        callback_notify=each_second,
        timeout_notify=1,
        log_level="warning",
        access_log=False,
    )
    limit_client_logs()
    return uvicorn.Server(config)
