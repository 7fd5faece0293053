"""Read fetched pages from the library as documents, without network access."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol
from urllib.parse import urlsplit

from bunko import readers
from bunko.errors import SourceError
from bunko.protocols import Scan
from bunko.readers import encoding, html
from bunko.readers.html import decoding, metadata, tree
from bunko.text.labels import remove_hidden_chars
from bunko.types import Fingerprint, SourceEntry, Text
from bunko.types.records import WebPage

_HTML_TYPES = ("text/html", "application/xhtml+xml")
_MARKDOWN_TYPES = ("text/markdown", "text/x-markdown")
_PDF_TYPE = "application/pdf"
# Types requested from servers; other types are reported and not stored.
READABLE_TYPES = (*_HTML_TYPES, "text/plain", *_MARKDOWN_TYPES, _PDF_TYPE)
_MARKDOWN_SUFFIXES = (".md", ".markdown")


@dataclass(frozen=True, slots=True)
class CrawlHints:
    """The links and metadata of a page that a crawl needs."""

    links: tuple[str, ...] = ()
    canonical: str = ""
    noindex: bool = False


def read_crawl_hints(
    data: bytes, *, media_type: str, charset: str = "", url: str = "", with_links: bool = True
) -> CrawlHints:
    """Return the links and metadata of a page, in a fraction of the time that reading its text takes."""
    if media_type not in _HTML_TYPES:
        return CrawlHints()
    document = tree.parse_html(decoding.decode(data, charset)[0])
    head = metadata.PageHead(document)
    base = metadata.absolute_url(head.base_url, url) or url
    return CrawlHints(
        metadata.page_links(document, base) if with_links else (),
        metadata.absolute_url(head.canonical_url, base) if head.canonical_url else "",
        metadata.is_noindex(head),
    )


def read_page(data: bytes, *, media_type: str, charset: str = "", url: str = "") -> Text:
    """Return the text of a response of this media type; raise SourceError if it cannot be read."""
    if media_type in _HTML_TYPES:
        return html.read(data, charset=charset, url=url).text
    if media_type == _PDF_TYPE:
        return readers.read(data, "page.pdf")
    if media_type in _MARKDOWN_TYPES or (
        media_type == "text/plain" and urlsplit(url).path.endswith(_MARKDOWN_SUFFIXES)
    ):
        return readers.read(_to_utf8(data, charset), "page.md")
    if media_type == "text/plain":
        return readers.read(_to_utf8(data, charset), "page.txt")
    raise SourceError(f"is {media_type or 'of an unknown type'}, which cannot be read")


def is_empty(text: Text) -> bool:
    """Return whether a text has nothing to index."""
    return not text.text[text.body_start :].strip()


def _to_utf8(data: bytes, charset: str) -> bytes:
    """Return text as UTF-8 without hidden characters, decoded with the charset of the server or a detected one."""
    text, _ = decoding.decode(data, charset) if decoding.is_known_charset(charset) else encoding.decode(data)
    return remove_hidden_chars(text).encode()


class PageStore(Protocol):
    """Storage of the pages of one tool."""

    def pages(self, urls: Sequence[str] | None = None) -> list[WebPage]:
        """Return the records of all pages, or of those with these URLs."""

    def content(self, url: str) -> bytes | None:
        """Return the stored content of a page, or None."""


@dataclass(frozen=True, slots=True)
class PageEntry(SourceEntry):
    """A page as an entry; its time is when its content was fetched."""

    media_type: str = ""
    charset: str = ""


class PageSource:
    """The fetched pages of a tool; a scan reads only a few columns of the library."""

    def __init__(self, store: PageStore) -> None:
        self._store = store

    def scan(self, fingerprints: Mapping[str, Fingerprint]) -> Scan:
        """Compare the pages with their fingerprints, by content hash."""
        scan, present = Scan(), set()
        for page in self._store.pages():
            if not is_document(page):
                continue
            present.add(page.url)
            before = fingerprints.get(page.url)
            if before is None:
                scan.added.append(_entry(page))
            elif before.content_hash != page.content_hash:
                scan.updated.append(_entry(page))
            else:
                scan.unchanged += 1
        scan.deleted = sorted(fingerprints.keys() - present)
        return scan

    def read(self, entry: SourceEntry) -> tuple[bytes, SourceEntry]:
        """Return the stored content of a page."""
        data = self._store.content(entry.uri)
        if data is None:
            raise SourceError(f"{entry.uri} has been removed in the meantime")
        return data, entry

    def text(self, data: bytes, entry: SourceEntry) -> Text:
        """Return the text of a page."""
        media_type, charset = (entry.media_type, entry.charset) if isinstance(entry, PageEntry) else ("", "")
        return read_page(data, media_type=media_type, charset=charset, url=entry.uri)

    def has_vanished(self, known_uris: Iterable[str]) -> bool:
        """Return False: pages are stored in the library itself."""
        return False

    is_local_only = True

    def portable_copy(self, entries: Sequence[SourceEntry]) -> PageSource:
        """Return a source without the library, whose address and password no other machine needs."""
        return PageSource(_NoPages())


class _NoPages:
    """No pages: their content is sent with the entries."""

    def pages(self, urls: Sequence[str] | None = None) -> list[WebPage]:
        return []

    def content(self, url: str) -> bytes | None:
        return None


def is_document(page: WebPage) -> bool:
    """Return whether a page has content to index, from this fetch or an earlier one."""
    return bool(page.content_hash) and page.state != "alias"


def _entry(page: WebPage) -> PageEntry:
    fetched_ns = int(datetime.fromisoformat(page.fetched_at).timestamp()) * 1_000_000_000
    return PageEntry(page.url, page.size, fetched_ns, media_type=page.media_type, charset=page.charset)


def build(store: PageStore) -> PageSource:
    """Return a source of fetched web pages."""
    return PageSource(store)
