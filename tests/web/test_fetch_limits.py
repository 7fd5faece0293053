"""Limits on time, size, headers and types of a response."""

from __future__ import annotations

import gzip
import re
import threading
from collections.abc import Iterator

import pytest

from bunko.errors import FetchFailed
from bunko.sources.web.fetch import ANY_TYPE, SITEMAP_TYPES, Fetcher
from bunko.sources.web.ssrf_guard import Guard
from tests.site import Asked, Raw, Reply, Site, html, text
from tests.web.replies import compressed, forever


@pytest.mark.parametrize("where", ["body", "headers", "status", "trailers"])
def test_a_server_that_drips_is_left_when_the_time_is_over(site: Site, where: str) -> None:
    begun = {
        "status": b"",
        "headers": b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nX-Long: ",
        "body": b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 99999\r\n\r\n",
        "trailers": b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX-Long: ",
    }[where]

    def answer(_: Asked) -> Reply:
        def parts() -> Iterator[bytes]:
            yield begun
            yield from forever(site, b"x" if where != "status" else b"HTTP/1.1 100 Continue\r\n\r\n")

        return Raw(parts())

    site.pages["/"] = answer
    with (
        Fetcher(Guard((site.host,)), timeout=0.3) as fetcher,
        pytest.raises(FetchFailed, match=r"within 0\.3 s") as failed,
    ):
        fetcher.fetch(site.url())
    assert "crawl.timeout_seconds" in failed.value.hint


def test_a_server_that_says_nothing_is_left_when_the_time_is_over(site: Site) -> None:
    def answer(_: Asked) -> Reply:
        site.released.wait()
        return html("too late")

    site.pages["/"] = answer
    with Fetcher(Guard((site.host,)), timeout=0.2) as fetcher, pytest.raises(FetchFailed, match=r"within 0\.2 s"):
        fetcher.fetch(site.url())


def test_a_resolver_that_says_nothing_is_left_when_the_time_is_over() -> None:
    released = threading.Event()

    def resolve(host: str, port: int) -> list[str]:
        released.wait()
        return []

    with Fetcher(Guard(resolve=resolve), timeout=0.2) as fetcher, pytest.raises(FetchFailed, match=r"within 0\.2 s"):
        fetcher.fetch("http://slow.example/")
    released.set()


def test_a_page_that_says_it_is_too_large_is_not_read(site: Site, fetcher: Fetcher) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 100001\r\n\r\n"

    def answer(_: Asked) -> Reply:
        def parts() -> Iterator[bytes]:
            yield head
            site.released.wait()

        return Raw(parts())

    site.pages["/"] = answer
    with pytest.raises(FetchFailed, match="larger than 100000 bytes") as failed:
        fetcher.fetch(site.url())
    assert "crawl.max_bytes" in failed.value.hint


def test_a_page_without_an_end_is_left_at_the_limit(site: Site, fetcher: Fetcher) -> None:
    def endless(_: Asked) -> Reply:
        return 200, {"Content-Type": "text/html"}, forever(site, b"x" * 20_000)

    site.pages["/"] = endless
    with pytest.raises(FetchFailed, match="larger than 100000 bytes"):
        fetcher.fetch(site.url())


def test_a_page_of_exactly_the_limit_is_read(site: Site, fetcher: Fetcher) -> None:
    data = bytes(range(256)) * 400 + b"end"
    for body in (data[-100_000:], gzip.compress(data[-100_000:])):
        encoding = "gzip" if body[:2] == b"\x1f\x8b" else "identity"
        site.pages["/"] = compressed(body, encoding)
        assert fetcher.fetch(site.url()).content == data[-100_000:]
    site.pages["/"] = compressed(gzip.compress(b"x" * 100_001, mtime=0), "gzip")
    with pytest.raises(FetchFailed, match="larger"):
        fetcher.fetch(site.url())


@pytest.mark.parametrize(
    "headers",
    [
        [(f"X-{number}", "1") for number in range(101)],
        [("X-Long", "x" * 40_000)],
        [("X-Longer", "x" * 400_000)],
    ],
    ids=["many", "long", "longer"],
)
def test_headers_have_limits(site: Site, fetcher: Fetcher, headers: list[tuple[str, str]]) -> None:
    site.pages["/"] = (200, [("Content-Type", "text/html"), *headers], b"x")
    with pytest.raises(FetchFailed):
        fetcher.fetch(site.url())


@pytest.mark.parametrize(
    "kind", ["application/json", "image/png", "application/octet-stream", "video/mp4", "texthtml", ""]
)
def test_a_type_that_cannot_be_read_is_not_fetched(site: Site, fetcher: Fetcher, kind: str) -> None:
    site.pages["/"] = (200, {"Content-Type": kind} if kind else {}, b"x" * 50)
    with pytest.raises(FetchFailed, match=re.escape(kind) or "no named type"):
        fetcher.fetch(site.url())
    assert fetcher.fetch(site.url(), accept=ANY_TYPE).content == b"x" * 50


def test_the_accepted_types_are_the_callers(site: Site, fetcher: Fetcher) -> None:
    site.pages["/sitemap.xml"] = text("<urlset/>", kind="application/xml")
    assert fetcher.fetch(site.url("/sitemap.xml"), accept=SITEMAP_TYPES).content == b"<urlset/>"
    assert site.asked[0].headers["accept"].startswith("application/xml, text/xml")
    with pytest.raises(FetchFailed, match="application/xml"):
        fetcher.fetch(site.url("/sitemap.xml"))
