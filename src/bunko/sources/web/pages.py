"""Pages that were fetched in, documents out: a source that never asks the network, and what a page says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol
from urllib.parse import urlsplit

from bunko import readers
from bunko.errors import SourceError
from bunko.protocols import Scan
from bunko.records import WebPage
from bunko.text.hidden_chars import remove_hidden_chars
from bunko.types import Fingerprint, SourceEntry, Text

_HTML_TYPES = ("text/html", "application/xhtml+xml")
_MARKDOWN_TYPES = ("text/markdown", "text/x-markdown")
_PDF_TYPE = "application/pdf"
# What is worth asking a server for; anything else is told of and not kept.
READABLE_TYPES = (*_HTML_TYPES, "text/plain", *_MARKDOWN_TYPES, _PDF_TYPE)
_MARKDOWN_SUFFIXES = (".md", ".markdown")


@dataclass(frozen=True, slots=True)
class CrawlHints:
    """Where a page leads and what it says about itself: all that a crawl has to know of it."""

    links: tuple[str, ...] = ()
    canonical: str = ""
    noindex: bool = False


def read_crawl_hints(
    data: bytes, *, media_type: str, charset: str = "", url: str = "", with_links: bool = True
) -> CrawlHints:
    """Return where a page leads, which takes a fraction of the time that its text does."""
    if media_type not in _HTML_TYPES:
        return CrawlHints()
    from bunko.readers.html import decoding, metadata, tree

    document = tree.parse_html(decoding.decode(data, charset)[0])
    head = metadata.PageHead(document)
    base = metadata.absolute_url(head.base_url, url) or url
    return CrawlHints(
        metadata.page_links(document, base) if with_links else (),
        metadata.absolute_url(head.canonical_url, base) if head.canonical_url else "",
        metadata.is_noindex(head),
    )


def read_page(data: bytes, *, media_type: str, charset: str = "", url: str = "") -> Text:
    """Return what bytes that a server called so say; a SourceError says why they are not read."""
    if media_type in _HTML_TYPES:
        from bunko.readers import html

        return html.read(data, charset=charset, url=url).text
    if media_type == _PDF_TYPE:
        return readers.read(data, "page.pdf")
    if media_type in _MARKDOWN_TYPES or (
        media_type == "text/plain" and urlsplit(url).path.endswith(_MARKDOWN_SUFFIXES)
    ):
        return readers.read(_to_utf8(data, charset), "page.md")
    if media_type == "text/plain":
        return readers.read(_to_utf8(data, charset), "page.txt")
    raise SourceError(f"is {media_type or 'of no named type'}, which is not read")


def is_empty(text: Text) -> bool:
    """Say whether there is nothing to index."""
    return not text.text[text.body_start :].strip()


def _to_utf8(data: bytes, charset: str) -> bytes:
    """Return text as UTF-8 that shows all it says: read as the server calls it where that holds, else as is guessed."""
    from bunko.readers import encoding
    from bunko.readers.html import decoding

    text, _ = decoding.decode(data, charset) if decoding.is_known_charset(charset) else encoding.decode(data)
    return remove_hidden_chars(text).encode()


class PageStore(Protocol):
    """The pages of one tool, wherever they are kept."""

    def pages(self, urls: Sequence[str] | None = None) -> list[WebPage]:
        """Return what is known of all pages, or of some, by URL."""

    def content(self, url: str) -> bytes | None:
        """Return a page as it came; None where none ever did."""


@dataclass(frozen=True, slots=True)
class PageEntry(SourceEntry):
    """A page as an entry: its time is when its content came."""

    media_type: str = ""
    charset: str = ""


class PageSource:
    """The pages of a tool that were fetched; looking at them reads a few columns of the library and nothing else."""

    def __init__(self, store: PageStore) -> None:
        self._store = store

    def scan(self, fingerprints: Mapping[str, Fingerprint]) -> Scan:
        """Compare the pages with what is known, by the hash of their content."""
        scan, there = Scan(), set()
        for page in self._store.pages():
            if not is_document(page):
                continue
            there.add(page.url)
            before = fingerprints.get(page.url)
            if before is None:
                scan.added.append(_entry(page))
            elif before.content_hash != page.content_hash:
                scan.updated.append(_entry(page))
            else:
                scan.unchanged += 1
        scan.deleted = sorted(fingerprints.keys() - there)
        return scan

    def read(self, entry: SourceEntry) -> tuple[bytes, SourceEntry]:
        """Return the content of a page as it came."""
        data = self._store.content(entry.uri)
        if data is None:
            raise SourceError(f"{entry.uri} was removed meanwhile")
        return data, entry

    def text(self, data: bytes, entry: SourceEntry) -> Text:
        """Return what a page says."""
        media_type, charset = (entry.media_type, entry.charset) if isinstance(entry, PageEntry) else ("", "")
        return read_page(data, media_type=media_type, charset=charset, url=entry.uri)

    def has_vanished(self, known_uris: Iterable[str]) -> bool:
        """Say no: pages lie in the library itself."""
        return False


def is_document(page: WebPage) -> bool:
    """Say whether a page has content to index, from this attempt or an earlier one."""
    return bool(page.content_hash) and page.state != "alias"


def _entry(page: WebPage) -> PageEntry:
    at = int(datetime.fromisoformat(page.fetched_at).timestamp()) * 1_000_000_000
    return PageEntry(page.url, page.size, at, media_type=page.media_type, charset=page.charset)


def build(store: PageStore) -> PageSource:
    """Index web pages that were fetched."""
    return PageSource(store)
