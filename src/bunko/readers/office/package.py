"""Open an office document within limits: its archive, its XML, the relationships between its parts, its properties."""

from __future__ import annotations

import io
import re
import time
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import Element, ParseError, XMLPullParser
from xml.parsers import expat

from bunko.errors import SourceError
from bunko.text.dates import iso_date
from bunko.text.labels import clean_title
from bunko.text.tags import parse_tags
from bunko.types import Text

_MAIN_PART_TYPE = "officeDocument"


@dataclass(frozen=True, slots=True)
class Relationship:
    """A reference from one part to another part of the same file."""

    kind: str  # the last word of its type: slide, notesSlide
    target: str  # name of a part


def main_part(archive: Archive) -> str:
    """Return the name of the part that holds the document."""
    for relationship in relationships(archive, "").values():
        if relationship.kind == _MAIN_PART_TYPE and relationship.target in archive:
            return relationship.target
    raise archive.unreadable(KeyError("its main part is missing"))


def relationships(archive: Archive, part: str) -> dict[str, Relationship]:
    """Return the targets of a part, by id; those outside the file are left out."""
    folder, _, name = part.rpartition("/")
    root = parse_optional(archive, resolve_name("", f"{folder}/_rels/{name}.rels"))
    return {
        element.get("Id", ""): Relationship(
            element.get("Type", "").rpartition("/")[2], resolve_name(part, element.get("Target", ""))
        )
        for element in root
        if element.get("TargetMode") != "External"
    }


def local_name(element: Element) -> str:
    """Return the name of an element without its namespace."""
    return str(element.tag).rpartition("}")[2]


def attribute(element: Element, name: str) -> str:
    """Return an attribute by its name without namespace; "" if there is none."""
    if (value := element.get(name)) is not None:
        return value
    ending = f"}}{name}"
    return next((value for key, value in element.items() if key.endswith(ending)), "")


def child(element: Element, *path: str) -> Element | None:
    """Return the first element on a path of names without namespaces."""
    current: Element | None = element
    for name in path:
        if current is None:
            return None
        current = next((inner for inner in current if local_name(inner) == name), None)
    return current


def children(element: Element, *path: str) -> list[Element]:
    """Return the elements in the first element on a path of names; none if it is missing."""
    parent = child(element, *path)
    return [] if parent is None else list(parent)


def document_text(archive: Archive, text: str, media_type: str, *, title: str = "") -> Text:
    """Return a text with the title, date and keywords from the properties; `title` is used if they name none."""
    names = [relationship.target for relationship in relationships(archive, "").values()
             if relationship.kind == "core-properties"]  # fmt: skip
    elements = parse_optional(archive, names[0]) if names else ()
    values = {local_name(element): (element.text or "").strip() for element in elements}
    dates = (iso_date(values.get(name, "")) for name in ("created", "modified"))
    return Text(
        text=text,
        media_type=media_type,
        encoding="binary",
        title=clean_title(values.get("title", "")) or title,
        date=next((date for date in dates if date), ""),
        tags=parse_tags(values.get("keywords", "")),
    )


_MAX_DEPTH = 200  # nested elements; tables within tables of real documents reach 60
_MAX_HELD_ELEMENTS = 1_000_000  # in memory at a time


def parse_part(archive: Archive, name: str) -> Element:
    """Return the root element of a part."""
    return next(iter_elements(archive, name))


def parse_optional(archive: Archive, name: str) -> Element:
    """Return the root element of a part; an empty element if it is missing or damaged."""
    if name not in archive:
        return Element("none")
    try:
        return parse_part(archive, name)
    except SourceError:
        archive.check_limits()
        return Element("none")


def iter_elements(archive: Archive, name: str, *parents: str) -> Iterator[Element]:
    """Yield the children of the elements with these names, in any namespace; without names, the root itself.

    Each one is complete. It is emptied when the next one is asked for, so that a part of any size needs little memory.
    """
    try:
        yield from _iter_elements(archive, name, tuple(f"}}{parent}" for parent in parents))
    except (ParseError, expat.ExpatError, ValueError, LookupError) as error:
        raise archive.unreadable(error) from error


