"""Parse XML without entities, and with limits on nesting and size."""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree.ElementTree import Element, ParseError, XMLPullParser
from xml.parsers import expat

from bunko.errors import SourceError
from bunko.readers.office.archive import Archive

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
