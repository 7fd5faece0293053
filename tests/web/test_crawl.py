"""Crawling a real site on loopback: what is fetched, what is left alone, and what is kept of it."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bunko.errors import (
    AddressRefused,
    BunkoError,
    FetchFailed,
    LibraryReadOnly,
    QueryError,
    SettingsError,
    UnknownName,
)
from bunko.library.library import Library
from bunko.library.open import open_library
from bunko.library.paths import locate_library
from bunko.library.web import CollectResult
from bunko.sources.web import pages, sitemap
from bunko.sources.web.links import matcher
from tests.site import Answer, Asked, Reply, Site, html, text

WebLibrary = Callable[..., Library]


def article(title: str, body: str = "", *links: str, head: str = "") -> Reply:
    anchors = "".join(f"<p><a href='{link}'>{link}</a></p>" for link in links)
    said = body or f"{title}について書いた本文です。"
    return html(
        f"<html><head><title>{title}</title>{head}</head>"
        f"<body><main><h1>{title}</h1><p>{said}</p>{anchors}</main></body></html>"
    )


@pytest.fixture
def opener(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[WebLibrary]:
    """Open a library that may read a site on loopback, without a delay; settings are given as environment names."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    with ExitStack() as stack:

        def opened(*sites: Site, **environ: str) -> Library:
            hosts = ",".join(site.host for site in sites)
            environ = {"BUNKO_CRAWL_ALLOWED_HOSTS": hosts, "RAG_CRAWL_DELAY_SEC": "0"} | environ
            environ.setdefault("BUNKO_SEARCH_FRESHNESS_SECONDS", "0")
            home = locate_library(library=tmp_path / "library", environ=environ)
            return stack.enter_context(open_library(home, environ=environ))

        yield opened


@pytest.fixture
def sites() -> Iterator[Callable[[dict[str, Answer]], Site]]:
    with ExitStack() as stack:
        yield lambda pages: stack.enter_context(Site(pages))


Sites = Callable[[dict[str, Answer]], Site]


def paths(site: Site, found: list[str]) -> set[str]:
    return {url.removeprefix(site.address) for url in found}


def sources(library: Library, query: str, **how: Any) -> list[str]:
    return [hit.uri for hit in library.search(query, **how).hits]


def test_a_crawl_takes_the_links_of_one_page_on_its_site_and_no_further(opener: WebLibrary, sites: Sites) -> None:
    site = sites(
        {
            "/": article("目次", "", "/a", "/b#top", "b#end", "https://elsewhere.example/x", "mailto:a@b.c", "/a"),
            "/a": article("甲", "甲の本文には葡萄がある。", "/deeper"),
            "/b": article("乙", "乙の本文には蜜柑がある。"),
            "/deeper": article("丙"),
        }
    )
    library = opener(site)
    found = library.web.crawl_site(site.url())
    assert paths(site, found.outcome.added) == {"/", "/a", "/b"}
    assert site.paths.count("/b") == 1
    assert "/deeper" not in site.paths
    assert sum(found.chunk_counts.values()) == found.report.total_chunks
    assert sources(library, "蜜柑", top_k=1) == [site.url("/b")]


def test_a_crawl_goes_as_deep_as_it_is_told_and_through_loops_once(opener: WebLibrary, sites: Sites) -> None:
    site = sites({f"/{n}": article(f"頁{n}", "", f"/{n + 1}", f"/{n - 1}", "/0") for n in range(6)})
    library = opener(site)
    assert paths(site, library.web.crawl_site(site.url("/0"), depth=3).outcome.added) == {"/0", "/1", "/2", "/3"}
    assert sorted(set(site.paths)) == sorted(site.paths)
    assert paths(site, library.web.crawl_site(site.url("/0"), depth=0).outcome.held_urls) == {"/0"}


def test_a_pattern_chooses_pages_and_a_wrong_one_is_told_before_anything_is_fetched(
    opener: WebLibrary, sites: Sites
) -> None:
    site = sites(
        {"/": article("目次", "", "/a.html", "/b.txt", "/c.html"), "/a.html": article("甲"), "/c.html": article("乙")}
    )
    library = opener(site)
    found = library.web.crawl_site(site.url(), r"\.html$")
    assert paths(site, found.outcome.added) == {"/a.html", "/c.html"}
    assert "/b.txt" not in site.paths
    assert paths(site, library.web.refresh_pages().outcome.held_urls) == {"/a.html", "/c.html"}
    before = len(site.paths)
    for wrong in ("([", "(a+)+$", "((a+))+$", "(a|a)*$", "(?:a?){30}a{30}", r"((\w+)-?)*$", ".*.*.*.*=", "x" * 501):
        with pytest.raises(QueryError):
            library.web.crawl_site(site.url(), wrong)
    assert len(site.paths) == before
    for right in (
        r"(foo/.*)?bar",
        r"^https?://x/(foo|bar)$",
        r"/(\d{4}-)*[(|*+]?bar",
        r".*/.*bar.*",
        r"(?i)x/(?P<n>b)ar",
    ):
        assert matcher(right)("https://x/bar")


