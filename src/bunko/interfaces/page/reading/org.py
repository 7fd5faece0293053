"""Write the lines of an Org document as Markdown, from which they are rendered."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from bunko.interfaces.page.reading.parts import DocumentHeading

_BLOCK = re.compile(r"(?i)([ \t]*)#\+(begin|end)_(\w+)[ \t]*(\S*)")
_KEYWORD = re.compile(r"[ \t]*#\+[\w-]+(?:\[[^\]\n]*\])?:")
_CAPTION = re.compile(r"(?i)[ \t]*#\+caption(?:\[[^\]\n]*\])?:[ \t]*(.*)")
_COMMENT = re.compile(r"[ \t]*#(?:[ \t]|\Z)")
_DRAWER = re.compile(r"[ \t]*:[\w-]+:[ \t]*\Z")
_DRAWER_END = re.compile(r"(?i)[ \t]*:end:[ \t]*\Z")
_FIXED = re.compile(r"[ \t]*:(?: (.*)|)\Z")
_TABLE_RULE = re.compile(r"[ \t]*\|[-+|]*-[-+|]*\Z")
_ITEM = re.compile(
    r"([ \t]*(?:[-+]|[ \t]\*|\d{1,9}[.)])[ \t]+)(?:\[@\d+\][ \t]+)?(\[[ xX-]\][ \t]+)?"
    r"(?:(.*?)[ \t]+::(?=[ \t]|\Z))?(.*)"
)
_LINK = re.compile(r"\[\[([^\[\]\n]{1,1000})\](?:\[([^\[\]\n]{1,1000})\])?\]")
_MARKED = re.compile(
    r"(?<![^\s('\"{\-\[、。（「])(?P<mark>[*/_+=~])(?=\S)(?P<text>.{1,400}?)(?<=\S)(?P=mark)(?![^\s\-.,;:!?'\")}\]、。）」\[])"
)
_SPECIAL = re.compile(r"([\\`*_~<>&])")
_WRITTEN = {"*": "**", "/": "*", "_": "", "+": "~~"}
_FENCE = "~" * 20
_CODE_BLOCKS = ("src", "example", "export")
_MAX_DRAWER_LINES = 200


def org_to_markdown(
    lines: Sequence[str], numbers: Sequence[int], headings: Mapping[int, DocumentHeading]
) -> tuple[list[str], list[int]]:
    """Return the lines as Markdown, each with the number of the line that it comes from."""
    pairs = list(_convert(lines, numbers, headings))
    return [text for text, _ in pairs], [number for _, number in pairs]


def _convert(
    lines: Sequence[str], numbers: Sequence[int], headings: Mapping[int, DocumentHeading]
) -> Iterator[tuple[str, int]]:
    block, indent, table_end, drawer_end = "", "", 0, 0
    for index, (line, number) in enumerate(zip(lines, numbers, strict=True)):
        edge = _BLOCK.match(line)
        if number in headings:  # wherever it stands, as in Org
            if block in _CODE_BLOCKS:
                yield f"{indent}{_FENCE}", number
            block = ""
            yield f"{'#' * min(headings[number].level, 6)} {_inline(headings[number].title)}", number
        elif block:
            if edge is not None and edge[2].lower() == "end" and edge[3].lower() == block:
                yield f"{indent}{_FENCE}" if block in _CODE_BLOCKS else "", number
                block = ""
            else:
                yield _block_line(line, block), number
        elif edge and edge[2].lower() == "begin":
            block, indent = edge[3].lower(), edge[1]
            yield "", number
            if block in _CODE_BLOCKS:
                yield f"{indent}{_FENCE}", number
        elif line.lstrip().startswith("|"):
            if index >= table_end:
                table_end = next(
                    (end for end in range(index, len(lines)) if not lines[end].lstrip().startswith("|")), len(lines)
                )
                yield from _table(lines[index:table_end], numbers[index:table_end])
        elif index < drawer_end:
            continue
        elif _DRAWER.match(line) and (end := _find_drawer_end(lines, index)):
            drawer_end = end + 1
        else:
            is_first = not index or not _FIXED.match(lines[index - 1])
            yield from ((text, number) for text in _plain_line(line, begins_fixed=is_first))


def _block_line(line: str, block: str) -> str:
    """Return a line between #+BEGIN and #+END."""
    match block:
        case "src" | "example" | "export":
            return line
        case "comment":
            return ""
        case "quote":
            return f"> {_inline(line)}"
        case "verse":
            return f"{_inline(line)}\\" if line.strip() else ""
        case _:
            return _inline(line)


