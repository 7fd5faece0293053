"""Replies of test servers."""

from __future__ import annotations

from collections.abc import Iterator

from tests.site import Reply, Site


def forever(site: Site, piece: bytes) -> Iterator[bytes]:
    """Yield a piece again and again, slowly, until the site closes."""
    while not site.released.wait(0.005):
        yield piece


def compressed(data: bytes, encoding: str) -> Reply:
    return 200, {"Content-Type": "text/html", "Content-Encoding": encoding}, data
