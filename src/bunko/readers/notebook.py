"""Read Jupyter notebooks as Markdown, with a heading for each cell."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from bunko.errors import SourceError
from bunko.readers import markdown, outline
from bunko.readers.encoding import decode
from bunko.readers.reader import Reader
from bunko.text.dates import iso_date
from bunko.text.labels import remove_hidden_chars
from bunko.text.tags import parse_tags
from bunko.types import Text

MEDIA_TYPE = "application/x-ipynb+json"
MAX_VALUES = 2_000_000  # of its JSON: a parser makes up to 300 bytes of each
_MAX_OUTPUT_CHARS = 2000  # of a cell: a log or a large table says little after its beginning
_MAX_TITLE_CHARS = 300
# The headings of a notebook are above its cells: two levels of them, then the cell.
_CELL_LEVEL = 3
_ESCAPE_SEQUENCE = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-_])")
_SURROGATE = re.compile("[\ud800-\udfff]")
_BACKTICKS = re.compile("`{3,}")
_LANGUAGE_NAME = re.compile(r"[\w+#.-]{1,30}")


def read_file(data: bytes) -> Text:
    """Return the text, the code and the beginning of the outputs of all cells; raise SourceError if there are none."""
    import json

    source, encoding = decode(data)
    if sum(map(source.count, "[{,")) > MAX_VALUES:
        raise SourceError(f"The notebook has more than {MAX_VALUES:,} values", hint="Clear its outputs or exclude it.")
    try:
        notebook = json.loads(source)
    except ValueError as error:
        raise _damaged_error("it is not valid JSON") from error
    except RecursionError as error:
        raise _damaged_error("it is nested too deeply") from error
    if not isinstance(notebook, dict):
        raise _damaged_error("it is not a JSON object")
    cells = [cell for cell in _cells(notebook) if isinstance(cell, dict)]
    metadata = _mapping(notebook.get("metadata"))
    front_matter = _take_front_matter(cells)
    blocks = list(_blocks(cells, _language(metadata)))
    if not blocks:
        raise SourceError("The notebook has no cells with text", hint="Exclude it, or save it again with its cells.")
    text = "\n\n".join(blocks)
    date = front_matter.date or iso_date(_scalar(metadata.get("date") or metadata.get("modified")))
    title = front_matter.title or _one_line(_scalar(metadata.get("title"))) or _first_title(text)
    tags = metadata.get("tags") or metadata.get("keywords") or ()
    return Text(
        text=text,
        media_type=MEDIA_TYPE,
        encoding=encoding,
        title=title[:_MAX_TITLE_CHARS],
        date=date,
        tags=parse_tags((*front_matter.tags, *(parse_tags(tags) if isinstance(tags, str) else _strings(tags)))),
    )


def _cells(notebook: Mapping[str, Any]) -> list[Any]:
    """Return the cells; before version 4 they were in worksheets."""
    cells = notebook.get("cells")
    if isinstance(cells, list):
        return cells
    worksheets = notebook.get("worksheets")
    sheets = [_mapping(sheet).get("cells") for sheet in worksheets] if isinstance(worksheets, list) else []
    return [cell for sheet in sheets if isinstance(sheet, list) for cell in sheet]


def _take_front_matter(cells: list[dict[str, Any]]) -> Text:
    """Remove the front matter that publishing tools put into the first cell, and return it."""
    source = _source(cells[0]) if cells else ""
    if source.startswith(("---", "+++")):
        text = markdown.read(source, "utf-8")
        if text.body_start:
            cells[0] = {**cells[0], "source": source[text.body_start :]}
            return text
    return Text("", MEDIA_TYPE, "")


def _blocks(cells: list[dict[str, Any]], language: str) -> Iterator[str]:
    """Yield the blocks of the text: headings, prose, code and outputs."""
    for number, cell in enumerate(cells, 1):
        source = _source(cell).strip("\n")
        outputs = "" if cell.get("cell_type") in ("markdown", "heading", "raw") else _outputs(cell)
        if not (source.strip() or outputs):
            continue
        match cell.get("cell_type"):
            case "markdown":
                yield from _markdown_blocks(source, number)
            case "heading":  # before version 4
                yield from _markdown_blocks(f"{'#' * _heading_level(cell)} {_one_line(source)}", number)
            case "raw":
                yield _cell_heading(number)
                yield _fenced(source, "")
            case _:
                yield _cell_heading(number)
                if source.strip():
                    yield _fenced(source, language)
                if outputs:
                    yield _fenced(outputs, "")


def _cell_heading(number: int) -> str:
    return f"{'#' * _CELL_LEVEL} Cell {number}"


def _markdown_blocks(source: str, number: int) -> Iterator[str]:
    """Yield the parts of a Markdown cell; a heading stands above the heading of its cell."""
    lines = outline.unify_line_ends(source)
    position = 0
    has_cell_heading = False
    for mark in outline.scan_outline(lines):
        if not isinstance(mark, outline.Heading):
            continue
        if text := lines[position : mark.start].strip("\n"):
            if not has_cell_heading:
                yield _cell_heading(number)
            yield text
        has_cell_heading = has_cell_heading or bool(text)
        if mark.level < _CELL_LEVEL:
            yield f"{'#' * mark.level} {mark.title}"
            has_cell_heading = False
        else:
            if not has_cell_heading:
                yield _cell_heading(number)
                has_cell_heading = True
            yield f"{'#' * min(6, mark.level + 1)} {mark.title}"
        position = mark.end
    text = lines[position:].strip("\n")
    if not has_cell_heading:
        yield _cell_heading(number)
    if text:
        yield text


def _fenced(text: str, language: str) -> str:
    longest = max((len(run) for run in _BACKTICKS.findall(text)), default=2)
    fence = "`" * min(longest + 1, 20)
    return f"{fence}{language}\n{text}\n{fence}"


def _outputs(cell: Mapping[str, Any]) -> str:
    """Return the beginning of the text that a cell printed or returned."""
    parts: list[str] = []
    size = 0
    outputs = cell.get("outputs")
    for output in outputs if isinstance(outputs, list) else ():
        if size > _MAX_OUTPUT_CHARS:
            break
        if text := _output_text(_mapping(output)).strip("\n"):
            parts.append(text)
            size += len(text)
    text = "\n".join(parts)
    return text if len(text) <= _MAX_OUTPUT_CHARS else f"{text[:_MAX_OUTPUT_CHARS].rstrip()}\n…"


def _output_text(output: Mapping[str, Any]) -> str:
    if output.get("output_type") in ("error", "pyerr"):
        text = f"{_scalar(output.get('ename'))}: {_scalar(output.get('evalue'))}"
    else:
        data = _mapping(output.get("data"))
        text = _joined(data.get("text/markdown") or data.get("text/plain") or output.get("text"))
    text = _ESCAPE_SEQUENCE.sub("", text[: 4 * _MAX_OUTPUT_CHARS]).replace("\r\n", "\n")
    # A progress bar writes over its line; only what is seen at the end counts.
    return remove_hidden_chars("\n".join(line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n")))


def _source(cell: Mapping[str, Any]) -> str:
    return _joined(cell.get("source") or cell.get("input")).replace("\r\n", "\n").replace("\r", "\n")


def _joined(value: object) -> str:
    """Return a string that may be stored as a list of lines."""
    text = "".join(_strings(value)) if isinstance(value, list) else value if isinstance(value, str) else ""
    return _SURROGATE.sub("\ufffd", text)


def _strings(value: object) -> list[str]:
    return (
        [_SURROGATE.sub("\ufffd", item) for item in value if isinstance(item, str)] if isinstance(value, list) else []
    )


def _scalar(value: object) -> str:
    return _SURROGATE.sub("\ufffd", str(value)) if isinstance(value, str | int) else ""


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _heading_level(cell: Mapping[str, Any]) -> int:
    level = cell.get("level")
    return min(6, max(1, level)) if isinstance(level, int) else 1


def _language(metadata: Mapping[str, Any]) -> str:
    name = _scalar(_mapping(metadata.get("language_info")).get("name")) or _scalar(
        _mapping(metadata.get("kernelspec")).get("language")
    )
    return name if _LANGUAGE_NAME.fullmatch(name) else ""


def _first_title(text: str) -> str:
    """Return the first heading that is not the one of a cell."""
    headings = (mark for mark in outline.scan_outline(text) if isinstance(mark, outline.Heading))
    return next((mark.title for mark in headings if mark.level != _CELL_LEVEL and mark.title), "")


def _damaged_error(reason: str) -> SourceError:
    return SourceError(
        f"The notebook cannot be read: {reason}", hint="Open it in Jupyter and save it again, or exclude it."
    )


READER = Reader(read_file, suffixes=(".ipynb",), media_type=MEDIA_TYPE, default_suffixes=(".ipynb",), label="notebook")
