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
from bunko.text.hidden_chars import clean
from bunko.types import Entry, Known, Text

_HTML = ("text/html", "application/xhtml+xml")
_MARKDOWN = ("text/markdown", "text/x-markdown")
_PDF = "application/pdf"
# What is worth asking a server for; anything else is told of and not kept.
READABLE = (*_HTML, "text/plain", *_MARKDOWN, _PDF)
_MARKDOWN_ENDINGS = (".md", ".markdown")


@dataclass(frozen=True, slots=True)
class Leads:
    """Where a page leads and what it says about itself: all that a crawl has to know of it."""

    links: tuple[str, ...] = ()
    canonical: str = ""
    noindex: bool = False


def leads(data: bytes, *, media_type: str, charset: str = "", url: str = "", links: bool = True) -> Leads:
    """Return where a page leads, which takes a fraction of the time that its text does."""
    if media_type not in _HTML:
        return Leads()
    from bunko.readers.html import decoding, metadata, tree

    document = tree.parse(decoding.decode(data, charset)[0])
    head = metadata.Head(document)
    base = metadata.address(head.base, url) or url
    return Leads(
        metadata.links(document, base) if links else (),
        metadata.address(head.canonical, base) if head.canonical else "",
        metadata.noindex(head),
    )


def read(data: bytes, *, media_type: str, charset: str = "", url: str = "") -> Text:
    """Return what bytes that a server called so say; a SourceError says why they are not read."""
    if media_type in _HTML:
        from bunko.readers import html

        return html.read(data, charset=charset, url=url).text
    if media_type == _PDF:
        return readers.read(data, "page.pdf")
    if media_type in _MARKDOWN or (media_type == "text/plain" and urlsplit(url).path.endswith(_MARKDOWN_ENDINGS)):
        return readers.read(_plain(data, charset), "page.md")
    if media_type == "text/plain":
        return readers.read(_plain(data, charset), "page.txt")
    raise SourceError(f"is {media_type or 'of no named type'}, which is not read")


def is_empty(text: Text) -> bool:
    """Say whether there is nothing to index."""
    return not text.text[text.body :].strip()


def _plain(data: bytes, charset: str) -> bytes:
    """Return text as UTF-8 that shows all it says: read as the server calls it where that holds, else as is guessed."""
    from bunko.readers import encoding
    from bunko.readers.html import decoding

    text, _ = decoding.decode(data, charset) if decoding.knows(charset) else encoding.decode(data)
    return clean(text).encode()


class Held(Protocol):
    """The pages of one tool, wherever they are kept."""

    def pages(self, urls: Sequence[str] | None = None) -> list[WebPage]:
        """Return what is known of all pages, or of some, by URL."""

    def content(self, url: str) -> bytes | None:
        """Return a page as it came; None where none ever did."""


@dataclass(frozen=True, slots=True)
class Fetched(Entry):
    """A page as an entry: its time is when its content came."""

    media_type: str = ""
    charset: str = ""


class Web:
    """The pages of a tool that were fetched; looking at them reads a few columns of the library and nothing else."""

    def __init__(self, held: Held) -> None:
        self._held = held

    def scan(self, known: Mapping[str, Known]) -> Scan:
        """Compare the pages with what is known, by the hash of their content."""
        scan, there = Scan(), set()
        for page in self._held.pages():
            if not is_document(page):
                continue
            there.add(page.url)
            before = known.get(page.url)
            if before is None:
                scan.added.append(_entry(page))
            elif before.content_hash != page.content_hash:
                scan.updated.append(_entry(page))
            else:
                scan.unchanged += 1
        scan.deleted = sorted(known.keys() - there)
        return scan

    def read(self, entry: Entry) -> tuple[bytes, Entry]:
        """Return the content of a page as it came."""
        data = self._held.content(entry.uri)
        if data is None:
            raise SourceError(f"{entry.uri} was removed meanwhile")
        return data, entry

    def text(self, data: bytes, entry: Entry) -> Text:
        """Return what a page says."""
        media_type, charset = (entry.media_type, entry.charset) if isinstance(entry, Fetched) else ("", "")
        return read(data, media_type=media_type, charset=charset, url=entry.uri)

    def lost(self, known: Iterable[str]) -> bool:
        """Say no: pages lie in the library itself."""
        return False


def is_document(page: WebPage) -> bool:
    """Say whether a page has content to index, from this attempt or an earlier one."""
    return bool(page.content_hash) and page.state != "alias"


def _entry(page: WebPage) -> Fetched:
    at = int(datetime.fromisoformat(page.fetched_at).timestamp()) * 1_000_000_000
    return Fetched(page.url, page.size, at, media_type=page.media_type, charset=page.charset)


def build(held: Held) -> Web:
    """Index web pages that were fetched."""
    return Web(held)
