"""Fetching from a real site on loopback that is slow, broken, huge, packed or moved."""

from __future__ import annotations

import gzip
import logging
import re
import ssl
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from ipaddress import ip_address
from pathlib import Path
from time import monotonic

import httpcore2
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bunko.errors import AddressRefused, FetchFailed
from bunko.sources.web.decompress import Decompressor, gunzip
from bunko.sources.web.fetch import ANY_TYPE, SITEMAP_TYPES, Fetcher
from bunko.sources.web.pinned_connection import PinnedBackend, RequestState
from bunko.sources.web.ssrf_guard import Guard
from tests.site import Asked, Raw, Reply, Site, html, text

Opened = Callable[..., Fetcher]


@pytest.fixture
def site() -> Iterator[Site]:
    with Site({"/": html("<p>文庫</p>")}) as site:
        yield site


@pytest.fixture
def fetcher(site: Site) -> Iterator[Fetcher]:
    with Fetcher(Guard((site.host,)), max_bytes=100_000) as fetcher:
        yield fetcher


def packed(data: bytes, encoding: str) -> Reply:
    return 200, {"Content-Type": "text/html", "Content-Encoding": encoding}, data


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


def test_a_page_comes_as_the_server_sent_it(site: Site, fetcher: Fetcher) -> None:
    modified = "Sun, 01 Nov 2026 00:00:00 GMT"
    site.pages["/日本"] = site.pages["/%E6%97%A5%E6%9C%AC?a=1"] = html(
        "<p>日本</p>", charset="shift_jis", etag='"v1"', last_modified=modified
    )
    before = datetime.now(UTC).replace(microsecond=0)
    page = fetcher.fetch(site.url("/日本?a=1#part"))
    assert page.url == site.url("/%E6%97%A5%E6%9C%AC?a=1")
    assert (page.status, page.media_type, page.charset) == (200, "text/html", "shift_jis")
    assert page.content == "<p>日本</p>".encode("shift_jis")
    assert (page.etag, page.last_modified, page.location, page.not_modified) == ('"v1"', modified, "", False)
    assert before <= datetime.fromisoformat(page.fetched_at) <= datetime.now(UTC)


def test_the_request_says_who_asks_and_no_more(site: Site) -> None:
    site.pages["/"] = html("<p>1", set_cookie="id=1; Path=/")
    with Fetcher(Guard((site.host,)), agent="BunkoBot/1.0") as fetcher:
        fetcher.fetch(site.url())
        fetcher.fetch(site.url())
    for asked in site.asked:
        assert asked.headers == {
            "host": site.host,
            "user-agent": "BunkoBot/1.0",
            "accept": "text/html, application/xhtml+xml, text/plain, text/markdown, application/pdf, */*;q=0.1",
            "accept-encoding": "gzip, deflate",
        }


@pytest.mark.parametrize(
    ("header", "charset"),
    [
        ("text/html", ""),
        ("text/html;charset=UTF-8", "UTF-8"),
        ('text/html; Charset = "euc-jp"; x=y', "euc-jp"),
        ("text/html; charset='x-sjis'", "x-sjis"),
        ("TEXT/HTML ; charset=", ""),
    ],
)
def test_the_charset_is_read_from_the_header(site: Site, fetcher: Fetcher, header: str, charset: str) -> None:
    site.pages["/"] = (200, {"Content-Type": header}, b"x")
    page = fetcher.fetch(site.url())
    assert (page.media_type, page.charset) == ("text/html", charset)


def test_a_page_that_did_not_change_is_not_sent_again(site: Site, fetcher: Fetcher) -> None:
    def answer(asked: Asked) -> Reply:
        known = asked.headers.get("if-none-match") == '"é"' and asked.headers.get("if-modified-since") == "yesterday"
        return (304, {"ETag": '"é"'}, b"") if known else html("<p>new", etag='"é"')

    site.pages["/"] = answer
    assert not fetcher.fetch(site.url()).not_modified
    again = fetcher.fetch(site.url(), etag='"é"', last_modified="yesterday")
    assert (again.not_modified, again.status, again.content) == (True, 304, b"")
    assert site.connections == 1