def test_a_crawl_ends_at_its_number_of_pages_and_says_what_it_left(opener: WebLibrary, sites: Sites) -> None:
    site = sites(
        {"/": article("目次", "", *(f"/{n}" for n in range(20)))} | {f"/{n}": article(f"頁{n}") for n in range(20)}
    )
    library = opener(site)
    found = library.web.crawl_site(site.url(), max_pages=5)
    assert (len(found.outcome.held_urls), found.outcome.omitted_links) == (5, 16)
    assert len([path for path in site.paths if path != "/robots.txt"]) == 5


def test_one_page_that_fails_is_counted_and_stops_no_other(opener: WebLibrary, sites: Sites) -> None:
    site = sites(
        {
            "/": article("目次", "", "/ok", "/gone", "/broken", "/picture", "/moved", "/empty", "/slow"),
            "/ok": article("良"),
            "/gone": html("no", 410),
            "/broken": (500, {}, b""),
            "/picture": (200, {"Content-Type": "image/png"}, b"\x89PNG"),
            "/moved": (302, {"Location": "/ok"}, b""),
            "/empty": html("<html><body><main></main></body></html>"),
            "/slow": lambda asked: site.released.wait(20) and article("遅"),  # type: ignore[dict-item, return-value]
        }
    )
    library = opener(site, BUNKO_CRAWL_TIMEOUT_SECONDS="0.5")
    found = library.web.crawl_site(site.url())
    assert paths(site, found.outcome.added) == {"/", "/ok"}
    reasons = {one.uri.removeprefix(site.address): one.reason for one in found.outcome.problems}
    assert set(reasons) == {"/gone", "/broken", "/picture", "/moved", "/empty", "/slow"}
    assert reasons["/gone"] == "the server answered 410"
    assert "redirects to" in reasons["/moved"]
    assert "holds no text" in reasons["/empty"]
    assert found.errors == 6
    assert {one.uri for one in library.web.status()[0].problems} == {one.uri for one in found.outcome.problems}


def test_a_server_that_asks_for_a_pause_gets_it_once(opener: WebLibrary, sites: Sites) -> None:
    def busy(asked: Asked) -> Reply:
        first = site.paths.count("/busy") == 1
        return (429, {"Retry-After": "1"}, b"") if first else article("忙")

    site = sites(
        {"/busy": busy, "/always": (503, {"Retry-After": "1"}, b""), "/long": (503, {"Retry-After": "999"}, b"")}
    )
    library = opener(site)
    found = library.web.add_pages([site.url("/busy"), site.url("/always"), site.url("/long")])
    assert found.outcome.added == [site.url("/busy")]
    assert [site.paths.count(path) for path in ("/busy", "/always", "/long")] == [2, 2, 1]


def test_where_the_first_page_cannot_be_had_the_crawl_fails(opener: WebLibrary, sites: Sites) -> None:
    site = sites({})
    with pytest.raises(FetchFailed, match="404"):
        opener(site).web.crawl_site(site.url("/index"))


def test_a_tool_that_was_made_for_pages_that_never_came_is_removed_again(opener: WebLibrary, sites: Sites) -> None:
    site = sites({"/good": article("善")})
    library = opener(site)
    assert library.web.add_pages([site.url("/gone"), site.url("/none")]).errors == 2
    with pytest.raises(FetchFailed):
        library.web.crawl_site(site.url("/gone"), tool="other")
    assert library.tools() == []
    assert library.web.status() == []
    library.web.add_pages([site.url("/gone"), site.url("/good")])
    library.web.delete_page(site.url("/good"))
    library.web.add_pages([site.url("/gone")])
    assert [tool.name for tool in library.tools()] == ["knowledge"]


