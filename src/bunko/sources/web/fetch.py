"""Fetch single pages over HTTP, checked by the guard and limited in time and size."""

from __future__ import annotations

import logging
import os
import re
import ssl
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING, Self
from urllib.parse import urljoin

from bunko.errors import FetchFailed
from bunko.runtime.package_errors import package_errors
from bunko.sources.web.decompress import ENCODINGS, Decompressor
from bunko.sources.web.ssrf_guard import Guard, Target, display_url

if TYPE_CHECKING:
    import httpcore2


# The types that the readers support. Other responses are not read.
PAGE_TYPES = ("text/html", "application/xhtml+xml", "text/plain", "text/markdown", "application/pdf")
SITEMAP_TYPES = ("application/xml", "text/xml", "text/plain", "application/gzip", "application/x-gzip")
ANY_TYPE: tuple[str, ...] = ()

MAX_BYTES = 10 << 20  # the longest articles have 2 MB; PDF files with pictures more
_MAX_HEADERS = 100
_MAX_HEADER_BYTES = 32 << 10
_MAX_ERROR_BYTES = 64 << 10  # read so that the connection can be reused, and for the error message of an API
_REDIRECT_STATUSES = frozenset({301, 302, 303, 307, 308})
_REPEATABLE_HEADERS = {"content-encoding": ", ", "x-robots-tag": "\n"}
# Directives that have a colon and a value.
_VALUE_DIRECTIVES = ("unavailable_after", "max-snippet", "max-image-preview", "max-video-preview")
# What the library says if a connection ends within a response, or before it.
_EARLY_END = re.compile("disconnected|closed connection")
_CHARSET = re.compile(r";\s*charset\s*=\s*[\"']?([^\s\"';]+)", re.IGNORECASE)

Headers = dict[str, str]

_log = logging.getLogger("bunko.web")


@dataclass(frozen=True, slots=True)
class FetchedPage:
    """One response; `content` is decompressed but not decoded, `fetched_at` is in UTC."""

    url: str
    status: int
    media_type: str
    charset: str  # from the header, or empty
    content: bytes
    etag: str
    last_modified: str
    fetched_at: str
    location: str = ""  # the target of a redirect, which is not followed
    retry_after: float = 0.0
    noindex: bool = False  # X-Robots-Tag asks all robots, or this one, not to index it

    @property
    def has_content(self) -> bool:
        """Whether the response is a page, rather than an error or empty."""
        return 200 <= self.status < 300 and self.status not in (204, 205)

    @property
    def not_modified(self) -> bool:
        """Whether the page has not changed since the caller fetched it."""
        return self.status == 304


