"""What every store promises about web pages, and the source over them about its scans."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from bunko.errors import SourceError
from bunko.protocols import Store
from bunko.sources.web import pages
from bunko.stores import sqlite
from bunko.stores.tool_pages import ToolPages
from bunko.types import Fingerprint, Tool
from bunko.types.records import WebPage

A, B = "https://example.com/a", "https://example.com/b"
PAGE = WebPage(
    A, "held", 1, "https://example.com/", 200, "text/html", "utf-8", '"1"', "yesterday", "2026-01-02T03:04:05+00:00",
    "2026-01-02T03:04:05+00:00", "hash", "",
)  # fmt: skip
HTML = "<html><body><main><h1>題</h1><p>本文です。</p></main></body></html>".encode()


def test_a_scan_tells_what_is_new_changed_and_gone_by_content(store: Store, tmp_path: Path) -> None:
    tool = store.tools.put(Tool("web", "web"))
    store.pages.write(tool.id, upsert=[PAGE, WebPage(B), WebPage("https://example.com/c", "alias")], contents={A: HTML})
    source = pages.build(ToolPages(store, tool.id))
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
    source = pages.build(ToolPages(store, tool.id))
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
