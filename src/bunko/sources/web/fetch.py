"""Pages as they come: a URL goes in, through the guard; its bytes, type and validators come out, within limits."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING, Self
from urllib.parse import urljoin

from bunko.errors import FetchFailed
from bunko.sources.web.decompress import ENCODINGS, Decompressor
from bunko.sources.web.ssrf_guard import Guard, Target, display_url

if TYPE_CHECKING:
    import ssl

    import httpcore2

# What the readers understand. Anything else is not even read.
PAGE_TYPES = ("text/html", "application/xhtml+xml", "text/plain", "text/markdown", "application/pdf")
SITEMAP_TYPES = ("application/xml", "text/xml", "text/plain", "application/gzip", "application/x-gzip")
ANY_TYPE: tuple[str, ...] = ()

MAX_BYTES = 10 << 20  # the longest articles have 2 MB; PDF files with pictures more
_MAX_HEADERS = 100
_MAX_HEADER_BYTES = 32 << 10
_MAX_ERROR_BYTES = 64 << 10  # read so that the connection can be used again, and for what an API says in it
_REDIRECT_STATUSES = frozenset({301, 302, 303, 307, 308})
_REPEATABLE_HEADERS = {"content-encoding": ", ", "x-robots-tag": "\n"}
_VALUE_DIRECTIVES = ("unavailable_after", "max-snippet", "max-image-preview", "max-video-preview")  # those with a colon
_CHARSET = re.compile(r";\s*charset\s*=\s*[\"']?([^\s\"';]+)", re.IGNORECASE)

Headers = dict[str, str]


@dataclass(frozen=True, slots=True)
class FetchedPage:
    """One answer; `url` is where it came from, `content` is unpacked but not decoded, `fetched_at` is in UTC."""

    url: str
    status: int
    media_type: str
    charset: str  # as the header says, "" if it does not
    content: bytes
    etag: str
    last_modified: str
    fetched_at: str
    location: str = ""  # where a redirect leads that was not followed
    retry_after: float = 0.0
    noindex: bool = False  # its header X-Robots-Tag asks every robot, or this one, not to index it

    @property
    def has_content(self) -> bool:
        """Whether there is a page in it, rather than an error or nothing."""
        return 200 <= self.status < 300 and self.status not in (204, 205)

    @property
    def not_modified(self) -> bool:
        """Whether the page is still what the caller has."""
        return self.status == 304


class Fetcher:
    """Fetches one page at a time in each thread, over connections that are kept.

    No proxy of the environment is used: it would resolve the name again, and nothing that was checked would hold.
    No cookies, no passwords. `timeout` is for a whole page, however it drips.
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
        import httpcore2

        from bunko.sources.web.pinned_connection import PinnedBackend, RequestState

        self.guard = guard
        # No clock of the system counts further than some years.
        self._agent, self._timeout, self._max_bytes = agent, min(timeout, 86_400.0), max_bytes
        self._request_state = RequestState()
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
        """Return a page of one of the accepted types (none named: of any), or that it is not modified.

        Every other answer is FetchFailed, a redirect too: whoever follows `error.location` passes the guard, robots.txt
        and the rest again (see Guard.onward).
        """
        headers = {"If-None-Match": etag, "If-Modified-Since": last_modified}
        self._request_state.deadline = monotonic() + self._timeout
        given = {name: value for name, value in headers.items() if value}
        return _require_page(
            self._exchange(self.guard.target(url), headers=given, accept=accept), is_conditional=bool(given)
        )

    def request(
        self, url: str, *, body: bytes | None = None, headers: Headers | None = None, truncate_at: int = 0
    ) -> FetchedPage:
        """Return what one request is answered, whatever the status and the type; with a body it is a POST.

        Content past `cut_at` bytes is left out (0: it is an error past the fetcher's limit).
        """
        self._request_state.deadline = monotonic() + self._timeout
        return self._exchange(self.guard.target(url), headers=headers or {}, body=body, truncate_at=truncate_at)

    def close(self) -> None:
        """Hang up everywhere."""
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

        sent = {
            "Host": target.authority,
            "User-Agent": self._agent,
            "Accept": ", ".join([*accept, "*/*;q=0.1"]) if accept else "*/*",
            "Accept-Encoding": ENCODINGS,
            **headers,
        }
        if body is not None:
            sent["Content-Length"] = str(len(body))
        request = httpcore2.Request(
            "GET" if body is None else "POST",
            # In parts, so that nobody parses the URL a second time.
            httpcore2.URL(
                scheme=target.scheme.encode(), host=target.host.encode(), port=target.port, target=target.path.encode()
            ),
            headers=[(name.encode("ascii"), value.encode("latin-1", "replace")) for name, value in sent.items()],
            content=body,
        )
        try:
            response = self._send_request(request)
            try:
                return self._read_page(target, response, accept, truncate_at)
            finally:
                response.close()
        except FetchFailed as error:
            # Whoever found it did not know the page.
            raise FetchFailed(
                f"{display_url(str(target))} was not fetched: {error.message}", hint=error.hint
            ) from error
        except httpcore2.TimeoutException as error:
            raise FetchFailed(
                f"{display_url(str(target))} was not fetched: it was not there within {self._timeout:g} s",
                hint="Try again later, or raise crawl.timeout_seconds.",
            ) from error
        except (httpcore2.NetworkError, httpcore2.ProtocolError) as error:
            raise FetchFailed(
                f"{display_url(str(target))} was not fetched: {error or type(error).__name__}",
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
                # A server may hang up on a kept connection in the moment we write to it; a new one tells.
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
                hint=f"Pages can be {', '.join(accept)}; this cannot be read.",
            )
        if truncate_at:
            return replace(page, content=_read_content(response, Decompressor(encoding, truncate_at, truncate=True)))
        unpacker = Decompressor(encoding, self._max_bytes)
        unpacker.check_size(int(headers.get("content-length", "0")))  # digits: h11 has looked
        return replace(page, content=_read_content(response, unpacker))


