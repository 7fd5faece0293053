"""Crawling real sites on loopback: links, limits, robots.txt, redirects and pages that fail."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import pytest

from bunko.errors import (
    AddressRefused,
    FetchFailed,
    QueryError,
    SettingsError,
    UnknownName,
)
from bunko.library.web.collector import CollectResult
from bunko.types import Problem
from tests.site import Answer, Asked, Reply, html, text
from tests.web.articles import Sites, WebLibrary, article, paths, search_uris


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
    assert search_uris(library, "蜜柑", top_k=1) == [site.url("/b")]


def test_a_crawl_goes_as_deep_as_it_is_told_and_through_loops_once(opener: WebLibrary, sites: Sites) -> None:
    site = sites({f"/{n}": article(f"頁{n}", "", f"/{n + 1}", f"/{n - 1}", "/0") for n in range(6)})
    library = opener(site)
    assert paths(site, library.web.crawl_site(site.url("/0"), depth=3).outcome.added) == {"/0", "/1", "/2", "/3"}
    assert sorted(set(site.paths)) == sorted(site.paths)
    assert paths(site, library.web.crawl_site(site.url("/0"), depth=0).outcome.stored_urls) == {"/0"}


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
    assert paths(site, library.web.refresh_pages().outcome.stored_urls) == {"/a.html", "/c.html"}
    before = len(site.paths)
    for wrong in ("([", "(?!a)", "x" * 501):
        with pytest.raises(QueryError):
            library.web.crawl_site(site.url(), wrong)
    assert len(site.paths) == before


def test_a_crawl_ends_at_its_number_of_pages_and_says_what_it_left(opener: WebLibrary, sites: Sites) -> None:
    pages: dict[str, Answer] = {"/": article("目次", "", *(f"/{n}" for n in range(20)))}
    site = sites(pages | {f"/{n}": article(f"頁{n}") for n in range(20)})
    library = opener(site)
    found = library.web.crawl_site(site.url(), max_pages=5)
    assert (len(found.outcome.stored_urls), found.outcome.omitted_links) == (5, 16)
    assert len([path for path in site.paths if path != "/robots.txt"]) == 5


@pytest.mark.slow
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
    assert "contains no text" in reasons["/empty"]
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
    for page in library.store.pages.select(1):
        library.store.pages.write(1, upsert=[replace(page, etag='"1"')])
    found = library.web.refresh_pages()
    assert found.outcome.stored_urls == [site.url("/kept")]
    assert [page.url for page in library.store.pages.select(1)] == [site.url("/kept")]
    assert [problem for one in library.web.status() for problem in one.problems] == []


def test_a_page_whose_content_was_lost_is_fetched_whole(opener: WebLibrary, sites: Sites) -> None:
    def answer(asked: Asked) -> Reply:
        return (304, {}, b"") if "if-none-match" in asked.headers else html("<main><p>葡萄。</p></main>", etag='"1"')

    site = sites({"/a": answer})
    library = opener(site)
    library.web.add_pages([site.url("/a")])
    [page] = library.store.pages.select(1)
    library.store.pages.write(1, upsert=[page], remove=[page.url])
    library.web.refresh_pages()
    assert library.store.pages.content(1, page.url) is not None
    assert library.web.refresh_pages().outcome.unchanged == [page.url]
    assert search_uris(library, "葡萄", mode="bm25") == [page.url]


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


@pytest.mark.slow
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
    assert paths(site, found.outcome.stored_urls) == {"/", "/page", "/lie"}
    assert search_uris(library, "真の本文", top_k=1) == [site.url("/page")]
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


def test_a_page_that_safe_browsing_reports_later_leaves_the_results_and_is_marked(
    opener: WebLibrary, sites: Sites
) -> None:
    reported: set[str] = set()

    def answer(asked: Asked) -> Reply:
        urls = [entry["url"] for entry in json.loads(asked.body)["threatInfo"]["threatEntries"]]
        bad = [{"threat": {"url": url}, "threatType": "MALWARE"} for url in urls if url in reported]
        return 200, {"Content-Type": "application/json"}, json.dumps({"matches": bad}).encode()

    google = sites({"/v4/threatMatches:find": answer})
    site = sites({"/good": article("善", "葡萄の話"), "/evil": article("悪", "葡萄の罠")})
    site.pages["/short"] = (302, {"Location": "/evil"}, b"")
    library = opener(
        site, RAG_URL_SAFETY_CHECK="true", RAG_URL_SAFETY_CACHE_TTL="0", BUNKO_SAFETY_BASE_URL=google.address,
        GOOGLE_SAFE_BROWSING_API_KEY="key", BUNKO_CRAWL_FOLLOW_REDIRECTS="1",
    )  # fmt: skip
    good, evil = site.url("/good"), site.url("/evil")

    def crawl_reported() -> None:
        with pytest.raises(AddressRefused, match="MALWARE"):
            library.web.crawl_site(evil)

    collectors: dict[str, Callable[[], CollectResult | None]] = {
        "refresh": library.web.refresh_pages,
        "add": lambda: library.web.add_pages([evil]),
        "add through a redirect": lambda: library.web.add_pages([site.url("/short")]),
        "crawl": crawl_reported,
    }
    for name, collect in collectors.items():
        reported.clear()
        library.web.add_pages([good, evil])
        assert set(search_uris(library, "葡萄")) == {good, evil}
        reported.add(evil)
        if (result := collect()) is not None:
            [problem] = result.outcome.problems
            assert "Google Safe Browsing reports MALWARE" in problem.reason
            assert problem.reason.endswith("; its stored version was removed") == (problem.uri == evil)
        assert search_uris(library, "葡萄") == [good], name
        [status] = library.web.status()
        assert (status.pages, [page.url for page in status.page_list]) == (1, [good])
        assert Problem(evil, "Google Safe Browsing reports MALWARE") in status.problems
        library.web.refresh_pages()
        assert search_uris(library, "葡萄") == [good], "still"
    reported.clear()
    library.web.refresh_pages()
    assert set(search_uris(library, "葡萄")) == {good, evil}
    assert library.web.status()[0].problems == []


def test_what_safe_browsing_warns_of_is_not_fetched(opener: WebLibrary, sites: Sites) -> None:
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