def test_a_tool_that_is_deleted_while_its_pages_are_collected_is_told_of(opener: WebLibrary, sites: Sites) -> None:
    site = sites({"/": article("目次", "", "/a"), "/a": article("甲")})
    library = opener(site)

    def answer(_: Asked) -> Reply:
        library.delete_tool("knowledge")
        return article("目次", "", "/a")

    site.pages["/"] = answer
    with pytest.raises(UnknownName, match="was deleted while"):
        library.web.crawl_site(site.url())
    assert library.tools() == []


def test_a_page_that_is_deleted_while_it_is_asked_for_again_stays_away(opener: WebLibrary, sites: Sites) -> None:
    site = sites({"/same": article("同"), "/new": article("旧"), "/kept": article("残")})
    library = opener(site, BUNKO_CRAWL_CONCURRENCY="1")
    library.web.add_pages([site.url(path) for path in ("/same", "/new", "/kept")])

    def answer(asked: Asked) -> Reply:
        library.web.delete_page(site.url(asked.path))
        return (304, {}, b"") if asked.path == "/same" else article("新")

    site.pages |= {"/same": answer, "/new": answer}
    for page in library.store.pages(1):
        library.store.write_pages(1, upsert=[replace(page, etag='"1"')])
    found = library.web.refresh_pages()
    assert found.outcome.held_urls == [site.url("/kept")]
    assert [page.url for page in library.store.pages(1)] == [site.url("/kept")]
    assert [problem for one in library.web.status() for problem in one.problems] == []


def test_a_page_whose_content_was_lost_is_fetched_whole(opener: WebLibrary, sites: Sites) -> None:
    def answer(asked: Asked) -> Reply:
        return (304, {}, b"") if "if-none-match" in asked.headers else html("<main><p>葡萄。</p></main>", etag='"1"')

    site = sites({"/a": answer})
    library = opener(site)
    library.web.add_pages([site.url("/a")])
    [page] = library.store.pages(1)
    library.store.write_pages(1, upsert=[page], remove=[page.url])
    library.web.refresh_pages()
    assert library.store.page_content(1, page.url) is not None
    assert library.web.refresh_pages().outcome.unchanged == [page.url]
    assert sources(library, "葡萄", mode="bm25") == [page.url]


def test_robots_are_obeyed_and_what_they_forbid_is_counted(opener: WebLibrary, sites: Sites) -> None:
    pages: dict[str, Answer] = {
        "/": article("目次", "", "/open", "/secret/a"),
        "/open": article("開"),
        "/secret/a": article("秘"),
        "/robots.txt": text("User-agent: BunkoBot\nDisallow: /secret/\n"),
    }
    site = sites(pages)
    library = opener(site)
    found = library.web.crawl_site(site.url())
    assert [one.uri for one in found.outcome.skipped] == [site.url("/secret/a")]
    assert "/secret/a" not in site.paths
    assert found.errors == 0
    refused = library.web.add_pages([site.url("/secret/a")])
    assert isinstance(refused.outcome.errors[site.url("/secret/a")], AddressRefused)
    library.close()
    library = opener(site, RAG_RESPECT_ROBOTS_TXT="false")
    assert library.web.add_pages([site.url("/secret/a")]).outcome.added == [site.url("/secret/a")]


def test_requests_to_one_host_keep_the_longer_of_two_delays(opener: WebLibrary, sites: Sites) -> None:
    pages: dict[str, Answer] = {"/": article("目次", "", "/a", "/b"), "/a": article("甲"), "/b": article("乙")}
    own, theirs = sites(dict(pages)), sites(pages | {"/robots.txt": text("User-agent: *\nCrawl-delay: 0.4\n")})
    library = opener(own, theirs, RAG_CRAWL_DELAY_SEC="0.2")
    for site, delay in ((own, 0.2), (theirs, 0.4)):
        library.web.crawl_site(site.url())
        times = [asked.time for asked in site.asked if asked.path != "/robots.txt"]
        assert len(times) == 3
        assert all(later - earlier >= delay - 0.05 for earlier, later in pairwise(times))


def test_addresses_of_this_machine_are_refused_unless_they_are_named(opener: WebLibrary, sites: Sites) -> None:
    site = sites({"/": article("内", "", "/a")})
    library = opener(BUNKO_CRAWL_ALLOWED_HOSTS="")
    for url in (
        site.url(),
        "file:///etc/passwd",
        "ftp://example.com/",
        "http://169.254.169.254/latest",
        "http://[::1]/",
    ):
        with pytest.raises(AddressRefused):
            library.web.add_pages([url])
        with pytest.raises(AddressRefused):
            library.web.crawl_site(url)
    assert site.asked == []
    assert library.tools() == []


