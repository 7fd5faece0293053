"""What every store promises about web pages, and the source over them about its scans."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path

import pytest

from bunko.errors import SourceError
from bunko.protocols import Store
from bunko.records import WebPage
from bunko.sources.web import pages
from bunko.stores import sqlite
from bunko.stores.sqlite.pages import ToolPages
from bunko.types import Fingerprint, Tool

A, B = "https://example.com/a", "https://example.com/b"
PAGE = WebPage(
    A, "held", 1, "https://example.com/", 200, "text/html", "utf-8", '"1"', "yesterday", "2026-01-02T03:04:05+00:00",
    "2026-01-02T03:04:05+00:00", "hash", "",
)  # fmt: skip
HTML = "<html><body><main><h1>題</h1><p>本文です。</p></main></body></html>".encode()


def test_a_page_is_kept_as_it_was_put_and_its_content_as_it_came(store: Store) -> None:
    tool, other = store.tools.put(Tool("web", "web")), store.tools.put(Tool("other", "web"))
    store.pages.write(tool.id, upsert=[PAGE, WebPage(B)], contents={A: HTML})
    [first, second] = store.pages.select(tool.id)
    assert replace(first, size=0) == PAGE
    assert first.size > 0
    assert second == WebPage(B)
    assert store.pages.content(tool.id, A) == HTML
    assert store.pages.content(tool.id, B) is None
    assert store.pages.select(tool.id, [B, "https://example.com/c"]) == [WebPage(B)]
    assert store.pages.select(tool.id, []) == []
    assert store.pages.select(other.id) == []
    assert store.pages.content(other.id, A) is None


def test_a_page_that_is_put_without_content_keeps_what_it_has(store: Store) -> None:
    tool = store.tools.put(Tool("web", "web"))
    store.pages.write(tool.id, upsert=[PAGE], contents={A: HTML})
    store.pages.write(tool.id, upsert=[replace(PAGE, problem="gone", status=404)])
    assert [(page.problem, page.status, page.size > 0) for page in store.pages.select(tool.id)] == [("gone", 404, True)]
    assert store.pages.content(tool.id, A) == HTML
    store.pages.write(tool.id, upsert=[WebPage(A, "alias", found_on=B)], remove=[A])
    assert store.pages.content(tool.id, A) is None
    assert [page.state for page in store.pages.select(tool.id)] == ["alias"]


def test_pages_go_with_their_tool_and_outlast_a_rebuild(store: Store) -> None:
    tool, shadow = store.tools.put(Tool("web", "web")), store.tools.put(Tool("~web", "web"))
    store.pages.write(tool.id, upsert=[PAGE], contents={A: HTML})
    store.tools.swap(tool, shadow)
    assert [page.url for page in store.pages.select(tool.id)] == [A]
    store.tools.drop(tool.id)
    assert store.pages.select(tool.id) == []


def test_a_scan_tells_what_is_new_changed_and_gone_by_content(store: Store, tmp_path: Path) -> None:
    tool = store.tools.put(Tool("web", "web"))
    store.pages.write(tool.id, upsert=[PAGE, WebPage(B), WebPage("https://example.com/c", "alias")], contents={A: HTML})
    source = pages.build(ToolPages(store, tool.id, tmp_path / "library.db"))
    assert [entry.uri for entry in source.scan({}).added] == [A]
    changed = source.scan({A: Fingerprint("other", 0, 0), B: Fingerprint("b", 0, 0)})
    assert ([entry.uri for entry in changed.updated], changed.deleted, changed.unchanged) == ([A], [B], 0)
    assert source.scan({A: Fingerprint("hash", 0, 0)}).unchanged == 1
    [entry] = source.scan({}).added
    data, same = source.read(entry)
    assert (data, same) == (HTML, entry)
    assert "本文です" in source.text(data, entry).text
    assert not source.has_vanished([A])
    store.pages.write(tool.id, remove=[A])
    with pytest.raises(SourceError, match="removed in the meantime"):
        source.read(entry)


def test_a_source_that_travels_to_another_process_reads_the_same_file(tmp_path: Path) -> None:
    store = sqlite.build(tmp_path / "library.db")
    tool = store.tools.put(Tool("web", "web"))
    store.pages.write(tool.id, upsert=[PAGE], contents={A: HTML})
    source = pages.build(ToolPages(store, tool.id, tmp_path / "library.db"))
    there = pickle.loads(pickle.dumps(source))
    [entry] = there.scan({}).added
    assert there.read(entry)[0] == HTML
    store.close()


@pytest.mark.parametrize(
    ("data", "media_type", "charset", "url", "wanted"),
    [
        ("# 題\n\n本文".encode("cp932"), "text/plain", "shift_jis", "https://x/readme.md", "# 題\n\n本文"),
        ("本文".encode(), "text/markdown", "nonsense", "https://x/", "本文"),
        ("本文".encode("euc-jp"), "text/plain", "", "https://x/", "本文"),
    ],
)
def test_text_is_read_as_the_server_calls_it(data: bytes, media_type: str, charset: str, url: str, wanted: str) -> None:
    assert pages.read_page(data, media_type=media_type, charset=charset, url=url).text == wanted


def test_what_is_no_text_is_told_by_its_type() -> None:
    with pytest.raises(SourceError, match="image/png"):
        pages.read_page(b"", media_type="image/png")