def test_not_modified_without_being_asked_is_a_failure(site: Site, fetcher: Fetcher) -> None:
    site.pages["/"] = (304, {}, b"")
    with pytest.raises(FetchFailed, match="answered 304"):
        fetcher.fetch(site.url())


@pytest.mark.parametrize("status", [204, 400, 401, 403, 404, 410, 418, 500, 503])
def test_an_error_names_its_status_and_keeps_the_connection(site: Site, fetcher: Fetcher, status: int) -> None:
    site.pages["/bad"] = (status, {"Content-Type": "image/png"}, b"" if status == 204 else b"nothing here")
    for _ in range(3):
        with pytest.raises(FetchFailed, match=f"answered {status}") as failed:
            fetcher.fetch(site.url("/bad"))
        assert failed.value.status == status
        assert failed.value.hint
    assert site.connections == 1


def test_a_server_may_ask_for_patience(site: Site, fetcher: Fetcher) -> None:
    later = format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True)
    for value, least, most in [("120", 120, 120), (later, 3000, 3600), ("soon", 0, 0), ("9" * 30, 1e8, 1e9)]:
        site.pages["/"] = (429, {"Retry-After": value}, b"")
        with pytest.raises(FetchFailed) as failed:
            fetcher.fetch(site.url())
        assert least <= failed.value.retry_after <= most


# Redirects


def test_a_redirect_is_not_followed_unless_asked_for(site: Site, fetcher: Fetcher) -> None:
    site.pages["/old"] = (301, {"Location": "new?a=1"}, b"moved")
    with pytest.raises(FetchFailed) as failed:
        fetcher.fetch(site.url("/old"))
    assert failed.value.location == site.url("/new?a=1")
    assert failed.value.status == 301
    assert site.url("/new?a=1") in failed.value.message
    assert "crawl.follow_redirects" in failed.value.hint
    assert site.paths == ["/old"]


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize(
    ("location", "leads"),
    [("/x", "{}/x"), ("?q", "{}/a/b?q"), ("../c", "{}/c"), ("//h.example/", "http://h.example/"), ("/日本", "{}/日本")],
)
def test_where_a_redirect_leads_is_told(site: Site, fetcher: Fetcher, status: int, location: str, leads: str) -> None:
    site.pages["/a/b"] = Raw([f"HTTP/1.1 {status} Moved\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n".encode()])
    with pytest.raises(FetchFailed) as failed:
        fetcher.fetch(site.url("/a/b"))
    assert failed.value.location == leads.format(site.address)
    page = fetcher.request(site.url("/a/b"))
    assert (page.status, page.location) == (status, leads.format(site.address))


def test_a_redirect_leads_nowhere_that_a_url_could_not(site: Site, fetcher: Fetcher) -> None:
    here = fetcher.guard.target(site.url("/out"))
    for location in (
        f"http://127.0.0.1:{site.port + 1}/", f"http://localhost:{site.port}/", f"//127.1:{site.port}/",
        "http://169.254.169.254/latest/", "file:///etc/passwd", "http://[::1", "//user@127.0.0.1/", "javascript:1",
        "http://a\\b", "gopher://x",
    ):  # fmt: skip
        site.pages["/out"] = (302, {"Location": location}, b"")
        with pytest.raises(FetchFailed) as failed:
            fetcher.fetch(site.url("/out"))
        with pytest.raises(AddressRefused):
            fetcher.guard.redirect_target(here, failed.value.location)
    assert str(fetcher.guard.redirect_target(here, site.url("/in"))) == site.url("/in")


def test_https_is_never_left_for_http() -> None:
    guard = Guard()
    secure = guard.target("https://example.com/")
    assert str(guard.redirect_target(secure, "https://www.example.com")) == "https://www.example.com/"
    assert (
        str(guard.redirect_target(guard.target("http://example.com/"), "https://example.com")) == "https://example.com/"
    )
    with pytest.raises(AddressRefused, match="from https to http"):
        guard.redirect_target(secure, "http://example.com/")