class Fetcher:
    """Fetches one page at a time in each thread, over reused connections.

    Proxies of the environment are not used: a proxy would resolve the name again, which bypasses the guard.
    No cookies, no passwords. `timeout` applies to a whole page, however slowly it arrives.
    """

    def __init__(
        self,
        guard: Guard,
        *,
        agent: str = "BunkoBot",
        timeout: float = 30.0,
        max_bytes: int = MAX_BYTES,
        connections: int = 32,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        with package_errors("httpcore2"):
            import httpcore2

            from bunko.runtime.deadlines import RequestState
            from bunko.sources.web.pinned_connection import PinnedBackend

        self.guard = guard
        # Larger values overflow the clocks of some systems.
        self._agent, self._timeout, self._max_bytes = agent, min(timeout, 86_400.0), max_bytes
        self._request_state = RequestState()
        self._lock = threading.Lock()
        self._requests_in_flight, self._is_closed = 0, False
        self._pool = httpcore2.ConnectionPool(
            ssl_context=tls or httpcore2.default_ssl_context(),
            max_connections=connections,
            max_keepalive_connections=connections,
            keepalive_expiry=15.0,
            network_backend=PinnedBackend(guard, self._request_state),
        )

    def fetch(
        self, url: str, *, etag: str = "", last_modified: str = "", accept: Sequence[str] = PAGE_TYPES
    ) -> FetchedPage:
        """Return a page of one of the accepted types (empty: any type), or a "not modified" response.

        Any other response raises FetchFailed, also a redirect: a caller that follows `error.location` must check the
        guard and robots.txt again (see Guard.redirect_target).
        """
        validators = {"If-None-Match": etag, "If-Modified-Since": last_modified}
        headers = {name: value for name, value in validators.items() if value}
        self._request_state.deadline = monotonic() + self._timeout
        page = self._exchange(self.guard.target(url), headers=headers, accept=accept)
        return _require_page(page, is_conditional=bool(headers))

    def request(
        self, url: str, *, body: bytes | None = None, headers: Headers | None = None, truncate_at: int = 0
    ) -> FetchedPage:
        """Return the response to one request, of any status and type; with a body it is a POST.

        Content after `truncate_at` bytes is dropped (0: content above the fetcher's limit is an error).
        """
        self._request_state.deadline = monotonic() + self._timeout
        return self._exchange(self.guard.target(url), headers=headers or {}, body=body, truncate_at=truncate_at)

    def close(self) -> None:
        """Close all connections; those of requests that other threads wait for are closed after the last of these.

        A pool that is closed while it connects would forget that connection, and leave it open.
        """
        with self._lock:
            self._is_closed = True
            is_idle = not self._requests_in_flight
        if is_idle:
            self._pool.close()

    @contextmanager
    def _request_in_flight(self) -> Iterator[None]:
        with self._lock:
            self._requests_in_flight += 1
        try:
            yield
        finally:
            with self._lock:
                self._requests_in_flight -= 1
                is_last = self._is_closed and not self._requests_in_flight
            if is_last:
                self._pool.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _exchange(
        self,
        target: Target,
        *,
        headers: Headers,
        accept: Sequence[str] = ANY_TYPE,
        body: bytes | None = None,
        truncate_at: int = 0,
    ) -> FetchedPage:
        import httpcore2

        request_headers = {
            "Host": target.authority,
            "User-Agent": self._agent,
            "Accept": ", ".join([*accept, "*/*;q=0.1"]) if accept else "*/*",
            "Accept-Encoding": ENCODINGS,
            **headers,
        }
        if body is not None:
            request_headers["Content-Length"] = str(len(body))
        request = httpcore2.Request(
            "GET" if body is None else "POST",
            # In parts, so that the URL is not parsed a second time.
            httpcore2.URL(
                scheme=target.scheme.encode(), host=target.host.encode(), port=target.port, target=target.path.encode()
            ),
            headers=[
                (name.encode("ascii"), value.encode("latin-1", "replace")) for name, value in request_headers.items()
            ],
            content=body,
        )
        try:
            with self._request_in_flight():
                response = self._send_request(request)
                try:
                    return self._read_page(target, response, accept, truncate_at)
                finally:
                    response.close()
        except FetchFailed as error:
            # The code that raised it does not know the URL.
            raise FetchFailed(
                f"{display_url(str(target))} was not fetched: {error.message}", hint=error.hint, reason=error.reason
            ) from error
        except httpcore2.TimeoutException as error:
            raise FetchFailed(
                f"{display_url(str(target))} was not fetched: no complete response within {self._timeout:g} s",
                hint="Try again later, or raise crawl.timeout_seconds.",
                reason="timeout",
            ) from error
        except (httpcore2.NetworkError, httpcore2.ProtocolError) as error:
            raise FetchFailed(
                f"{display_url(str(target))} was not fetched: {_connection_problem(error)}",
                hint=_connection_hint(error),
            ) from error

    def _send_request(self, request: httpcore2.Request) -> httpcore2.Response:
        import httpcore2

        while True:
            self._request_state.connected = False
            request.extensions["timeout"] = {"pool": self._request_state.remaining_seconds(httpcore2.PoolTimeout)}
            try:
                return self._pool.handle_request(request)
            except (httpcore2.RemoteProtocolError, httpcore2.ReadError):
                # A server may close a kept connection while we write to it; a new connection shows the real state.
                if self._request_state.connected:
                    raise

    def _read_page(
        self, target: Target, response: httpcore2.Response, accept: Sequence[str], truncate_at: int
    ) -> FetchedPage:
        headers = _parse_headers(response.headers)
        media_type = headers.get("content-type", "").partition(";")[0].strip().lower()
        charset = _CHARSET.search(headers.get("content-type", ""))
        location = headers.get("location", "")
        page = FetchedPage(
            url=str(target),
            status=response.status,
            media_type=media_type,
            charset=charset[1] if charset else "",
            content=b"",
            etag=headers.get("etag", ""),
            last_modified=headers.get("last-modified", ""),
            fetched_at=datetime.now(UTC).isoformat(timespec="seconds"),
            location=_join_url(str(target), location) if location else "",
            retry_after=_retry_seconds(headers.get("retry-after", "")),
            noindex=_has_noindex(headers.get("x-robots-tag", ""), self._agent),
        )
        encoding = headers.get("content-encoding", "")
        if not page.has_content:
            with suppress(FetchFailed):  # the status is what matters
                return replace(
                    page, content=_read_content(response, Decompressor(encoding, _MAX_ERROR_BYTES, truncate=True))
                )
            return page
        if accept and media_type not in accept:
            raise FetchFailed(
                f"it is {media_type[:80] or 'of no named type'}",
                hint=f"Supported types: {', '.join(accept)}.",
                reason="media-type",
            )
        if truncate_at:
            return replace(page, content=_read_content(response, Decompressor(encoding, truncate_at, truncate=True)))
        decompressor = Decompressor(encoding, self._max_bytes)
        decompressor.check_size(int(headers.get("content-length", "0")))  # h11 has checked that these are digits
        return replace(page, content=_read_content(response, decompressor))


def _read_content(response: httpcore2.Response, decompressor: Decompressor) -> bytes:
    for chunk in response.iter_stream():
        decompressor.feed(chunk)
        if decompressor.is_full:
            break
    return decompressor.content()


def _parse_headers(pairs: Sequence[tuple[bytes, bytes]]) -> Headers:
    """Return headers by lower-case name; of repeated headers the first counts, except those that are joined."""
    if len(pairs) > _MAX_HEADERS or sum(len(name) + len(value) for name, value in pairs) > _MAX_HEADER_BYTES:
        raise FetchFailed("it has too many headers, or they are too long", hint="This is an error of the server.")
    headers: Headers = {}
    for name, value in pairs:
        key, text = name.decode("ascii", "replace").lower(), _decode_header(value)
        if key in _REPEATABLE_HEADERS and key in headers:
            headers[key] += _REPEATABLE_HEADERS[key] + text
        headers.setdefault(key, text)
    return headers


def _decode_header(value: bytes) -> str:
    try:
        return value.decode("utf-8")  # URLs in Location are often not escaped
    except UnicodeDecodeError:
        return value.decode("latin-1")


def _join_url(base: str, location: str) -> str:
    try:
        return urljoin(base, location)
    except ValueError:  # the guard reports the error
        return location


def _retry_seconds(value: str) -> float:
    """Return the seconds that Retry-After asks to wait; it holds seconds or a date."""
    if value.isdecimal():
        return float(value[:9])
    if value:
        with suppress(ValueError, TypeError, OverflowError):
            return max(0.0, (parsedate_to_datetime(value) - datetime.now(UTC)).total_seconds())
    return 0.0


def _has_noindex(value: str, agent: str) -> bool:
    """Return whether X-Robots-Tag asks all robots (`noindex`) or this one (`bunkobot: noindex`) not to index."""
    own_name = re.match(r"[\w-]*", agent.strip().lower())
    for line in value.lower().split("\n"):
        applies = True
        for part in line.split(","):
            name, colon, directive = (text.strip() for text in part.partition(":"))
            if colon and name in _VALUE_DIRECTIVES:
                continue
            if colon:  # the name of a robot: the following directives are for it
                applies = own_name is not None and name == own_name[0]
            if applies and (directive or name) in ("noindex", "none"):
                return True
    return False


def _require_page(page: FetchedPage, *, is_conditional: bool) -> FetchedPage:
    """Return a page with content, or one that is not modified after a conditional request; else raise FetchFailed."""
    if page.has_content or (page.not_modified and is_conditional):
        return page
    if page.status in _REDIRECT_STATUSES and page.location:
        raise FetchFailed(
            f"{display_url(page.url)} was not fetched: it redirects to {display_url(page.location)}",
            hint="Fetch that address instead, or set crawl.follow_redirects.",
            status=page.status,
            location=page.location,
        )
    if page.status in (401, 403, 407, 451):
        hint = "The site restricts access to it."
    elif page.status in (404, 410):
        hint = "Check the address; the page may have moved."
    elif page.status == 429 or page.status >= 500:
        hint = "Try again later."
    else:
        hint = "Open it in a browser."
    raise FetchFailed(
        f"{display_url(page.url)} was not fetched: the server answered {page.status}",
        hint=hint,
        status=page.status,
        retry_after=page.retry_after,
    )


def _connection_problem(error: Exception) -> str:
    """Return the problem of a connection or of its data."""
    cause = _system_error(error)
    if isinstance(cause, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted ({cause.verify_message})"
    if isinstance(cause, ssl.SSLError):
        return f"no encrypted connection could be made ({cause.reason})"
    if cause is not None and cause.errno:
        return os.strerror(cause.errno)
    if _EARLY_END.search(str(error)):
        return "the server closed the connection too early"
    _log.debug("Not HTTP: %s", error)
    return "the response is not valid HTTP"


def _connection_hint(error: Exception) -> str:
    if isinstance(_system_error(error), ssl.SSLCertVerificationError):
        return "For a private certificate authority, set SSL_CERT_FILE."
    return "Check the address, and that the server is up."


def _system_error(error: BaseException) -> OSError | None:
    """Return the error of the system or of TLS that caused another."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, OSError):
        cause = cause.__cause__ or cause.__context__
    return cause