def _read_content(response: httpcore2.Response, unpacker: Decompressor) -> bytes:
    for data in response.iter_stream():
        unpacker.feed(data)
        if unpacker.is_full:
            break
    return unpacker.content()


def _parse_headers(pairs: Sequence[tuple[bytes, bytes]]) -> Headers:
    """Return headers by their name in small letters; the first of a name counts, but some add up."""
    if len(pairs) > _MAX_HEADERS or sum(len(name) + len(value) for name, value in pairs) > _MAX_HEADER_BYTES:
        raise FetchFailed("its headers are too many or too long", hint="The server is at fault; leave it out.")
    found: Headers = {}
    for name, value in pairs:
        key, text = name.decode("ascii", "replace").lower(), _decode_header(value)
        if key in _REPEATABLE_HEADERS and key in found:
            found[key] += _REPEATABLE_HEADERS[key] + text
        found.setdefault(key, text)
    return found


def _decode_header(value: bytes) -> str:
    try:
        return value.decode("utf-8")  # addresses in Location, where people do not escape them
    except UnicodeDecodeError:
        return value.decode("latin-1")


def _join_url(base: str, location: str) -> str:
    try:
        return urljoin(base, location)
    except ValueError:  # the guard says what is wrong with it
        return location


def _retry_seconds(value: str) -> float:
    """Return how long Retry-After asks to wait: seconds, or until a date."""
    if value.isdecimal():
        return float(value[:9])
    if value:
        from email.utils import parsedate_to_datetime

        with suppress(ValueError, TypeError, OverflowError):
            return max(0.0, (parsedate_to_datetime(value) - datetime.now(UTC)).total_seconds())
    return 0.0


def _has_noindex(value: str, agent: str) -> bool:
    """Say whether X-Robots-Tag asks not to index: `noindex`, or `bunkobot: noindex`; others' wishes are theirs."""
    own = re.match(r"[\w-]*", agent.strip().lower())
    for line in value.lower().split("\n"):
        ours = True
        for part in line.split(","):
            name, colon, wish = (one.strip() for one in part.partition(":"))
            if colon and name in _VALUE_DIRECTIVES:
                continue
            if colon:  # the name of a robot: what follows is for it
                ours = own is not None and name == own[0]
            if ours and (wish or name) in ("noindex", "none"):
                return True
    return False


def _require_page(page: FetchedPage, *, is_conditional: bool) -> FetchedPage:
    """Return a page that holds something, or that is not modified if that was asked."""
    if page.has_content or (page.not_modified and is_conditional):
        return page
    if page.status in _REDIRECT_STATUSES and page.location:
        raise FetchFailed(
            f"{display_url(page.url)} redirects to {display_url(page.location)}",
            hint="Fetch that address instead, or have redirects followed with crawl.follow_redirects.",
            status=page.status,
            location=page.location,
        )
    if page.status in (401, 403, 407, 451):
        hint = "The site does not show it to everybody."
    elif page.status in (404, 410):
        hint = "Check the address; the page may have moved."
    elif page.status == 429 or page.status >= 500:
        hint = "Try again later."
    else:
        hint = "Look at it in a browser."
    raise FetchFailed(
        f"{display_url(page.url)} was not fetched: the server answered {page.status}",
        hint=hint,
        status=page.status,
        retry_after=page.retry_after,
    )


def _connection_hint(error: Exception) -> str:
    import ssl

    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return "Its certificate cannot be trusted; for one of your own authority, set SSL_CERT_FILE."
        cause = cause.__cause__ or cause.__context__
    return "Check the address, and that the server is up."
