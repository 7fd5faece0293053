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
_ITEM = re.compile(r"([ \t]*(?:[-+]|[ \t]\*|\d{1,9}[.)])[ \t]+)(?:\[@\d+\][ \t]+)?(\[[ xX-]\][ \t]+)?(?:(.*?)[ \t]+::(?=[ \t]|\Z))?(.*)")
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
    block, indent, in_table, drawer_end = "", "", False, -1
    for index, (line, number) in enumerate(zip(lines, numbers, strict=True)):
        edge = _BLOCK.match(line)
        is_row = not block and line.lstrip().startswith("|")
        if in_table and not is_row:
            in_table = False
        if number in headings:  # wherever it stands, as in Org
            if block in _CODE_BLOCKS:
                yield f"{indent}{_FENCE}", number
            block = ""
            heading = headings[number]
            yield f"{'#' * min(heading.level, 6)} {_inline(heading.title)}", number
        elif block:
            is_end = edge is not None and edge[2].lower() == "end" and edge[3].lower() == block
            if is_end:
                yield f"{indent}{_FENCE}" if block in _CODE_BLOCKS else "", number
                block = ""
            elif block in _CODE_BLOCKS:
                yield line, number
            elif block == "quote":
                yield f"> {_inline(line)}", number
            elif block == "verse":
                yield f"{_inline(line)}\\" if line.strip() else "", number
            elif block != "comment":
                yield _inline(line), number
        elif edge and edge[2].lower() == "begin":
            block, indent = edge[3].lower(), edge[1]
            yield "", number
            if block in _CODE_BLOCKS:
                yield f"{indent}{_FENCE}", number
        elif index <= drawer_end:
            continue
        elif _DRAWER.match(line) and (end := _find_drawer_end(lines, index)):
            drawer_end = end
        elif caption := _CAPTION.match(line):
            yield "", number
            yield f"*{_inline(caption[1])}*", number
            yield "", number
        elif _KEYWORD.match(line) or _COMMENT.match(line):
            yield "", number
        elif fixed := _FIXED.match(line):
            if not index or not _FIXED.match(lines[index - 1]):
                yield "", number
            yield f"    {fixed[1] or ''}", number
        elif is_row:
            is_rule = _TABLE_RULE.match(line) is not None
            if not in_table and not is_rule:
                in_table = True
                cells = _cells(line)
                has_header = index + 1 < len(lines) and _TABLE_RULE.match(lines[index + 1]) is not None
                yield "", number
                yield _row(cells if has_header else [""] * len(cells)), number
                yield _row(["---"] * len(cells)), number
                if not has_header:
                    yield _row(cells), number
            elif not is_rule:
                yield _row(_cells(line)), number
        elif item := _ITEM.fullmatch(line):
            term = f"**{_inline(item[3])}**" if item[3] else ""
            yield f"{item[1]}{item[2] or ''}{term}{_inline(item[4]) if term else _inline(item[4].lstrip())}", number
        else:
            text = _inline(line)
            # The text of an item is indented by its mark, and stays so; elsewhere four blanks would be code.
            yield text if len(text) - len(text.lstrip()) < 4 else f"   {text.lstrip()}", number


def _find_drawer_end(lines: Sequence[str], start: int) -> int:
    return next(
        (
            index
            for index in range(start + 1, min(start + _MAX_DRAWER_LINES, len(lines)))
            if _DRAWER_END.match(lines[index])
        ),
        0,
    )


def _cells(line: str) -> list[str]:
    return [_inline(cell.strip()) for cell in line.strip().strip("|").split("|")]


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
