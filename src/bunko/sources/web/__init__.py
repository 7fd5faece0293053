"""Fetch and crawl web pages, subject to the SSRF guard, robots.txt and Safe Browsing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bunko.sources.kind import SourceKind, SourceSpec

if TYPE_CHECKING:
    from bunko.sources.web.pages import PageSource


def build_source(spec: SourceSpec) -> PageSource:
    """Return the source of a tool: the pages that were fetched for it."""
    from bunko.sources.web import pages

    assert spec.pages is not None
    return pages.build(spec.pages)


KIND = SourceKind(
    build_source,
    root="none",
    section="web",
    is_watchable=False,
    needs_pages=True,
    noun=("page", "pages"),
    label="web pages",
    import_command="bunko web add URL",
)
