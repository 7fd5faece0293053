"""Pages of test sites, and libraries that read them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bunko.library.library import Library
from tests.site import Answer, Reply, Site, html

WebLibrary = Callable[..., Library]


Sites = Callable[[dict[str, Answer]], Site]


def article(title: str, body: str = "", *links: str, head: str = "") -> Reply:
    anchors = "".join(f"<p><a href='{link}'>{link}</a></p>" for link in links)
    paragraph = body or f"{title}について書いた本文です。"
    return html(
        f"<html><head><title>{title}</title>{head}</head>"
        f"<body><main><h1>{title}</h1><p>{paragraph}</p>{anchors}</main></body></html>"
    )


def paths(site: Site, urls: list[str]) -> set[str]:
    return {url.removeprefix(site.address) for url in urls}


def search_uris(library: Library, query: str, **options: Any) -> list[str]:
    return [hit.uri for hit in library.search(query, **options).hits]