def test_a_redirect_without_a_target_is_a_failure(site: Site, fetcher: Fetcher) -> None:
    site.pages["/"] = (302, {}, b"")
    with pytest.raises(FetchFailed, match="answered 302"):
        fetcher.fetch(site.url())


# Limits


def forever(site: Site, piece: bytes) -> Iterator[bytes]:
    """Yield a piece again and again, slowly, until the site closes."""
    while not site.released.wait(0.005):
        yield piece


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
        site.pages["/"] = packed(body, encoding)
        assert fetcher.fetch(site.url()).content == data[-100_000:]
    site.pages["/"] = packed(gzip.compress(b"x" * 100_001, mtime=0), "gzip")
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


# Packing


@pytest.mark.parametrize(
    ("data", "encoding"),
    [
        (gzip.compress(b"hello", mtime=0), "gzip"),
        (gzip.compress(b"hello", mtime=0), "X-GZIP"),
        (gzip.compress(b"hel", mtime=0) + gzip.compress(b"lo", mtime=0), "gzip"),
        (gzip.compress(b"hello", mtime=0) + b"\0" * 20, "gzip"),
        (zlib.compress(b"hello"), "deflate"),
        (raw_deflate(b"hello"), "deflate"),
        (b"hello", "identity"),
        (gzip.compress(b"hello", mtime=0), "identity, gzip"),
    ],
)
def test_a_packed_page_is_unpacked(site: Site, fetcher: Fetcher, data: bytes, encoding: str) -> None:
    site.pages["/"] = packed(data, encoding)
    assert fetcher.fetch(site.url()).content == b"hello"


@pytest.mark.parametrize("encoding", ["br", "zstd", "compress", "gzip, gzip", "gzip, br", "deflate,gzip", "nonsense"])
def test_packing_that_was_not_asked_for_is_refused(site: Site, fetcher: Fetcher, encoding: str) -> None:
    site.pages["/"] = packed(gzip.compress(gzip.compress(b"hello", mtime=0)), encoding)
    with pytest.raises(FetchFailed, match="its encoding is"):
        fetcher.fetch(site.url())


def test_two_headers_do_not_hide_two_layers(site: Site, fetcher: Fetcher) -> None:
    headers = [("Content-Type", "text/html"), ("Content-Encoding", "gzip"), ("Content-Encoding", "gzip")]
    site.pages["/"] = (200, headers, gzip.compress(gzip.compress(b"hello", mtime=0)))
    with pytest.raises(FetchFailed, match="its encoding is 'gzip, gzip'"):
        fetcher.fetch(site.url())


@pytest.mark.parametrize(
    ("data", "encoding", "said"),
    [
        (gzip.compress(b"hello" * 1000, mtime=0)[:-12], "gzip", "ends early"),
        (zlib.compress(b"hello" * 1000)[:-3], "deflate", "ends early"),
        (b"this is not gzip", "gzip", "cannot be decompressed"),
        (gzip.compress(b"hello", mtime=0)[:-8] + b"\0" * 8, "gzip", "cannot be decompressed"),
        (b"\xff\xff\xff", "deflate", "cannot be decompressed"),
    ],
)
def test_broken_packing_is_a_failure(site: Site, fetcher: Fetcher, data: bytes, encoding: str, said: str) -> None:
    site.pages["/"] = packed(data, encoding)
    with pytest.raises(FetchFailed, match=said):
        fetcher.fetch(site.url())