def _iter_elements(archive: Archive, name: str, parents: tuple[str, ...]) -> Iterator[Element]:
    open_elements: list[Element] = []
    parent_depth = 0  # of the open element whose children are yielded
    held_count = 0
    for event, element in _iter_events(archive, name):
        if event == "start":
            held_count += 1
            open_elements.append(element)
            if len(open_elements) > _MAX_DEPTH or held_count > _MAX_HELD_ELEMENTS:
                raise ValueError("its XML is nested too deeply or too large")
            if not parent_depth and element.tag.endswith(parents):
                parent_depth = len(open_elements)
            continue
        open_elements.pop()
        depth = len(open_elements)
        if parent_depth and depth == parent_depth:
            yield element
            open_elements[-1].clear()
            held_count = depth
        elif depth < parent_depth:
            parent_depth = 0
        if not depth and not parents:
            yield element


def _iter_events(archive: Archive, name: str) -> Iterator[tuple[str, Element]]:
    """Yield the starts and ends of elements.

    Since expat 2.6 the parser holds back what follows a long comment or attribute, until as much again was fed or it is
    closed. `flush`, which Python has since then, keeps all that from becoming elements at once.
    """
    parser: XMLPullParser[Element] = XMLPullParser(("start", "end"))
    for piece in _checked_pieces(archive.stream(name)):
        archive.count_elements(piece.count(b"<") - piece.count(b"</"))
        parser.feed(piece)
        if hasattr(parser, "flush"):
            parser.flush()
        yield from parser.read_events()  # type: ignore[misc]
    parser.close()
    yield from parser.read_events()  # type: ignore[misc]