def test_a_redirect_is_followed_only_where_that_is_set_and_never_inside(opener: WebLibrary, sites: Sites) -> None:
    inside = sites({"/": article("内")})
    site = sites(
        {
            "/old": (301, {"Location": "/new"}, b""),
            "/new": article("新"),
            "/in": (302, {"Location": inside.url()}, b""),
            "/round": (302, {"Location": "/round"}, b""),
        }
    )
    library = opener(site)
    with pytest.raises(FetchFailed, match="redirects"):
        raise library.web.add_pages([site.url("/old")]).outcome.errors[site.url("/old")]
    library.close()
    library = opener(site, BUNKO_CRAWL_FOLLOW_REDIRECTS="3")
    found = library.web.add_pages([site.url("/old"), site.url("/in"), site.url("/round")])
    assert found.outcome.added == [site.url("/new")]
    assert found.outcome.aliases == {site.url("/old"): site.url("/new")}
    assert {url: error.code for url, error in found.outcome.errors.items()} == {
        site.url("/in"): "refused",
        site.url("/round"): "fetch",
    }
    assert inside.asked == []


def test_a_page_is_held_once_under_the_address_it_names_as_its_own(opener: WebLibrary, sites: Sites) -> None:
    real = "<link rel='canonical' href='/page'>"
    site = sites(
        {
            "/": article("目次", "", "/page?from=a", "/page?from=b", "/lie"),
            "/page": article("真", "真の本文", head=real),
            "/lie": article("嘘", "別の本文", head=real),
        }
    )
    library = opener(site)
    found = library.web.crawl_site(site.url())
    # Many sites name one address on every page: a page that says something else keeps its own.
    assert paths(site, found.outcome.held_urls) == {"/", "/page", "/lie"}
    assert sources(library, "真の本文", top_k=1) == [site.url("/page")]
    assert library.web.delete_page(site.url("/page?from=b")) == (site.url("/page"), 1)


def test_a_page_that_asks_not_to_be_indexed_is_left_out_of_a_crawl_and_its_links_are_not(
    opener: WebLibrary, sites: Sites
) -> None:
    site = sites(
        {
            "/": article("目次", "", "/list"),
            "/list": article("一覧", "", "/item", head="<meta name='robots' content='noindex'>"),
            "/item": article("品"),
        }
    )
    library = opener(site)
    found = library.web.crawl_site(site.url(), depth=2)
    assert paths(site, found.outcome.added) == {"/", "/item"}
    assert [one.reason for one in found.outcome.skipped] == ["it asks not to be indexed"]
    again = library.web.refresh_pages()
    assert (again.outcome.added, len(again.outcome.unchanged)) == ([], 2)
    assert library.web.add_pages([site.url("/list")]).outcome.added == [site.url("/list")]


@pytest.mark.parametrize(
    ("tags", "kept"),
    [
        (["noindex"], False),
        (["nofollow", "NoIndex, nosnippet"], False),
        (["bunkobot: nofollow, none"], False),
        (["otherbot: noindex, nofollow"], True),
        (["otherbot: nofollow", "noindex"], False),
        (["unavailable_after: 25 Jun 2030, max-snippet: 20"], True),
        (["all, max-image-preview: none"], True),
    ],
)
def test_a_header_can_ask_not_to_be_indexed_too(opener: WebLibrary, sites: Sites, tags: list[str], kept: bool) -> None:
    named = [("Content-Type", "text/plain; charset=utf-8"), *(("X-Robots-Tag", tag) for tag in tags)]
    site = sites({"/": article("目次", "", "/note"), "/note": (200, named, "走り書き".encode())})
    found = opener(site).web.crawl_site(site.url())
    assert (site.url("/note") in found.outcome.added) is kept
    assert [one.reason for one in found.outcome.skipped] == ([] if kept else ["it asks not to be indexed"])


