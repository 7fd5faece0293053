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
from bunko.sources.web.decompress import ENCODINGS, Unpacker
from bunko.sources.web.ssrf_guard import Guard, Target, shown

if TYPE_CHECKING:
    import ssl

    import httpcore2

# What the readers understand. Anything else is not even read.
PAGES = ("text/html", "application/xhtml+xml", "text/plain", "text/markdown", "application/pdf")
SITEMAPS = ("application/xml", "text/xml", "text/plain", "application/gzip", "application/x-gzip")
ANYTHING: tuple[str, ...] = ()

MAX_BYTES = 10 << 20  # the longest articles have 2 MB; PDF files with pictures more
_MAX_HEADERS = 100
_MAX_HEADER_BYTES = 32 << 10
_MAX_ERROR_BYTES = 64 << 10  # read so that the connection can be used again, and for what an API says in it
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_ADD_UP = {"content-encoding": ", ", "x-robots-tag": "\n"}
_WISHES = ("unavailable_after", "max-snippet", "max-image-preview", "max-video-preview")  # those with a colon
_CHARSET = re.compile(r";\s*charset\s*=\s*[\"']?([^\s\"';]+)", re.IGNORECASE)

Headers = dict[str, str]


@dataclass(frozen=True, slots=True)
class Page:
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
    def whole(self) -> bool:
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

        from bunko.sources.web.pinned_connection import Clock, Pinned

        self.guard = guard
        # No clock of the system counts further than some years.
        self._agent, self._timeout, self._max_bytes = agent, min(timeout, 86_400.0), max_bytes
        self._clock = Clock()
        self._pool = httpcore2.ConnectionPool(
            ssl_context=tls or httpcore2.default_ssl_context(),
            max_connections=connections,
            max_keepalive_connections=connections,
            keepalive_expiry=15.0,
            network_backend=Pinned(guard, self._clock),
        )

    def fetch(self, url: str, *, etag: str = "", last_modified: str = "", accept: Sequence[str] = PAGES) -> Page:
        """Return a page of one of the accepted types (none named: of any), or that it is not modified.

        Every other answer is FetchFailed, a redirect too: whoever follows `error.location` passes the guard, robots.txt
        and the rest again (see Guard.onward).
        """
        headers = {"If-None-Match": etag, "If-Modified-Since": last_modified}
        self._clock.deadline = monotonic() + self._timeout
        given = {name: value for name, value in headers.items() if value}
        return _good(self._exchange(self.guard.target(url), headers=given, accept=accept), asked=bool(given))

    def ask(self, url: str, *, body: bytes | None = None, headers: Headers | None = None, cut_at: int = 0) -> Page:
        """Return what one request is answered, whatever the status and the type; with a body it is a POST.

        Content past `cut_at` bytes is left out (0: it is an error past the fetcher's limit).
        """
        self._clock.deadline = monotonic() + self._timeout
        return self._exchange(self.guard.target(url), headers=headers or {}, body=body, cut_at=cut_at)

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
        accept: Sequence[str] = ANYTHING,
        body: bytes | None = None,
        cut_at: int = 0,
    ) -> Page:
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
            response = self._answer(request)
            try:
                return self._page(target, response, accept, cut_at)
            finally:
                response.close()
        except FetchFailed as error:
            # Whoever found it did not know the page.
            raise FetchFailed(f"{shown(str(target))} was not fetched: {error.message}", hint=error.hint) from error
        except httpcore2.TimeoutException as error:
            raise FetchFailed(
                f"{shown(str(target))} was not fetched: it was not there within {self._timeout:g} s",
                hint="Try again later, or raise crawl.timeout_seconds.",
            ) from error
        except (httpcore2.NetworkError, httpcore2.ProtocolError) as error:
            raise FetchFailed(
                f"{shown(str(target))} was not fetched: {error or type(error).__name__}", hint=_advice(error)
            ) from error

    def _answer(self, request: httpcore2.Request) -> httpcore2.Response:
        import httpcore2

        while True:
            self._clock.connected = False
            request.extensions["timeout"] = {"pool": self._clock.left(httpcore2.PoolTimeout)}
            try:
                return self._pool.handle_request(request)
            except (httpcore2.RemoteProtocolError, httpcore2.ReadError):
                # A server may hang up on a kept connection in the moment we write to it; a new one tells.
                if self._clock.connected:
                    raise

    def _page(self, target: Target, response: httpcore2.Response, accept: Sequence[str], cut_at: int) -> Page:
        headers = _headers(response.headers)
        media_type = headers.get("content-type", "").partition(";")[0].strip().lower()
        charset = _CHARSET.search(headers.get("content-type", ""))
        location = headers.get("location", "")
        page = Page(
            url=str(target),
            status=response.status,
            media_type=media_type,
            charset=charset[1] if charset else "",
            content=b"",
            etag=headers.get("etag", ""),
            last_modified=headers.get("last-modified", ""),
            fetched_at=datetime.now(UTC).isoformat(timespec="seconds"),
            location=_joined(str(target), location) if location else "",
            retry_after=_seconds(headers.get("retry-after", "")),
            noindex=_noindex(headers.get("x-robots-tag", ""), self._agent),
        )
        encoding = headers.get("content-encoding", "")
        if not page.whole:
            with suppress(FetchFailed):  # the status is what matters
                return replace(page, content=_content(response, Unpacker(encoding, _MAX_ERROR_BYTES, cut=True)))
            return page
        if accept and media_type not in accept:
            raise FetchFailed(
                f"it is {media_type[:80] or 'of no named type'}",
                hint=f"Pages can be {', '.join(accept)}; this cannot be read.",
            )
        if cut_at:
            return replace(page, content=_content(response, Unpacker(encoding, cut_at, cut=True)))
        unpacker = Unpacker(encoding, self._max_bytes)
        unpacker.expect(int(headers.get("content-length", "0")))  # digits: h11 has looked
        return replace(page, content=_content(response, unpacker))