@pytest.mark.parametrize("pack", [gzip.compress, zlib.compress, raw_deflate])
def test_a_bomb_is_found_before_it_fills_the_memory(site: Site, pack: Callable[[bytes], bytes]) -> None:
    encoding = "gzip" if pack is gzip.compress else "deflate"
    site.pages["/"] = packed(pack(b"\0" * (20 << 20)), encoding)
    with (
        Fetcher(Guard((site.host,)), max_bytes=1 << 30) as fetcher,
        pytest.raises(FetchFailed, match="200 times its size"),
    ):
        fetcher.fetch(site.url())
    with Fetcher(Guard((site.host,))) as fetcher, pytest.raises(FetchFailed, match=r"larger than|times its size"):
        fetcher.fetch(site.url())


def test_a_small_page_may_be_all_alike(site: Site) -> None:
    site.pages["/"] = packed(gzip.compress(b" " * 900_000, mtime=0), "gzip")
    with Fetcher(Guard((site.host,))) as fetcher:
        assert len(fetcher.fetch(site.url()).content) == 900_000


def test_a_gzip_file_is_unpacked_within_a_limit() -> None:
    assert gunzip(gzip.compress(b"<urlset/>", mtime=0), 100) == b"<urlset/>"
    for data in (gzip.compress(b"x" * 101, mtime=0), b"<urlset/>", gzip.compress(b"hello", mtime=0)[:-1]):
        with pytest.raises(FetchFailed):
            gunzip(data, 100)


@given(st.binary(max_size=3000), st.sampled_from(["gzip", "deflate", ""]), st.integers(1, 50), st.integers(0, 4000))
def test_pieces_of_any_size_are_unpacked_alike(data: bytes, encoding: str, size: int, limit: int) -> None:
    body = {"gzip": gzip.compress, "deflate": zlib.compress, "": bytes}[encoding](data)
    cutting = Decompressor(encoding, limit, truncate=True)
    for start in range(0, len(body), size):
        cutting.feed(body[start : start + size])
    assert cutting.content() == data[:limit]
    assert cutting.is_full == (len(data) > limit)
    whole = Decompressor(encoding, len(data))
    for start in range(0, len(body), size):
        whole.feed(body[start : start + size])
    assert whole.content() == data


@given(st.binary(max_size=300), st.sampled_from(["gzip", "deflate"]))
def test_garbage_is_never_more_than_a_failure(data: bytes, encoding: str) -> None:
    unpacker = Decompressor(encoding, 1000)
    with suppress(FetchFailed):
        unpacker.feed(b"\x1f\x8b\x08" + data if encoding == "gzip" else data)
        assert len(unpacker.content()) <= 1000


# Servers and connections


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"\0\1\2 garbage\r\n\r\n",
        b"SSH-2.0-OpenSSH_9.0\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 10\r\n\r\nabc",
        b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: x\r\n\r\nabc",
        b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabc",
        b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
        b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nab",
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n",
        b"HTTP/1.1 999999 No\r\n\r\n",
    ],
)
def test_a_broken_answer_is_a_failure_that_names_the_page(site: Site, fetcher: Fetcher, sent: bytes) -> None:
    site.pages["/broken"] = Raw([sent])
    with pytest.raises(FetchFailed, match=re.escape(site.url("/broken"))):
        fetcher.fetch(site.url("/broken"))
    assert site.paths == ["/broken"]
    assert fetcher.fetch(site.url()).status == 200


PIECES = [
    b"HTTP/1.1 200 OK\r\n", b"HTTP/1.0 302 Found\r\n", b"HTTP/1.1 500 \r\n", b"HTTP/1.1 100 Continue\r\n\r\n",
    b"HTTP/9.9 1\r\n",
    b"Content-Type: text/html\r\n", b"Content-Type: text/html; charset=\xff\r\n", b"Content-Length: 3, 3\r\n",
    b"Content-Length: 99999999999999999999\r\n", b"Content-Length: 5\r\n", b"Transfer-Encoding: chunked\r\n",
    b"Content-Encoding: gzip\r\n", b"Content-Encoding: \xfe\r\n", b"Location: http://[\r\n", b"Location: \xe3\x81\r\n",
    b"Retry-After: Mon, 99 Foo 2026\r\n", b"Retry-After: \xe2\x91\xa0\r\n", b"ETag: \xff\r\n", b"\r\n", b"\r\n\r\n",
    b"\n",
    b"3\r\nabc\r\n", b"0\r\n\r\n", b"abc", b"\x1f\x8b\x08\0", b"\0",
]  # fmt: skip


