"""Follow the relationships between the parts of an office document, and read its properties."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bunko.readers.office.archive import Archive, resolve_name
from bunko.readers.office.xml import parse_optional
from bunko.text.dates import iso_date
from bunko.text.labels import clean_title
from bunko.text.tags import parse_tags
from bunko.types import Text

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

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