def _content(response: httpcore2.Response, unpacker: Unpacker) -> bytes:
    for data in response.iter_stream():
        unpacker.feed(data)
        if unpacker.full:
            break
    return unpacker.content()


def _headers(pairs: Sequence[tuple[bytes, bytes]]) -> Headers:
    """Return headers by their name in small letters; the first of a name counts, but some add up."""
    if len(pairs) > _MAX_HEADERS or sum(len(name) + len(value) for name, value in pairs) > _MAX_HEADER_BYTES:
        raise FetchFailed("its headers are too many or too long", hint="The server is at fault; leave it out.")
    found: Headers = {}
    for name, value in pairs:
        key, text = name.decode("ascii", "replace").lower(), _text(value)
        if key in _ADD_UP and key in found:
            found[key] += _ADD_UP[key] + text
        found.setdefault(key, text)
    return found


def _text(value: bytes) -> str:
    try:
        return value.decode("utf-8")  # addresses in Location, where people do not escape them
    except UnicodeDecodeError:
        return value.decode("latin-1")


def _joined(base: str, location: str) -> str:
    try:
        return urljoin(base, location)
    except ValueError:  # the guard says what is wrong with it
        return location


def _seconds(value: str) -> float:
    """Return how long Retry-After asks to wait: seconds, or until a date."""
    if value.isdecimal():
        return float(value[:9])
    if value:
        from email.utils import parsedate_to_datetime

        with suppress(ValueError, TypeError, OverflowError):
            return max(0.0, (parsedate_to_datetime(value) - datetime.now(UTC)).total_seconds())
    return 0.0


def _noindex(value: str, agent: str) -> bool:
    """Say whether X-Robots-Tag asks not to index: `noindex`, or `bunkobot: noindex`; others' wishes are theirs."""
    own = re.match(r"[\w-]*", agent.strip().lower())
    for line in value.lower().split("\n"):
        ours = True
        for part in line.split(","):
            name, colon, wish = (one.strip() for one in part.partition(":"))
            if colon and name in _WISHES:
                continue
            if colon:  # the name of a robot: what follows is for it
                ours = own is not None and name == own[0]
            if ours and (wish or name) in ("noindex", "none"):
                return True
    return False


def _good(page: Page, *, asked: bool) -> Page:
    """Return a page that holds something, or that is not modified if that was asked."""
    if page.whole or (page.not_modified and asked):
        return page
    if page.status in _REDIRECTS and page.location:
        raise FetchFailed(
            f"{shown(page.url)} redirects to {shown(page.location)}",
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
        f"{shown(page.url)} was not fetched: the server answered {page.status}",
        hint=hint,
        status=page.status,
        retry_after=page.retry_after,
    )


def _advice(error: Exception) -> str:
    import ssl

    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return "Its certificate cannot be trusted; for one of your own authority, set SSL_CERT_FILE."
        cause = cause.__cause__ or cause.__context__
    return "Check the address, and that the server is up."
