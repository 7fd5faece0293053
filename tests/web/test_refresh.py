"""Refreshing pages and resuming crawls."""

from __future__ import annotations

import threading

from bunko.runtime.observer import Observer
from tests.site import Answer, Asked, Reply, html
from tests.web.articles import Sites, WebLibrary, article, paths, search_uris


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
    [fetched] = [page.fetched_at for page in library.store.pages.select(1, [site.url("/same")])]
    site.pages["/other"] = article("変", "新しい本文の西瓜")
    site.pages["/gone"] = html("gone", 410)
    found = library.web.refresh_pages()
    assert paths(site, found.outcome.unchanged) == {"/same"}
    assert paths(site, found.outcome.updated) == {"/other"}
    assert [one.reason for one in found.outcome.problems] == ["the server answered 410; the stored version is kept"]
    assert library.store.pages.select(1, [site.url("/same")])[0].fetched_at == fetched
    assert (found.report.updated, found.report.deleted) == (1, 0)
    assert search_uris(library, "西瓜", mode="bm25") == [site.url("/other")]
    assert search_uris(library, "蜜柑", mode="bm25") == []
    assert search_uris(library, "林檎", mode="bm25") == [site.url("/gone")]
    site.pages["/gone"] = article("消", "")
    site.pages["/other"] = html("<html><body></body></html>")
    found = library.web.refresh_pages([site.url("/other")])
    assert "kept" in found.outcome.problems[0].reason
    assert search_uris(library, "西瓜", mode="bm25") == [site.url("/other")]


def test_a_page_that_is_added_again_replaces_what_it_said(opener: WebLibrary, sites: Sites) -> None:
    site = sites({"/a": article("甲", "最初は葡萄。")})
    library = opener(site)
    assert library.web.add_pages([site.url("/a#part")]).outcome.added == [site.url("/a")]
    site.pages["/a"] = article("甲", "次は蜜柑。")
    assert library.web.add_pages([site.url("/a")]).outcome.updated == [site.url("/a")]
    assert library.web.add_pages([site.url("/a")]).outcome.unchanged == [site.url("/a")]
    assert (search_uris(library, "葡萄", mode="bm25"), len(search_uris(library, "蜜柑", mode="bm25"))) == ([], 1)


def test_searching_and_rebuilding_ask_the_network_for_nothing(opener: WebLibrary, sites: Sites) -> None:
    site = sites({"/": article("目次", "", "/a"), "/a": article("甲", "甲の葡萄")})
    library = opener(site)
    library.web.crawl_site(site.url())
    before = len(site.asked)
    search_uris(library, "葡萄")
    report = library.import_tools(["knowledge"], "replace")
    assert (report.updated, report.problems) == (2, [])
    assert library.reindex().unchanged == 2
    assert search_uris(library, "葡萄")[0] == site.url("/a")
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
        site.url(),
        observer=Observer(on_crawl=lambda done: seen.set() if done.pages >= 5 else None, is_cancelled=seen.is_set),
    )
    assert found.outcome.interrupted
    [unfinished] = library.web.status()[0].unfinished_crawls
    assert unfinished.url == site.url()
    assert unfinished.waiting_pages > 0
    held = {page.url for page in library.store.pages.select(1) if page.state == "held"}
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
    assert {page.state for page in library.store.pages.select(1)} == {"held"}


def test_a_crawl_in_other_words_begins_anew(opener: WebLibrary, sites: Sites) -> None:
    pages: dict[str, Answer] = {f"/{n}": article(f"頁{n}") for n in range(8)}
    site = sites(pages | {"/": article("目次", "", *pages)})
    library = opener(site, BUNKO_CRAWL_CONCURRENCY="1")
    seen = threading.Event()
    library.web.crawl_site(
        site.url(),
        observer=Observer(on_crawl=lambda done: seen.set() if done.pages >= 2 else None, is_cancelled=seen.is_set),
    )
    found = library.web.crawl_site(site.url(), "/[12]$")
    assert not found.resumed
    assert paths(site, found.outcome.stored_urls) == {"/1", "/2"}
    assert "waiting" not in {page.state for page in library.store.pages.select(1)}
