"""What a library remembers about sites across calls and processes: pace, robots.txt and Safe Browsing answers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from bunko.errors import AddressRefused, FetchFailed
from bunko.sources.web.site_cache import HostPacer, SiteCache
from bunko.stores import memory
from bunko.stores.sqlite.store import Sqlite
from tests.site import Answer, Asked, Reply, text
from tests.web.articles import Sites, WebLibrary, article, paths

PAGES: dict[str, Answer] = {f"/{number}": article(f"頁{number}") for number in range(4)}


@pytest.mark.slow
def test_robots_are_asked_once_and_their_delay_is_kept_across_calls(opener: WebLibrary, sites: Sites) -> None:
    site = sites(PAGES | {"/robots.txt": text("User-agent: *\nCrawl-delay: 0.4\n")})
    library = opener(site)
    for number in range(3):
        assert library.web.add_pages([site.url(f"/{number}")]).errors == 0
    library.close()
    assert opener(site).web.add_pages([site.url("/3")]).errors == 0
    assert site.paths == ["/robots.txt", "/0", "/1", "/2", "/3"]
    times = [asked.time for asked in site.asked[1:]]
    assert all(later - earlier >= 0.35 for earlier, later in pairwise(times))


@pytest.mark.slow
def test_another_process_keeps_the_pace_and_the_robots(tmp_path: Path, sites: Sites) -> None:
    site = sites(PAGES | {"/robots.txt": text("User-agent: *\nCrawl-delay: 1.5\nDisallow: /2\n")})
    environ = os.environ | {
        "BUNKO_CRAWL_ALLOWED_HOSTS": site.host,
        "RAG_CRAWL_DELAY_SEC": "0",
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
    }
    codes = []
    for number in range(3):
        command = [
            sys.executable,
            "-m",
            "bunko",
            "web",
            "add",
            site.url(f"/{number}"),
            "--library",
            str(tmp_path / "l"),
        ]
        codes.append(subprocess.run(command, env=environ, capture_output=True, check=False).returncode)
    assert codes[:2] == [0, 0]
    assert codes[2] != 0
    assert site.paths == ["/robots.txt", "/0", "/1"]
    assert site.asked[2].time - site.asked[1].time >= 1.4


def test_a_pause_that_a_server_asked_for_is_kept_by_the_next_call() -> None:
    store, now = memory.build(), [1000.0]
    for _ in range(2):
        with SiteCache(store.cache, now=lambda: now[0]) as cache:
            pacer = HostPacer(cache)
            pacer.pause_host("a.example", 50)
        now[0] += 20
        with SiteCache(store.cache, now=lambda: now[0]) as cache:
            pacer = HostPacer(cache)
            assert pacer.saved_pause("a.example", 1.0) == 30
            assert pacer.saved_pause("b.example", 1.0) == 0
        now[0] -= 500  # the clock is set back: nobody waits for minutes
        with SiteCache(store.cache, now=lambda: now[0]) as cache:
            assert HostPacer(cache).saved_pause("a.example", 1.0) == 60
        now[0] += 10_000


@pytest.mark.slow
def test_what_google_said_is_kept_across_calls(opener: WebLibrary, sites: Sites) -> None:
    def answer(asked: Asked) -> Reply:
        urls = [entry["url"] for entry in json.loads(asked.body)["threatInfo"]["threatEntries"]]
        bad = [{"threat": {"url": url}, "threatType": "MALWARE"} for url in urls if url.endswith("/3")]
        return 200, {"Content-Type": "application/json"}, json.dumps({"matches": bad}).encode()

    google, site = sites({"/v4/threatMatches:find": answer}), sites(PAGES)
    settings = {
        "RAG_URL_SAFETY_CHECK": "true",
        "BUNKO_SAFETY_BASE_URL": google.address,
        "GOOGLE_SAFE_BROWSING_API_KEY": "key",
    }
    for _ in range(2):
        library = opener(site, google, **settings)
        for _ in range(2):
            assert paths(site, library.web.add_pages([site.url("/0")]).outcome.stored_urls) == {"/0"}
            refused = library.web.add_pages([site.url("/3")]).outcome.errors[site.url("/3")]
            assert "MALWARE" in refused.message
        library.close()
    assert len(google.asked) == 2
    assert "/3" not in site.paths


def test_pages_are_fetched_with_a_warning_while_robots_cannot_be_read(
    opener: WebLibrary, sites: Sites, caplog: pytest.LogCaptureFixture
) -> None:
    site = sites(PAGES | {"/": article("目次", "", "/0"), "/robots.txt": text("down", 503)})
    library = opener(site)
    assert library.web.add_pages([site.url("/1")]).errors == 0
    assert paths(site, library.web.crawl_site(site.url()).outcome.stored_urls) == {"/", "/0"}
    assert site.paths.count("/robots.txt") == 1
    assert [message for message in caplog.messages if "robots.txt" in message] == [
        f"Fetching pages of {site.address}, although its robots.txt cannot be read now: the server answered 503"
    ] * 2, "each command says so"


def test_where_that_is_chosen_a_site_is_left_alone_while_its_robots_cannot_be_read(
    opener: WebLibrary, sites: Sites
) -> None:
    site = sites(PAGES | {"/": article("目次", "", "/0"), "/robots.txt": text("down", 503)})
    library = opener(site, BUNKO_WEB_ROBOTS_UNREACHABLE="refuse")
    for _ in range(2):
        error = library.web.add_pages([site.url("/0")]).outcome.errors[site.url("/0")]
        assert isinstance(error, FetchFailed)
        assert error.message.endswith("its robots.txt cannot be read now (the server answered 503)")
        with pytest.raises(FetchFailed, match="cannot be read now"):
            library.web.crawl_site(site.url(), sitemap=True)
    assert site.paths == ["/robots.txt"]
    library.close()
    library = opener(site, BUNKO_WEB_ROBOTS_UNREACHABLE="refuse", RAG_RESPECT_ROBOTS_TXT="false")
    assert library.web.add_pages([site.url("/0")]).errors == 0


def test_a_site_that_asks_for_a_day_between_two_requests_is_skipped_with_a_sentence(
    opener: WebLibrary, sites: Sites
) -> None:
    site = sites(PAGES | {"/robots.txt": text("User-agent: *\nCrawl-delay: 86400\n")})
    library = opener(site)
    error = library.web.add_pages([site.url("/0")]).outcome.errors[site.url("/0")]
    assert isinstance(error, AddressRefused)
    assert "asks for 86400 seconds between two requests" in error.message
    with pytest.raises(AddressRefused, match="86400 seconds"):
        library.web.crawl_site(site.url("/0"))
    assert site.paths == ["/robots.txt"]
    library.close()
    library = opener(site, BUNKO_CRAWL_MAX_CRAWL_DELAY="86400")
    assert library.web.add_pages([site.url("/0")]).errors == 0


def test_what_a_store_does_not_take_stays_in_memory(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    Sqlite(tmp_path / "library.db").close()
    store = Sqlite(tmp_path / "library.db", read_only=True)
    with SiteCache(store.cache) as cache:
        cache.put("pace", {b"a": "1"}, expires_at=cache.now() + 60)
        cache.save()
        assert cache.get("pace", b"a") == "1"
    store.close()
    assert cache.get("pace", b"a") == "1"
    assert "open for reading only" in caplog.text