def test_whatever_a_server_sends_is_a_page_or_a_failure() -> None:
    with Site() as site, Fetcher(Guard((site.host,)), max_bytes=100) as fetcher:

        @settings(max_examples=300, deadline=None)
        @given(st.lists(st.one_of(st.sampled_from(PIECES), st.binary(max_size=9)), max_size=8).map(b"".join))
        @example(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 3, 3\r\n\r\nabc")
        def sends(data: bytes) -> None:
            site.pages["/"] = Raw([data])
            with suppress(FetchFailed):
                page = fetcher.fetch(site.url())
                assert len(page.content) <= 100
            with suppress(FetchFailed):
                fetcher.request(site.url(), truncate_at=10)

        sends()


def test_nobody_there_is_a_failure(site: Site, fetcher: Fetcher) -> None:
    site.close()
    with pytest.raises(FetchFailed, match="was not fetched") as failed:
        fetcher.fetch(site.url())
    assert "server is up" in failed.value.hint


def test_connections_are_kept(site: Site, fetcher: Fetcher) -> None:
    for _ in range(20):
        fetcher.fetch(site.url())
    assert site.connections == 1


def test_a_kept_connection_that_was_hung_up_is_replaced(site: Site, fetcher: Fetcher) -> None:
    def answer(_: Asked) -> Reply:
        return Raw([]) if site.paths.count("/b") == 1 else html("<p>b")

    site.pages["/b"] = answer
    fetcher.fetch(site.url())
    assert fetcher.fetch(site.url("/b")).content == b"<p>b"
    assert site.paths == ["/", "/b", "/b"]


def test_many_threads_share_a_fetcher(site: Site) -> None:
    for number in range(100):
        site.pages[f"/{number}"] = html(f"<p>{number}")
    with Fetcher(Guard((site.host,)), connections=4) as fetcher, ThreadPoolExecutor(12) as threads:
        pages = list(threads.map(lambda number: fetcher.fetch(site.url(f"/{number}")).content, range(100)))
    assert pages == [b"<p>%d" % number for number in range(100)]
    assert site.connections <= 4


def test_a_deadline_belongs_to_its_page_and_other_threads_do_not_move_it(site: Site) -> None:
    def endless(_: Asked) -> Reply:
        return 200, {"Content-Type": "text/html"}, forever(site, b"x")

    site.pages["/endless"] = endless
    with Fetcher(Guard((site.host,)), timeout=0.5) as fetcher, ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(fetcher.fetch, site.url("/endless"))
        while not waiting.done():
            with suppress(FetchFailed):  # a busy machine may take its time
                fetcher.fetch(site.url())
        with pytest.raises(FetchFailed, match=r"within 0\.5 s"):
            waiting.result()


def test_the_environments_proxy_is_not_used(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    with Site() as proxy:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, proxy.address)
        with Fetcher(Guard((site.host,))) as fetcher:
            assert fetcher.fetch(site.url()).status == 200
        assert proxy.connections == 0


def test_nothing_is_logged_at_ordinary_levels(site: Site, fetcher: Fetcher, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        fetcher.fetch(site.url())
    assert caplog.records == []


# Names


class Recorder(httpcore2.NetworkBackend):
    """A network where nobody answers; it keeps where a connection would have gone."""

    def __init__(self) -> None:
        self.went: list[str] = []

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.NetworkStream:
        self.went.append(host)
        raise httpcore2.ConnectError("nobody there")


def test_a_second_answer_of_dns_changes_nothing() -> None:
    answers = [["93.184.215.14", "2606:2800:21f:cb07:6820:80da:af6b:8b2c"], ["127.0.0.1"]]
    recorder, clock = Recorder(), RequestState()
    clock.deadline = monotonic() + 10
    pinned = PinnedBackend(Guard(resolve=lambda host, port: answers.pop(0)), clock, recorder)
    with pytest.raises(httpcore2.ConnectError):
        pinned.connect_tcp("rebinding.example", 80)
    assert recorder.went == ["93.184.215.14", "2606:2800:21f:cb07:6820:80da:af6b:8b2c"]
    with pytest.raises(AddressRefused):
        pinned.connect_tcp("rebinding.example", 80)
    assert len(recorder.went) == 2


def test_a_name_is_resolved_once_and_still_told_to_the_server(site: Site) -> None:
    asked: list[tuple[str, int]] = []

    def resolve(host: str, port: int) -> list[str]:
        asked.append((host, port))
        return ["127.0.0.1"] if len(asked) == 1 else ["8.8.8.8"]

    with Fetcher(Guard(("intra.example",), resolve=resolve)) as fetcher:
        for _ in range(3):
            fetcher.fetch(f"http://intra.example:{site.port}/")
    assert asked == [("intra.example", site.port)]
    assert {one.headers["host"] for one in site.asked} == {f"intra.example:{site.port}"}


def test_the_next_address_is_tried_when_one_is_down(site: Site) -> None:
    guard = Guard(("intra.example",), resolve=lambda host, port: ["127.0.0.99", "::1", "127.0.0.1"])
    with Fetcher(guard) as fetcher:
        assert fetcher.fetch(f"http://intra.example:{site.port}/").status == 200


def certificate(folder: Path, *names: str) -> Path:
    """Write a certificate that vouches for itself and its key; return the file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0])])
    now = datetime.now(UTC)
    alternatives: list[x509.GeneralName] = [
        x509.DNSName(one) if one[-1].isalpha() else x509.IPAddress(ip_address(one)) for one in names
    ]
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    file = folder / f"{names[0]}.pem"
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    file.write_bytes(made.public_bytes(serialization.Encoding.PEM) + secret)
    return file


@pytest.fixture
def secure(tmp_path: Path) -> Iterator[tuple[Site, ssl.SSLContext, list[str]]]:
    """A site over TLS whose certificate is for secure.example; who trusts it; the names that clients asked for."""
    file = certificate(tmp_path, "secure.example")
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(file)
    told: list[str] = []
    serving.sni_callback = lambda _, name, __: told.append(str(name))
    with Site({"/": html("<p>secure")}, tls=serving) as site:
        yield site, ssl.create_default_context(cafile=str(file)), told


Secure = tuple[Site, ssl.SSLContext, list[str]]


def names(*allowed: str) -> Guard:
    return Guard(allowed, resolve=lambda host, port: ["127.0.0.1"])


def test_tls_is_for_the_name_though_the_connection_is_to_the_address(secure: Secure) -> None:
    site, trusting, told = secure
    with Fetcher(names("secure.example"), tls=trusting) as fetcher:
        assert fetcher.fetch(f"https://secure.example:{site.port}/").content == b"<p>secure"
    assert told == ["secure.example"]


@pytest.mark.parametrize("trusted", [False, True])
def test_a_certificate_must_be_trusted_and_for_this_name(secure: Secure, trusted: bool) -> None:
    site, trusting, _ = secure
    host = "other.example" if trusted else "secure.example"
    with Fetcher(names(host), tls=trusting if trusted else None) as fetcher, pytest.raises(FetchFailed) as failed:
        fetcher.fetch(f"https://{host}:{site.port}/")
    assert "certificate" in failed.value.hint
    assert site.asked == []


def test_a_tls_handshake_that_never_ends_is_left_when_the_time_is_over(site: Site) -> None:
    # A plain server waits for the end of our hello as if it were a request.
    with Fetcher(Guard((site.host,)), timeout=0.3) as fetcher, pytest.raises(FetchFailed, match="was not fetched"):
        fetcher.fetch(f"https://{site.host}/")