def test_sitemaps_and_llms_txt_name_pages_too(opener: WebLibrary, sites: Sites) -> None:
    def urls(*names: str) -> str:
        inside = "".join(f"<url><loc>{site.url(name)}</loc></url>" for name in names)
        return f"<urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'>{inside}</urlset>"

    site = sites({f"/{name}": article(name) for name in ("one", "two", "three", "four")})
    index = "".join(f"<sitemap><loc>{site.url(name)}</loc></sitemap>" for name in ("/a.xml", "/b.xml.gz", "/bad.xml"))
    site.pages |= {
        "/": article("目次"),
        "/robots.txt": text(f"User-agent: *\nSitemap: {site.url('/index.xml')}\n"),
        "/index.xml": text(f"<sitemapindex>{index}</sitemapindex>", kind="application/xml"),
        "/a.xml": text(urls("/one"), kind="application/xml"),
        "/b.xml.gz": (200, {"Content-Type": "application/gzip"}, gzip.compress(urls("/two").encode())),
        "/bad.xml": text("<!DOCTYPE x [<!ENTITY a 'b'>]><urlset>&a;</urlset>", kind="application/xml"),
        "/llms.txt": text("# Site\n- [Three](/three): the third\n- [Four](four)\n"),
    }
    library = opener(site)
    found = library.web.crawl_site(site.url(), sitemap=True)
    assert paths(site, found.outcome.added) == {"/", "/one", "/two", "/three", "/four"}
    assert [one.uri for one in found.outcome.problems] == [site.url("/bad.xml")]
    assert "entities" in found.outcome.problems[0].reason


@given(st.binary(max_size=300) | st.text(alphabet="<>/?!&;locurset[] \n", max_size=200).map(str.encode))
def test_whatever_is_served_as_a_sitemap_is_read_or_told_of(data: bytes) -> None:
    told: list[str] = []
    found = list(
        sitemap.sitemap_urls(lambda url: data, ["https://x/s.xml"], lambda url, error: told.append(error.message))
    )
    assert all(isinstance(url, str) for url in found)
    assert len(told) <= 1


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-16-le", "utf-16-be"])
def test_a_sitemap_with_entities_is_refused_in_any_encoding(encoding: str) -> None:
    bomb = f'<!DOCTYPE u [<!ENTITY a "{"x" * 99}">]><urlset><url><loc>http://e.example/&a;&a;</loc></url></urlset>'
    noted: list[str] = []
    found = sitemap.sitemap_urls(
        lambda _: bomb.encode(encoding), ["http://e.example/s"], lambda url, _: noted.append(url)
    )
    assert not any("xxx" in url for url in found)


def test_a_sitemap_in_utf_16_is_read() -> None:
    data = "<urlset><url><loc>http://e.example/甲</loc></url></urlset>".encode("utf-16")
    assert list(sitemap.sitemap_urls(lambda _: data, ["http://e.example/s"], lambda *_: None)) == [
        "http://e.example/甲"
    ]


def test_one_address_of_a_sitemap_that_is_none_spoils_no_other() -> None:
    data = b"<urlset><url><loc>http://[</loc></url><url><loc>/ok</loc></url><url><loc/></url></urlset>"
    assert list(sitemap.sitemap_urls(lambda url: data, ["https://x/s.xml"], print)) == ["https://x/ok"]
    assert sitemap.llms_txt_urls(lambda url: b"[a](http://[) [b](ok)", "https://x/llms.txt") == ["https://x/ok"]


def test_a_bomb_and_a_huge_page_cost_their_limit_and_no_more(opener: WebLibrary, sites: Sites) -> None:
    bomb = gzip.compress(b"a" * 30_000_000)
    site = sites(
        {
            "/bomb": (200, {"Content-Type": "text/html", "Content-Encoding": "gzip"}, bomb),
            "/huge": (200, {"Content-Type": "text/html"}, b"<p>" + b"x" * 300_000),
        }
    )
    library = opener(site, BUNKO_CRAWL_MAX_BYTES="200000")
    found = library.web.add_pages([site.url("/bomb"), site.url("/huge")])
    assert {error.code for error in found.outcome.errors.values()} == {"fetch"}
    assert library.web.status() == []  # of what never came nothing is kept


def test_pages_in_old_encodings_and_without_a_name_for_it_come_out_right(opener: WebLibrary, sites: Sites) -> None:
    page = (
        "<html><head><meta charset='{}'><title>天気</title></head><body><main><p>明日は{}の予報です。</p></main></body>"
    )
    site = sites(
        {
            "/sjis": (200, {"Content-Type": "text/html"}, page.format("Shift_JIS", "大雪").encode("cp932")),
            "/euc": (200, {"Content-Type": "text/html; charset=euc-jp"}, page.format("utf-8", "快晴").encode("euc-jp")),
            "/plain": (200, {"Content-Type": "text/plain; charset=iso-2022-jp"}, "台風の注意報".encode("iso-2022-jp")),
        }
    )
    library = opener(site)
    library.web.add_pages([site.url("/sjis"), site.url("/euc"), site.url("/plain")])
    for word, path in (("大雪", "/sjis"), ("快晴", "/euc"), ("台風", "/plain")):
        assert sources(library, word, mode="bm25")[0] == site.url(path)