def _plain_line(line: str, *, begins_fixed: bool) -> Iterator[str]:
    """Yield a line that stands for itself, with blank ones around it where Markdown needs them."""
    if caption := _CAPTION.match(line):
        yield from ("", f"*{_inline(caption[1])}*", "")
    elif _KEYWORD.match(line) or _COMMENT.match(line):
        yield ""
    elif fixed := _FIXED.match(line):
        yield from [""] if begins_fixed else []
        yield f"    {fixed[1] or ''}"
    elif item := _ITEM.fullmatch(line):
        term = f"**{_inline(item[3])}**" if item[3] else ""
        yield f"{item[1]}{item[2] or ''}{term}{_inline(item[4] if term else item[4].lstrip())}"
    else:
        text = _inline(line)
        # The text of an item is indented by its mark, and stays so; elsewhere four blanks would be code.
        yield text if len(text) - len(text.lstrip()) < 4 else f"   {text.lstrip()}"


def _table(lines: Sequence[str], numbers: Sequence[int]) -> Iterator[tuple[str, int]]:
    """Yield the rows of a table; without a rule below the first one, its header is empty."""
    rows = [(line, number) for line, number in zip(lines, numbers, strict=True) if not _TABLE_RULE.match(line)]
    if not rows:
        return
    first = lines.index(rows[0][0])
    has_header = first + 1 < len(lines) and _TABLE_RULE.match(lines[first + 1]) is not None
    width = max(len(_cells(line)) for line, _ in rows)
    header, *body = rows if has_header else [("|" * (width + 1), -1), *rows]
    yield "", header[1]
    yield _row(_cells(header[0], width)), header[1]
    yield _row(["---"] * width), header[1]
    for line, number in body:
        yield _row(_cells(line)), number


def _find_drawer_end(lines: Sequence[str], start: int) -> int:
    return next(
        (
            index
            for index in range(start + 1, min(start + _MAX_DRAWER_LINES, len(lines)))
            if _DRAWER_END.match(lines[index])
        ),
        0,
    )


def _cells(line: str, width: int = 0) -> list[str]:
    cells = [_inline(cell.strip()) for cell in line.strip().removeprefix("|").removesuffix("|").split("|")]
    return [*cells, *[""] * (width - len(cells))]


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _inline(text: str) -> str:
    """Return a line with the marks of Markdown instead of those of Org."""
    parts, position = [], 0
    for link in _LINK.finditer(text):
        parts += [_emphasis(text[position : link.start()]), _link(link[1], link[2] or "")]
        position = link.end()
    return "".join([*parts, _emphasis(text[position:])])


def _link(target: str, label: str) -> str:
    # A place in a file is the heading that has this name.
    address = target.removeprefix("file:").replace("::", "#").replace("#*", "#")
    if label:
        return f"[{escape_inline(label)}](<{address.replace('<', '').replace('>', '')}>)"
    return f"[[{target}]]" if "://" not in target else f"<{target}>"


def _emphasis(text: str) -> str:
    parts, position = [], 0
    for match in _MARKED.finditer(text):
        parts.append(escape_inline(text[position : match.start()]))
        if match["mark"] in "=~":
            fence = "``" if "`" in match["text"] else "`"
            space = " " if fence == "``" else ""
            parts.append(f"{fence}{space}{match['text']}{space}{fence}")
        else:
            mark = _WRITTEN[match["mark"]]
            parts.append(f"{mark}{escape_inline(match['text'])}{mark}")
        position = match.end()
    return "".join([*parts, escape_inline(text[position:])])


def escape_inline(text: str) -> str:
    """Return text that Markdown shows as it is."""
    return _SPECIAL.sub(r"\\\1", text)
