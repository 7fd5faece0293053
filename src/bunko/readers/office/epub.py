"""Read e-books (EPUB) as Markdown: their chapters in reading order, footnotes and readings included."""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING
from urllib.parse import unquote

from bunko.errors import SourceError
from bunko.readers.html import blocks, decoding, keeps_readings, tree
from bunko.readers.html.tree import count_tags
from bunko.readers.office.package import Archive, child, children, local_name, parse_optional, parse_part, resolve_name
from bunko.text.dates import iso_date
from bunko.text.labels import clean_title
from bunko.text.tags import parse_tags
from bunko.types import Text

if TYPE_CHECKING:
    from collections.abc import Iterator
    from xml.etree.ElementTree import Element

MEDIA_TYPE = "application/epub+zip"
_CONTAINER = "META-INF/container.xml"
_ENCRYPTION = "META-INF/encryption.xml"
_MAX_CHAPTERS = 10_000
_MAX_CHAPTER_BYTES = 20 << 20  # a tree of a page needs many times its bytes in memory
_MAX_LABEL_PARTS, _MAX_LABEL_CHARS = 50, 300
_MAX_CHARS = 20_000_000
MAX_TAGS = 2_000_000  # with attributes; a book of 1,000 pages has 100,000
_CHAPTER_TYPES = ("application/xhtml+xml", "text/html", "application/x-dtbook+xml")
# An HTML parser ignores the slash, so that <title/> would swallow the chapter.
_CLOSED_TAG = re.compile(
    r"<(?!(?:area|base|br|col|embed|hr|img|input|link|meta|source|track|wbr)\b)([a-zA-Z][\w:.-]*)([^<>]*?)/>"
)
# The mark of a note, and links back from a note or to a heading.
_NOTE_LINK = re.compile(
    r"<a\b[^<>]{0,300}\b(?:noteref|footnote-ref)\b[^<>]{0,300}>(?:<sup[^<>]{0,300}>)?\[?(\d{1,4})\]?(?:</sup>)?</a>"
)
_BACK_LINK = re.compile(
    r"<a\b[^<>]{0,300}\b(?:doc-backlink|backlink|footnote-back|headerlink)\b[^<>]{0,300}>[^<>]{0,9}</a>"
)
_ANY_HEADING = re.compile(r"(?m)^#{1,6} ")


def read(book_data: bytes) -> Text:
    """Return the text of an e-book; raise SourceError if it has none or is protected."""
    archive = Archive(book_data, "e-book")
    package_name = _package_name(archive)
    package = parse_part(archive, package_name)
    manifest = _manifest(package, package_name)
    locked_names = {  # of encrypted parts; many books encrypt their fonts only
        resolve_name("", unquote(node.get("URI", ""))).lower()
        for node in parse_optional(archive, _ENCRYPTION).iter()
        if local_name(node) == "CipherReference"
    }
    labels = _chapter_labels(archive, package, manifest)
    parts: list[str] = []
    chars = tags = 0
    for name in _spine_names(package, manifest):
        if name.lower() in locked_names:
            raise SourceError("The e-book is protected against copying", hint="Import a copy without protection.")
        if name not in archive:
            continue
        data = archive.read(name)
        if len(data) > _MAX_CHAPTER_BYTES:
            raise SourceError(f"The e-book has a chapter of {len(data) >> 20} MB", hint="Split it, or exclude it.")
        html, _ = decoding.decode(data)
        tags += count_tags(html)
        if tags > MAX_TAGS:
            raise SourceError(f"The e-book has more than {MAX_TAGS:,} tags", hint="Split it into volumes.")
        chapter = _read_chapter(html, labels.get(name, ""))
        if chapter:
            parts.append(chapter)
            chars += len(chapter)
        archive.check_limits()
        if chars > _MAX_CHARS:
            raise SourceError(f"The e-book has more than {_MAX_CHARS:,} characters", hint="Split it into volumes.")
    if not parts:
        raise SourceError("The e-book has no text: its pages are images", hint="Exclude it, or run text recognition.")
    return _book_text(package, "\n\n".join(parts))