@pytest.mark.parametrize("codec", ["utf-8", "cp932", "euc_jp"])
def test_plain_text_behind_a_server_that_was_never_set_up_comes_out_right(
    opener: WebLibrary, sites: Sites, codec: str
) -> None:
    said = "吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。" * 3
    kinds = {"/a": "text/plain; charset=ISO-8859-1", "/b": "text/plain; charset=no-such", "/c.md": "text/plain"}
    site = sites({path: (200, {"Content-Type": kind}, said.encode(codec)) for path, kind in kinds.items()})
    library = opener(site)
    library.web.add_pages([site.url(path) for path in kinds])
    assert set(sources(library, "見当がつかぬ", mode="bm25")) == {site.url(path) for path in kinds}


def test_plain_text_hides_nothing() -> None:
    hidden = "見える\u200bふつうの文\x1b[31mです。\u202e".encode()
    for kind in ("text/plain", "text/markdown"):
        for charset in ("utf-8", ""):
            assert pages.read_page(hidden, media_type=kind, charset=charset).text == "見えるふつうの文[31mです。"


@pytest.mark.parametrize("charset", ["punycode", "utf-7", "idna", "unicode_escape", "zip"])
def test_no_server_chooses_a_codec_that_hides_text_or_takes_minutes(charset: str) -> None:
    said = r"a+AGE-\u0061 zz9-tda"
    assert pages.read_page(said.encode(), media_type="text/plain", charset=charset).text == said


def test_a_refresh_asks_with_what_it_knows_and_takes_only_what_changed(opener: WebLibrary, sites: Sites) -> None:
    def tagged(asked: Asked) -> Reply:
        if asked.headers.get("if-none-match") == '"1"':
            return 304, {"ETag": '"1"'}, b""
        return html("<main><p>変わらない頁の葡萄</p></main>", etag='"1"')

    site = sites(
        {"/same": tagged, "/other": article("変", "古い本文の蜜柑"), "/gone": article("消", "消える本文の林檎")}
    )
    library = opener(site)
    library.web.add_pages([site.url(path) for path in ("/same", "/other", "/gone")])
    [fetched] = [page.fetched_at for page in library.store.pages(1, [site.url("/same")])]
    site.pages["/other"] = article("変", "新しい本文の西瓜")
    site.pages["/gone"] = html("gone", 410)
    found = library.web.refresh_pages()
    assert paths(site, found.outcome.unchanged) == {"/same"}
    assert paths(site, found.outcome.updated) == {"/other"}
    assert [one.reason for one in found.outcome.problems] == ["the server answered 410; what it said before is kept"]
    assert library.store.pages(1, [site.url("/same")])[0].fetched_at == fetched
    assert (found.report.updated, found.report.deleted) == (1, 0)
    assert sources(library, "西瓜", mode="bm25") == [site.url("/other")]
    assert sources(library, "蜜柑", mode="bm25") == []
    assert sources(library, "林檎", mode="bm25") == [site.url("/gone")]
    site.pages["/gone"] = article("消", "")
    site.pages["/other"] = html("<html><body></body></html>")
    found = library.web.refresh_pages([site.url("/other")])
    assert "kept" in found.outcome.problems[0].reason
    assert sources(library, "西瓜", mode="bm25") == [site.url("/other")]


def test_a_page_that_is_added_again_replaces_what_it_said(opener: WebLibrary, sites: Sites) -> None:
    site = sites({"/a": article("甲", "最初は葡萄。")})
    library = opener(site)
    assert library.web.add_pages([site.url("/a#part")]).outcome.added == [site.url("/a")]
    site.pages["/a"] = article("甲", "次は蜜柑。")
    assert library.web.add_pages([site.url("/a")]).outcome.updated == [site.url("/a")]
    assert library.web.add_pages([site.url("/a")]).outcome.unchanged == [site.url("/a")]
    assert (sources(library, "葡萄", mode="bm25"), len(sources(library, "蜜柑", mode="bm25"))) == ([], 1)