def _checked_pieces(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the pieces of an XML file unless it declares entities, which can stand for other files or for gigabytes.

    Declarations precede the first element, so that only the beginning is read twice. No piece is handed on before: the
    checker, too, may see what stands in it only when more follows.
    """
    unchecked: list[bytes] = []
    seen_element = False
    checker = expat.ParserCreate()

    def refuse(*_: object) -> None:
        raise ValueError("its XML declares entities")

    def stop_checking(*_: object) -> None:
        nonlocal seen_element
        seen_element = True
        checker.StartElementHandler = checker.EntityDeclHandler = None

    checker.EntityDeclHandler = refuse
    checker.StartElementHandler = stop_checking
    for piece in pieces:
        unchecked.append(piece)
        if not seen_element:
            checker.Parse(piece, False)
        if seen_element:
            yield from unchecked
            unchecked.clear()
    if not seen_element:
        checker.Parse(b"", True)
    yield from unchecked


_MAX_ENTRIES = 20_000  # a long e-book has a few thousand
MAX_UNCOMPRESSED_BYTES = 256 << 20  # of all parts that are read together; a book of 1,000 pages has 20 MB of XML
MAX_ELEMENTS = 4_000_000  # of XML; the largest sheets that are read have 3 million, books of 1,000 pages one
MAX_SECONDS = 60.0
# Every feed of the XML parser may start over at the beginning of an unfinished tag, so pieces must not be small.
PIECE_BYTES = 1 << 20
# Exceptions of the standard library at damage to a ZIP file, or at an entry of an unused method.
_DAMAGE = (
    zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError, OverflowError, LookupError,
    OSError,
)  # fmt: skip
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_ENTRY_MARK = b"PK\x01\x02"
# Office programs keep a document with a password, and documents of before 2007, in a container of this kind.
_OLD_CONTAINER_MARK = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"


class Archive:
    """The parts of a ZIP file by name; nothing is written to disk, and a name never leads out of the file."""

    def __init__(self, data: bytes, kind: str) -> None:
        self.kind = kind  # for messages: Word document, e-book
        self._bytes_left = MAX_UNCOMPRESSED_BYTES
        self._elements_left = MAX_ELEMENTS
        self._deadline = time.monotonic() + MAX_SECONDS
        if data.startswith(_OLD_CONTAINER_MARK):
            raise SourceError(
                f"The {kind} is encrypted, or in the format of before 2007",
                hint="Save a copy without a password in the current format and import that.",
            )
        # Counted before the directory is read: each entry of it costs a hundred times its bytes in memory.
        if data.count(_ENTRY_MARK) > _MAX_ENTRIES:
            raise SourceError(f"The {kind} has more than {_MAX_ENTRIES:,} parts", hint="Exclude it.")
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(data))
            # Names that differ in case are one part to office programs.
            self._entries = {_normalize_name(entry.filename): entry for entry in self._zip.infolist()}
        except _DAMAGE as error:
            raise self.unreadable(error) from error
        if any(entry.flag_bits & 1 for entry in self._entries.values()):
            raise SourceError(f"The {kind} is encrypted", hint="Save a copy without a password and import that.")

    def __contains__(self, name: str) -> bool:
        return _normalize_name(name) in self._entries

    def read(self, name: str) -> bytes:
        """Return a part; raise SourceError if it is missing, damaged or too large."""
        return b"".join(self.stream(name))

    def stream(self, name: str) -> Iterator[bytes]:
        """Yield a part piece by piece; raise SourceError if it is missing, damaged or too large."""
        entry = self._entries.get(_normalize_name(name))
        if entry is None:
            raise self.unreadable(KeyError(f"{name} is missing"))
        if entry.compress_type not in _METHODS:
            raise self.unreadable(ValueError("a part is compressed by an unknown method"))
        try:
            with self._zip.open(entry) as stream:
                while piece := stream.read(PIECE_BYTES):
                    self._bytes_left -= len(piece)
                    self.check_limits()
                    yield piece
        except _DAMAGE as error:
            raise self.unreadable(error) from error

    def count_elements(self, count: int) -> None:
        """Raise SourceError if all parts together have more elements than any document."""
        self._elements_left -= count
        if self._elements_left < 0:
            raise SourceError(
                f"The {self.kind} has more than {MAX_ELEMENTS:,} XML elements", hint="Split it, or exclude it."
            )

    def check_limits(self) -> None:
        """Raise SourceError if the file takes too long or turned out too large."""
        if self._bytes_left < 0 or time.monotonic() > self._deadline:
            raise SourceError(
                f"The {self.kind} is too large or too slow to read: it unpacks to more than"
                f" {MAX_UNCOMPRESSED_BYTES >> 20} MB or takes more than {MAX_SECONDS:.0f} seconds",
                hint="Split it, or exclude it.",
            )

    def unreadable(self, error: Exception) -> SourceError:
        """Return the error for a file that is damaged or not of its kind."""
        reason = error.args[0] if isinstance(error, KeyError) and error.args else error
        return SourceError(
            f"The {self.kind} cannot be read: {' '.join(str(reason).split())[:200] or type(error).__name__}",
            hint="Open it and save it again, or exclude it.",
        )


def resolve_name(base: str, target: str) -> str:
    """Return the name of a part that another part refers to; `..` stops at the top."""
    names = [] if target.startswith("/") else base.split("/")[:-1]
    for name in target.split("/"):
        if name == "..":
            del names[-1:]
        elif name not in ("", "."):
            names.append(name)
    return "/".join(names)


def _normalize_name(name: str) -> str:
    return re.sub(r"[\\/]+", "/", name).strip("/").lower()


_BLANKS = re.compile(r"\s+")


def cell_text(text: str) -> str:
    """Return the text of a cell on one line."""
    return _BLANKS.sub(" ", text).strip().replace("|", "\\|")


def markdown_table(rows: Sequence[Sequence[str]]) -> str:
    """Return a table whose first row is its header; shorter rows are filled up."""
    width = max(map(len, rows), default=0)
    lines = [f"| {' | '.join([*row, *[''] * (width - len(row))])} |" for row in rows]
    lines.insert(1, f"| {' | '.join(['---'] * width)} |")
    return "\n".join(lines)
