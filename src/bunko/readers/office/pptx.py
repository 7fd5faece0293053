"""Read presentations as Markdown: a heading for each slide, its text, tables, diagrams and notes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bunko.errors import SourceError
from bunko.readers.html.blocks import escape_markdown
from bunko.readers.office.number_formats import format_number
from bunko.readers.office.package import (
    Archive,
    Relationship,
    attribute,
    cell_text,
    child,
    children,
    document_text,
    local_name,
    main_part,
    markdown_table,
    parse_optional,
    parse_part,
    relationships,
)
from bunko.readers.places import PRESENTATION, slide_heading
from bunko.text.labels import remove_hidden_chars

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

    from bunko.types import Text

_MAX_SERIES = 50
_MAX_POINTS = 1000


def chart_blocks(chart_space: Element) -> list[str]:
    """Return the title and the table of a chart."""
    chart = child(chart_space, "chart")
    if chart is None:
        return []
    title = child(chart, "title")
    words = [node.text or "" for node in title.iter() if local_name(node) in ("t", "v")] if title is not None else []
    text = " ".join("".join(words).split())
    series = [node for node in chart.iter() if local_name(node) == "ser"][:_MAX_SERIES]
    table = _table(series)
    return [block for block in (remove_hidden_chars(text), table) if block]


def _table(series: list[Element]) -> str:
    names = [cell_text(" ".join(_points(child(node, "tx")).values())) for node in series]
    categories: dict[int, str] = {}
    columns: list[dict[int, str]] = []
    for node in series:
        categories = categories or _points(_first_child(node, "cat", "xVal"))
        columns.append(_points(_first_child(node, "val", "yVal")))
    rows = sorted({*categories, *(index for column in columns for index in column)})
    if not rows:
        return ""
    grid = [["", *names]]
    grid += [[categories.get(row, ""), *(column.get(row, "") for column in columns)] for row in rows]
    return markdown_table([[cell_text(remove_hidden_chars(cell)) for cell in row] for row in grid])


def _first_child(element: Element, *names: str) -> Element | None:
    return next((inner for name in names if (inner := child(element, name)) is not None), None)


def _points(element: Element | None) -> dict[int, str]:
    """Return the stored values of a reference to cells, by their position."""
    points: dict[int, str] = {}
    for node in element.iter() if element is not None else ():
        if local_name(node) == "pt" and (value := child(node, "v")) is not None and len(points) < _MAX_POINTS:
            index = node.get("idx", "")
            position = int(index) if index.isdecimal() and len(index) < 7 else len(points)
            points[position] = format_number((value.text or "").strip(), "number", since_1904=False)
        elif local_name(node) == "v" and not points and element is not None and child(element, "v") is node:
            points[0] = (node.text or "").strip()
    return points


_MAX_SLIDES = 5000
_MAX_CHARS = 20_000_000
_TITLE_KINDS = ("title", "ctrTitle")
_LIST_KINDS = ("body", "obj", "")  # whose paragraphs have bullets by default
_BULLETS = frozenset(("buChar", "buAutoNum", "buBlip"))
_FRAME_KINDS = ("sldNum", "dt", "ftr", "hdr", "sldImg")  # repeated on every slide


def read(data: bytes) -> Text:
    """Return the text of a presentation; raise SourceError if it has none."""
    archive = Archive(data, "presentation")
    part = main_part(archive)
    targets = relationships(archive, part)
    root = parse_part(archive, part)
    slide_ids = [attribute_id(slide) for slide in children(root, "sldIdLst")]
    slides = [targets[slide_id].target for slide_id in slide_ids if slide_id in targets]
    if len(slides) > _MAX_SLIDES:
        raise SourceError(f"The presentation has {len(slides):,} slides, more than {_MAX_SLIDES:,}", hint="Split it.")
    parts: list[str] = []
    title, chars = "", 0
    for number, name in enumerate(slides, 1):
        if name not in archive:
            continue
        slide = _read_slide(archive, name)
        title = title or slide.title
        if slide.title or slide.blocks:
            parts.append("\n\n".join([slide_heading(number, slide.title), *slide.blocks]))
            chars += len(parts[-1])
        if chars > _MAX_CHARS:
            raise SourceError(f"The presentation has more than {_MAX_CHARS:,} characters", hint="Split it.")
    if not parts:
        raise SourceError("The presentation has no text", hint="Exclude it, or run text recognition on its pictures.")
    return document_text(archive, "\n\n".join(parts), PRESENTATION, title=title)


def attribute_id(element: Element) -> str:
    """Return the id of a relationship; the element has an id of its own too."""
    return next((value for key, value in element.items() if key.endswith("/relationships}id")), "")


@dataclass(slots=True)
class _Slide:
    title: str = ""
    blocks: list[str] = field(default_factory=list)


def _read_slide(archive: Archive, name: str) -> _Slide:
    slide = _Slide()
    targets = relationships(archive, name)
    tree = child(parse_part(archive, name), "cSld", "spTree")
    for shape in _shapes(tree):
        if local_name(shape) == "graphicFrame":
            _add_frame(archive, shape, targets, slide)
        else:
            _add_shape(shape, slide)
    for relationship in targets.values():
        if relationship.kind == "notesSlide" and (notes := _notes(archive, relationship.target)):
            slide.blocks.append(f"Notes: {notes}")
    return slide


def _shapes(tree: Element | None) -> Iterator[Element]:
    """Yield the shapes of a slide, also those in groups."""
    for element in tree if tree is not None else ():
        name = local_name(element)
        if name == "AlternateContent":
            yield from _shapes(child(element, "Choice"))
        elif name == "grpSp":
            yield from _shapes(element)
        elif name in ("sp", "cxnSp", "pic", "graphicFrame"):
            yield element


def _placeholder_kind(shape: Element) -> str | None:
    """Return the kind of a placeholder, "" for one of the main text, None for any other shape."""
    properties = next((node for node in shape if local_name(node).startswith("nv")), None)
    placeholder = None if properties is None else child(properties, "nvPr", "ph")
    return None if placeholder is None else attribute(placeholder, "type")


def _add_shape(shape: Element, slide: _Slide) -> None:
    kind = _placeholder_kind(shape)
    if kind in _FRAME_KINDS:
        return
    body = child(shape, "txBody")
    if body is None:
        properties = next((node for node in shape if local_name(node).startswith("nv")), None)
        description = None if properties is None else child(properties, "cNvPr")
        if description is not None and (text := attribute(description, "descr").strip()):
            slide.blocks.append(escape_markdown(remove_hidden_chars(text)))
    elif kind in _TITLE_KINDS and not slide.title:
        slide.title = " ".join(" ".join(text for text, _, _ in _paragraphs(body)).split())
    else:
        slide.blocks += _text_blocks(body, has_bullets=kind in _LIST_KINDS)


def _text_blocks(body: Element, *, has_bullets: bool) -> list[str]:
    """Return the paragraphs of a shape, and its list items together; `has_bullets` is the default of the shape."""
    paragraphs = list(_paragraphs(body, has_bullets=has_bullets))
    blocks: list[str] = []
    was_item = False
    for text, level, is_item in paragraphs:
        # A single sentence is no list, though the layout would give it a bullet.
        is_item = is_item and len(paragraphs) > 1
        indent = "  " * level
        line = f"{indent}- " + text.replace("\n", f"\n{indent}  ") if is_item else escape_markdown(text)
        if is_item and was_item:
            blocks[-1] += f"\n{line}"
        else:
            blocks.append(line)
        was_item = is_item
    return blocks


def _paragraphs(body: Element, *, has_bullets: bool = False) -> Iterator[tuple[str, int, bool]]:
    """Yield the text of each paragraph, its level, and whether it has a bullet."""
    for paragraph in body:
        if local_name(paragraph) != "p":
            continue
        text = remove_hidden_chars("".join(_run_texts(paragraph))).strip()
        if not text:
            continue
        properties = child(paragraph, "pPr")
        names = {local_name(node) for node in properties} if properties is not None else set()
        level = "0" if properties is None else properties.get("lvl", "0")
        is_item = bool(names & _BULLETS) or (has_bullets and "buNone" not in names)
        yield text, int(level) if level in tuple("012345678") else 0, is_item


def _run_texts(paragraph: Element) -> Iterator[str]:
    for node in paragraph:
        name = local_name(node)
        if name in ("r", "fld"):
            inner = child(node, "t")
            yield (inner.text or "") if inner is not None else ""
        elif name == "br":
            yield "\n"
        elif name in ("AlternateContent", "Choice", "m", "oMath", "oMathPara"):
            yield from (text.text or "" for text in node.iter() if local_name(text) == "t")


def _add_frame(archive: Archive, frame: Element, targets: dict[str, Relationship], slide: _Slide) -> None:
    """Add the table, chart or diagram of a frame."""
    for content in children(frame, "graphic", "graphicData"):
        if local_name(content) == "tbl":
            slide.blocks += _table_blocks(content)
        elif local_name(content) == "chart" and (relationship := targets.get(attribute_id(content))):
            slide.blocks += chart_blocks(parse_optional(archive, relationship.target))
        elif local_name(content) == "relIds":
            diagram = targets.get(attribute(content, "dm"))
            for point in children(parse_optional(archive, diagram.target), "ptLst") if diagram else ():
                if (body := child(point, "t")) is not None:
                    slide.blocks += [escape_markdown(text) for text, _, _ in _paragraphs(body)]


def _table_blocks(table: Element) -> list[str]:
    grid: list[list[str]] = []
    for row in table:
        if local_name(row) != "tr":
            continue
        texts: list[str] = []
        for cell in row:
            body = child(cell, "txBody")
            text = "" if body is None else cell_text(" ".join(text for text, _, _ in _paragraphs(body)))
            if attribute(cell, "vMerge") in ("1", "true") and grid and len(texts) < len(grid[-1]):
                text = grid[-1][len(texts)]
            if local_name(cell) == "tc":
                texts.append(text)
        grid.append(texts)
    return [markdown_table(grid)] if any(any(row) for row in grid) else []


def _notes(archive: Archive, name: str) -> str:
    """Return the notes of a slide."""
    tree = child(parse_optional(archive, name), "cSld", "spTree")
    texts: list[str] = []
    for shape in _shapes(tree):
        body = child(shape, "txBody")
        if body is not None and _placeholder_kind(shape) == "body":
            texts += [text for text, _, _ in _paragraphs(body)]
    return escape_markdown("\n".join(texts))