def test_searching_and_rebuilding_ask_the_network_for_nothing(opener: WebLibrary, sites: Sites) -> None:
    site = sites({"/": article("目次", "", "/a"), "/a": article("甲", "甲の葡萄")})
    library = opener(site)
    library.web.crawl_site(site.url())
    before = len(site.asked)
    sources(library, "葡萄")
    report = library.import_tools(["knowledge"], "replace")
    assert (report.updated, report.problems) == (2, [])
    assert library.reindex().unchanged == 2
    assert sources(library, "葡萄")[0] == site.url("/a")
    assert len(site.asked) == before
    library.close()
    # Cut another way, from what was fetched long ago.
    library = opener(site, RAG_CHUNK_SIZE="40")
    library.import_tools(["knowledge"], "replace")
    assert all(len(hit.chunk.text) <= 40 for hit in library.search("葡萄").hits)
    assert len(site.asked) == before


def test_a_crawl_that_is_stopped_goes_on_and_fetches_nothing_twice(opener: WebLibrary, sites: Sites) -> None:
    pages: dict[str, Answer] = {f"/{n}": article(f"頁{n}") for n in range(12)}
    site = sites(pages | {"/": article("目次", "", *pages)})
    library = opener(site, BUNKO_CRAWL_CONCURRENCY="1")
    seen = threading.Event()
    found = library.web.crawl_site(
        site.url(), progress=lambda done: seen.set() if done.pages >= 5 else None, stopped=seen.is_set
    )
    assert found.outcome.interrupted
    [unfinished] = library.web.status()[0].unfinished_crawls
    assert unfinished.url == site.url()
    assert unfinished.waiting_pages > 0
    held = {page.url for page in library.store.pages(1) if page.state == "held"}
    assert len(held) >= 5
    library.close()
    before = len(site.asked)
    library = opener(site)
    found = library.web.crawl_site(site.url())
    again = {site.address + asked.path for asked in site.asked[before:]}
    assert found.resumed
    assert not again & held
    assert library.web.status()[0].pages == 13
    assert library.web.status()[0].unfinished_crawls == []
    assert {page.state for page in library.store.pages(1)} == {"held"}


def test_a_crawl_in_other_words_begins_anew(opener: WebLibrary, sites: Sites) -> None:
    pages: dict[str, Answer] = {f"/{n}": article(f"頁{n}") for n in range(8)}
    site = sites(pages | {"/": article("目次", "", *pages)})
    library = opener(site, BUNKO_CRAWL_CONCURRENCY="1")
    seen = threading.Event()
    library.web.crawl_site(
        site.url(), progress=lambda done: seen.set() if done.pages >= 2 else None, stopped=seen.is_set
    )
    found = library.web.crawl_site(site.url(), "/[12]$")
    assert not found.resumed
    assert paths(site, found.outcome.held_urls) == {"/1", "/2"}
    assert "waiting" not in {page.state for page in library.store.pages(1)}


def test_what_safe_browsing_warns_of_is_not_fetched(opener: WebLibrary, sites: Sites) -> None:
    import json

    def answer(asked: Asked) -> Reply:
        urls = [one["url"] for one in json.loads(asked.body)["threatInfo"]["threatEntries"]]
        bad = [{"threat": {"url": url}, "threatType": "MALWARE"} for url in urls if "evil" in url]
        return 200, {"Content-Type": "application/json"}, json.dumps({"matches": bad}).encode()

    google = sites({"/v4/threatMatches:find": answer})
    site = sites({"/": article("目次", "", "/good", "/evil"), "/good": article("善"), "/evil": article("悪")})
    settings = {"RAG_URL_SAFETY_CHECK": "true", "BUNKO_SAFETY_BASE_URL": google.address}
    with pytest.raises(SettingsError, match="no key"):
        opener(site, google, **settings).web.add_pages([site.url("/good")])
    library = opener(site, google, GOOGLE_SAFE_BROWSING_API_KEY="key", **settings)
    found = library.web.crawl_site(site.url())
    assert paths(site, found.outcome.added) == {"/", "/good"}
    assert [error.code for error in found.outcome.errors.values()] == ["refused"]
    assert "MALWARE" in found.outcome.problems[0].reason
    assert "/evil" not in site.paths
    evil = sites({"/evil": article("悪")})
    with pytest.raises(AddressRefused, match="MALWARE"):
        opener(evil, google, GOOGLE_SAFE_BROWSING_API_KEY="key", **settings).web.crawl_site(
            evil.url("/evil"), sitemap=True
        )
    assert evil.paths == []