def _package_name(archive: Archive) -> str:
    for rootfile in children(parse_part(archive, _CONTAINER), "rootfiles"):
        name = resolve_name("", unquote(rootfile.get("full-path", "")))
        if name in archive:
            return name
    raise archive.unreadable(KeyError("its list of contents is missing"))


def _manifest(package: Element, package_name: str) -> dict[str, Element]:
    """Return the items of the book by id; each gets the name of its part."""
    manifest: dict[str, Element] = {}
    for item in children(package, "manifest"):
        item.set("part", resolve_name(package_name, unquote(item.get("href", "").partition("#")[0])))
        manifest[item.get("id", "")] = item
    return manifest


def _spine_names(package: Element, manifest: dict[str, Element]) -> Iterator[str]:
    """Yield the parts of the chapters in reading order, each once, without the table of contents."""
    seen: set[str] = set()
    for number, reference in enumerate(children(package, "spine")):
        item = manifest.get(reference.get("idref", ""))
        if item is None or number >= _MAX_CHAPTERS:
            continue
        if item.get("media-type") in _CHAPTER_TYPES and "nav" not in item.get("properties", "").split():
            name = item.get("part", "")
            if name.lower() not in seen:
                seen.add(name.lower())
                yield name


def _chapter_labels(archive: Archive, package: Element, manifest: dict[str, Element]) -> dict[str, str]:
    """Return the first entry of the table of contents for each part."""
    labels: dict[str, str] = {}
    spine = child(package, "spine")
    contents = manifest.get(spine.get("toc", "")) if spine is not None else None
    for item in [contents, *(item for item in manifest.values() if "nav" in item.get("properties", "").split())]:
        if item is None:
            continue
        part = item.get("part", "")
        for node in parse_optional(archive, part).iter():
            if local_name(node) == "navPoint":  # EPUB 2
                label, target = child(node, "navLabel", "text"), child(node, "content")
                href = "" if target is None else target.get("src", "")
            elif local_name(node) == "a":  # EPUB 3
                label, href = node, node.get("href", "")
            else:
                continue
            parts = () if label is None else islice(label.itertext(), _MAX_LABEL_PARTS)
            text = " ".join("".join(part[:_MAX_LABEL_CHARS] for part in parts).split())
            labels.setdefault(resolve_name(part, unquote(href.partition("#")[0])), text)
    return labels


def _read_chapter(html: str, label: str) -> str:
    """Return a chapter as Markdown; one without a heading gets its entry in the table of contents."""
    html = _CLOSED_TAG.sub(r"<\1\2></\1>", _BACK_LINK.sub("", _NOTE_LINK.sub(r"^\1", html)))
    page = tree.build_tree(tree.parse_html(html))
    # Unlike the pages of a site, a book has no menus: what looks like one is its text.
    text = blocks.markdown(
        page.body, keep_boilerplate=True, keep_readings=keeps_readings(page.ruby_chars, page.body.chars)
    )
    if not text or not label or _ANY_HEADING.search(text):
        return text
    first_line, _, rest = text.partition("\n")
    return f"# {label}\n\n{rest.strip() if first_line == label else text}".strip()


def _book_text(package: Element, text: str) -> Text:
    values: dict[str, list[str]] = {}
    metadata = child(package, "metadata")
    for node in metadata.iter() if metadata is not None else ():
        if node.text and node.text.strip():
            values.setdefault(local_name(node), []).append(node.text.strip())
    dates = (iso_date(date) for date in values.get("date", []))
    return Text(
        text=text,
        media_type=MEDIA_TYPE,
        encoding="binary",
        title=clean_title(values.get("title", [""])[0]),
        date=next((date for date in dates if date), ""),
        tags=parse_tags(values.get("subject", [])),
    )
