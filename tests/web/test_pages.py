"""Fetched pages as documents: encodings, search, citations and deletion."""

from __future__ import annotations

from pathlib import Path

import pytest

from bunko.errors import BunkoError, LibraryReadOnly, UnknownName
from bunko.library.open import open_library
from bunko.library.opening.paths import locate_library
from bunko.library.web.collector import CollectResult
from bunko.sources.web import pages
from tests.site import html
from tests.web.articles import Sites, WebLibrary, article, search_uris


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
        assert search_uris(library, word, mode="bm25")[0] == site.url(path)


@pytest.mark.parametrize("codec", ["utf-8", "cp932", "euc_jp"])
def test_plain_text_behind_a_server_that_was_never_set_up_comes_out_right(
    opener: WebLibrary, sites: Sites, codec: str
) -> None:
    said = "吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。" * 3
    kinds = {"/a": "text/plain; charset=ISO-8859-1", "/b": "text/plain; charset=no-such", "/c.md": "text/plain"}
    site = sites({path: (200, {"Content-Type": kind}, said.encode(codec)) for path, kind in kinds.items()})
    library = opener(site)
    library.web.add_pages([site.url(path) for path in kinds])
    assert set(search_uris(library, "見当がつかぬ", mode="bm25")) == {site.url(path) for path in kinds}


def test_plain_text_hides_nothing() -> None:
    hidden = "見える\u200bふつうの文\x1b[31mです。\u202e".encode()
    for kind in ("text/plain", "text/markdown"):
        for charset in ("utf-8", ""):
            assert pages.read_page(hidden, media_type=kind, charset=charset).text == "見えるふつうの文[31mです。"


@pytest.mark.parametrize("charset", ["punycode", "utf-7", "idna", "unicode_escape", "zip"])
def test_no_server_chooses_a_codec_that_hides_text_or_takes_minutes(charset: str) -> None:
    said = r"a+AGE-\u0061 zz9-tda"
    assert pages.read_page(said.encode(), media_type="text/plain", charset=charset).text == said


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
        assert search_uris(library, f"零戦{number}式")[0] == site.url(f"/{number}")


def test_deleting_forgets_a_page_and_what_it_said(opener: WebLibrary, sites: Sites) -> None:
    site = sites({"/a": article("甲", "甲の葡萄"), "/b": article("乙", "乙の蜜柑")})
    library = opener(site)
    library.web.add_pages([site.url("/a"), site.url("/b")])
    assert library.web.delete_page(site.url("/a")) == (site.url("/a"), 1)
    assert search_uris(library, "葡萄", mode="bm25") == []
    assert library.web.delete_page(site.url("/b#x"))[1] == 1
    assert library.web.status()[0].pages == 0
    assert search_uris(library, "蜜柑") == []
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