def test_a_name_in_one_row_of_a_table_is_found_with_its_header(opener: WebLibrary, sites: Sites) -> None:
    rows = "".join(f"<tr><td>まもの{n}</td><td>{n * 7}</td><td>{n * 3}</td></tr>" for n in range(90))
    king = "<tr><td>りゅうおう</td><td>200</td><td>140</td></tr>"
    table = f"<table><tr><th>なまえ</th><th>HP</th><th>こうげき</th></tr>{rows}{king}</table>"
    site = sites(
        {"/m": html(f"<html><body><main><h1>モンスター一覧</h1><p>一覧です。</p>{table}</main></body></html>")}
    )
    site.pages |= {f"/{n}": article(f"頁{n}") for n in range(5)}
    library = opener(site)
    library.web.add_pages([site.url("/m"), *(site.url(f"/{n}") for n in range(5))])
    hit = library.search("りゅうおう").hits[0]
    assert hit.uri == site.url("/m")
    assert "りゅうおう" in hit.chunk.text
    assert "なまえ" in hit.chunk.text
    assert "200" in hit.chunk.text
    assert "まもの3 " not in hit.chunk.text  # not the whole table
    assert len(hit.chunk.text) <= 800


def test_exact_words_always_find_their_page_whatever_the_threshold(opener: WebLibrary, sites: Sites) -> None:
    site = sites({f"/{n}": article(f"頁{n}", f"合言葉は零戦{n}式です。ほかの話もある。") for n in range(8)})
    library = opener(site, RAG_SIMILARITY_THRESHOLD="0.1", RAG_MIN_COMBINED_SCORE="0.99", RAG_VECTOR_WEIGHT="0.9")
    library.web.add_pages([site.url(f"/{n}") for n in range(8)])
    for number in range(8):
        assert sources(library, f"零戦{number}式")[0] == site.url(f"/{number}")


def test_deleting_forgets_a_page_and_what_it_said(opener: WebLibrary, sites: Sites) -> None:
    site = sites({"/a": article("甲", "甲の葡萄"), "/b": article("乙", "乙の蜜柑")})
    library = opener(site)
    library.web.add_pages([site.url("/a"), site.url("/b")])
    assert library.web.delete_page(site.url("/a")) == (site.url("/a"), 1)
    assert sources(library, "葡萄", mode="bm25") == []
    assert library.web.delete_page(site.url("/b#x"))[1] == 1
    assert library.web.status()[0].pages == 0
    assert sources(library, "蜜柑") == []
    with pytest.raises(UnknownName, match="No tool has"):
        library.web.delete_page(site.url("/a"))


def test_a_citation_of_a_page_can_be_checked_and_a_library_that_is_not_ours_is_left_alone(
    opener: WebLibrary, sites: Sites, tmp_path: Path
) -> None:
    site = sites({"/a": article("甲", "甲の葡萄")})
    library = opener(site)
    library.web.add_pages([site.url("/a")])
    answer = library.search("葡萄")
    [passage] = library.passages(answer.hits)
    assert library.verify_citation(passage.citation, passage.hash).status == "same"
    site.pages["/a"] = article("甲", "甲の蜜柑")
    library.web.refresh_pages()
    assert library.verify_citation(passage.citation, passage.hash).status == "changed"
    library.close()
    environ = {"BUNKO_CRAWL_ALLOWED_HOSTS": site.host}
    before = len(site.asked)
    with open_library(
        locate_library(library=tmp_path / "library", environ=environ), environ=environ, read_only=True
    ) as closed:
        with pytest.raises(LibraryReadOnly):
            closed.web.refresh_pages()
        assert closed.search("蜜柑").hits[0].trust == "web"
    assert len(site.asked) == before


def test_pages_belong_to_the_tool_that_is_named_or_the_only_one(opener: WebLibrary, sites: Sites) -> None:
    site = sites({"/a": article("甲"), "/b": article("乙")})
    library = opener(site)
    assert library.web.add_pages([site.url("/a")], tool="site").tool == "site"
    assert library.web.add_pages([site.url("/b")]).tool == "site"
    library.web.add_pages([site.url("/a")], tool="other")
    with pytest.raises(UnknownName, match="knowledge"):
        library.web.refresh_pages()
    assert library.web.add_pages([site.url("/b")]).tool == "knowledge"
    found: list[CollectResult] = [library.web.refresh_pages(tool=name) for name in ("site", "other", "knowledge")]
    assert [len(one.outcome.unchanged) for one in found] == [2, 1, 1]
    with pytest.raises(BunkoError):
        library.web.refresh_pages(tool="nothing")
