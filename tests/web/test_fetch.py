"""Fetching pages from real servers on loopback: responses, redirects, broken servers and connections."""

from __future__ import annotations

import gc
import logging
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bunko.errors import AddressRefused, FetchFailed
from bunko.sources.web.fetch import Fetcher
from bunko.sources.web.ssrf_guard import Guard
from tests.site import Asked, Raw, Reply, Site, html
from tests.web.replies import forever


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


@pytest.mark.slow
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


def test_a_fetcher_that_is_closed_ends_with_the_page_that_another_thread_waits_for(site: Site) -> None:
    asked, closed = threading.Event(), threading.Event()

    def answer(_: Asked) -> Reply:
        asked.set()
        closed.wait()
        return html("<p>slow")

    site.pages["/slow"] = answer
    fetcher = Fetcher(Guard((site.host,)))
    with ThreadPoolExecutor(1) as threads:
        page = threads.submit(fetcher.fetch, site.url("/slow"))
        asked.wait()
        fetcher.close()
        closed.set()
        assert page.result().content == b"<p>slow"
    gc.collect()  # a socket that is still open would be a warning here


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
