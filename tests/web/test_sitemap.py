"""Pages named by sitemaps and llms.txt."""

from __future__ import annotations

import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bunko.sources.web.sitemap import llms_txt_urls, sitemap_urls
from tests.site import text
from tests.web.articles import Sites, WebLibrary, article, paths


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
    found = list(sitemap_urls(lambda url: data, ["https://x/s.xml"], lambda url, error: told.append(error.message)))
    assert all(isinstance(url, str) for url in found)
    assert len(told) <= 1


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-16-le", "utf-16-be"])
def test_a_sitemap_with_entities_is_refused_in_any_encoding(encoding: str) -> None:
    bomb = f'<!DOCTYPE u [<!ENTITY a "{"x" * 99}">]><urlset><url><loc>http://e.example/&a;&a;</loc></url></urlset>'
    noted: list[str] = []
    found = sitemap_urls(lambda _: bomb.encode(encoding), ["http://e.example/s"], lambda url, _: noted.append(url))
    assert not any("xxx" in url for url in found)


def test_a_sitemap_in_utf_16_is_read() -> None:
    data = "<urlset><url><loc>http://e.example/甲</loc></url></urlset>".encode("utf-16")
    assert list(sitemap_urls(lambda _: data, ["http://e.example/s"], lambda *_: None)) == ["http://e.example/甲"]


def test_one_address_of_a_sitemap_that_is_none_spoils_no_other() -> None:
    data = b"<urlset><url><loc>http://[</loc></url><url><loc>/ok</loc></url><url><loc/></url></urlset>"
    assert list(sitemap_urls(lambda url: data, ["https://x/s.xml"], print)) == ["https://x/ok"]
    assert llms_txt_urls(lambda url: b"[a](http://[) [b](ok)", "https://x/llms.txt") == ["https://x/ok"]


def test_an_address_after_a_long_comment_is_read() -> None:
    data = f"<urlset><!--{'x' * (3 << 20)}--><url><loc>/last</loc></url></urlset>".encode()
    assert list(sitemap_urls(lambda _: data, ["https://x/s.xml"], print)) == ["https://x/last"]
