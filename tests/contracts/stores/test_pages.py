"""What every store promises about web pages."""

from __future__ import annotations

import random
from dataclasses import replace

from bunko.protocols import Store
from bunko.types import Tool
from bunko.types.records import WebPage

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


def test_a_url_may_be_longer_than_an_index_of_a_database_takes(store: Store) -> None:
    tool = store.tools.put(Tool("web", "web"))
    chance = random.Random(17)
    urls = [f"{A}?token={chance.randbytes(4000).hex()}" for _ in range(2)]
    store.pages.write(tool.id, upsert=[replace(PAGE, url=url) for url in urls], contents={urls[0]: HTML})
    store.pages.write(tool.id, upsert=[replace(PAGE, url=urls[0], status=304)])
    assert {page.url: page.status for page in store.pages.select(tool.id)} == {urls[0]: 304, urls[1]: 200}
    assert [page.url for page in store.pages.select(tool.id, [urls[1]])] == [urls[1]]
    assert store.pages.content(tool.id, urls[0]) == HTML
    store.pages.write(tool.id, remove=[urls[0]])
    assert [page.url for page in store.pages.select(tool.id)] == [urls[1]]
