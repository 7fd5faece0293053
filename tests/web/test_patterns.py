"""Which addresses a crawl's pattern matches; no pattern takes more time than its address is long."""

from __future__ import annotations

import threading

import pytest

from bunko.errors import QueryError
from bunko.runtime.observer import Observer
from bunko.sources.web.visit import matcher
from tests.site import Answer, Asked, Reply, Site, text
from tests.web.articles import Sites, WebLibrary, article, paths


@pytest.mark.parametrize(
    "pattern",
    [
        "[^!]*" * 5 + "!", "a?" * 30 + "a" * 30 + "!", r"\w*" * 6 + "!", "(a+)+!", "(a|a)*!", r"((\w+)-?)*!",
        ".*" * 50 + "!", "(?:a?){30}a{30}!", r"(\w{1,30}/?){30}!",
    ],
)  # fmt: skip
def test_no_pattern_takes_for_ever(pattern: str) -> None:
    assert not matcher(pattern)("https://example.com/" + "a" * 3_000)
    assert matcher(pattern)("https://example.com/" + "a" * 60 + "!")


@pytest.mark.parametrize(
    "pattern",
    [
        r"\.html$", "", r"^https?://x/(foo|bar)\.html$", r"/(\d{4}-)*[(|*+]?bar", r".*/.*bar.*", r"(?i)X/(?P<n>B)ar",
        r"(?:foo/.*)?bar", r"\bbar\b", r"x/[a-z]{3}\.", r"(b)(a)(r)",
    ],
)  # fmt: skip
def test_what_people_write_matches(pattern: str) -> None:
    assert matcher(pattern)("https://x/bar.html")


@pytest.mark.parametrize("pattern", [r"(?!x)", r"(?=x)", r"(?<=x)y", r"(?<!x)y", r"(a)\1", r"(?P<n>a)(?P=n)", r"a++"])
def test_a_pattern_that_needs_to_look_around_or_back_is_refused_as_such(pattern: str) -> None:
    with pytest.raises(QueryError, match="which is not supported") as refused:
        matcher(pattern)
    assert "Look-ahead, look-behind and back-references" in refused.value.hint


@pytest.mark.parametrize(
    "pattern", ["([", "*", "a{5,2}", "x" * 501, "\ud800", "(?:a{1000}){1000}", "a{1001}", "(" * 500]
)
def test_a_pattern_that_is_wrong_or_too_large_is_refused(pattern: str) -> None:
    with pytest.raises(QueryError) as refused:
        matcher(pattern)
    assert refused.value.hint


@pytest.mark.slow
def test_a_crawl_with_a_slow_pattern_ends_when_it_is_cancelled(opener: WebLibrary, sites: Sites) -> None:
    # Each of these links takes this pattern some hundredths of a second: together many minutes.
    links = [f"/{'ab' * 990}{number}" for number in range(20_000)]
    listing = "".join(f"- [page]({link})\n" for link in links)

    def is_interrupted(pages: dict[str, Answer], last_path: str) -> bool:
        site = sites(pages)
        observer = Observer(is_cancelled=lambda: last_path in site.paths)
        found = opener(site).web.crawl_site(site.url(), r"(\w{1,30}/?){30}!", sitemap=True, observer=observer)
        return found.outcome.interrupted

    assert is_interrupted({"/": article("目次", "", *links)}, "/")
    assert is_interrupted({"/llms.txt": text(listing)}, "/llms.txt")


def test_a_crawl_ends_when_it_is_cancelled_though_no_page_comes(opener: WebLibrary, sites: Sites) -> None:
    def hanging(site: Site, requested: threading.Event) -> Answer:
        def answer(_: Asked) -> Reply:
            requested.set()
            site.released.wait()
            return text("too late")

        return answer

    for path in ("/", "/robots.txt", "/sitemap.xml"):
        site, requested = sites({}), threading.Event()
        site.pages[path] = hanging(site, requested)
        found = opener(site, BUNKO_CRAWL_TIMEOUT_SECONDS="3600").web.crawl_site(
            site.url(), sitemap=path == "/sitemap.xml", observer=Observer(is_cancelled=requested.is_set)
        )
        assert found.outcome.interrupted
        assert paths(site, found.outcome.stored_urls) == set()
        assert not site.released.is_set()


def test_a_crawl_that_waits_for_its_turn_ends_when_it_is_cancelled(opener: WebLibrary, sites: Sites) -> None:
    site = sites(
        {
            "/": article("目次", "", "/a"),
            "/a": article("甲"),
            "/robots.txt": text("User-agent: *\nCrawl-delay: 3600\n"),
            "/sitemap.xml": text("", kind="application/xml"),
        }
    )
    for sitemap in (False, True):
        found = opener(site, BUNKO_CRAWL_MAX_CRAWL_DELAY="3600").web.crawl_site(
            site.url(), sitemap=sitemap, observer=Observer(is_cancelled=lambda: "/" in site.paths)
        )
        assert found.outcome.interrupted
    assert "/a" not in site.paths
