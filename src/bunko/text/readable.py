"""Turn marked-up text into what people read: links show their text, tables their headers, lists their lines.

This is for excerpts, which begin and end anywhere: what is not clearly markup stays as it is. What is stored, and what
assistants get, is the text itself.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from itertools import accumulate
from pathlib import PurePosixPath

# Documents whose text is Markdown, or becomes it when they are read.
_MARKDOWN_SUFFIXES = frozenset((".md", ".markdown", ".mdx", ".qmd", ".rmd", ".ipynb"))
# Of these, readers write Markdown, but what looks like HTML in it is text.
_EXTRACTED_SUFFIXES = frozenset(
    ".docx .docm .dotx .dotm .pptx .pptm .ppsx .ppsm .potx .xlsx .xlsm .xltx .xltm .epub .pdf .eml .mbox".split()
)
_RST_SUFFIXES = frozenset((".rst", ".rest"))
_MARKUP_SUFFIXES = _MARKDOWN_SUFFIXES | _RST_SUFFIXES | {".html", ".htm", ".xhtml", ".org"}
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.S)
_BLANK_LINES = re.compile(r"\n[ \t]*\n\s*")
_LINE_START = re.compile(r"[ \t]*(?:•|\d{1,3}[.)][ \t])|(?:Subject|From|To|Cc|Date|Attachment): ")
_FENCE = re.compile(r"[ \t]{0,3}(`{3,}|~{3,})")
_HEADING = re.compile(r"[ \t]{0,3}#{1,6}[ \t]+(.*?)(?:[ \t]+#+)?[ \t]*\Z")
_ITEM = re.compile(r"([ \t]*)[-*+][ \t]+(?:\[([ xX])\][ \t]+)?(.*)\Z")
_QUOTE = re.compile(r"\A[ \t]{0,3}(?:>[ \t]?)+")
_RULE = re.compile(r"[ \t]{0,3}(?:(?:-[ \t]*){3,}|(?:\*[ \t]*){3,}|(?:_[ \t]*){3,}|=+[ \t]*)\Z")
_TABLE_RULE = re.compile(r"[ \t]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*\Z")
_CELL_BORDER = re.compile(r"(?<!\\)\|")
_ADMONITION = re.compile(r"[ \t]*:{3,}.*\Z|[ \t]*/{3,}(?:[ \t]+[\w-]+[ \t]*(?:\|.*)?)?\Z|[ \t]*\[![A-Z]+\][ \t]*\Z")
_DEFINITION = re.compile(r"[ \t]{0,3}\[[^\]\n]{1,200}\]:[ \t]+\S.*\Z")
# Shortcodes and comments of site generators, and anchors; the limits bound the time for marks that are never closed.
SITE_MARK = re.compile(
    r"\{\{[<%].{0,300}?[%>]\}\}|\{%.{0,300}?%\}|\{\*[ \t].{0,300}?[ \t]\*\}|\{[ \t]?#[\w:.-]{1,200}[ \t]?\}"
    r"|\{:[^{}\n]{0,200}\}|\{\{[ \t]?(?:book|config|page|site)\.[\w.-]{1,100}[ \t]?\}\}"
)
_FOOTNOTE = re.compile(r"\[\^[^\]\n]{1,40}\]")
_CODE = re.compile(r"(?<!`)(`+)(?!`)(.{1,500}?)(?<!`)\1(?!`)")
_IMAGE = re.compile(
    r"!\[([^\[\]\n]{0,300})\](?:\([^()\n]{0,4000}(?:\([^()\n]{0,200}\)[^()\n]{0,300})?\)|\[[^\[\]\n]{0,200}\])"
)
_LINK = re.compile(
    r"\[([^\[\]\n]{1,300})\](?:\([^()\n]{0,4000}(?:\([^()\n]{0,200}\)[^()\n]{0,300})?\)|\[[^\[\]\n]{0,200}\])"
)
_ADDRESS = re.compile(r"<((?:https?|mailto):[^<>\s]{1,600})>")
_TAG = re.compile(r"</?[A-Za-z][\w:-]{0,40}(?:[ \t][^<>\n]{0,400})?/?>")
_BREAK = re.compile(r"(?i)<br[ \t]*/?>")
_STRONG = re.compile(r"(\*\*|__|~~)(?=[^\s*_~])(.{1,400}?)(?<=[^\s*_~])\1")
_EMPHASIS = re.compile(
    r"(?<![a-zA-Z0-9*])\*(?=[^\s*])([^*\n]{1,400}?)(?<=[^\s*])\*(?![a-zA-Z0-9*])"  # Japanese has no spaces around it
    r"|(?<![\w_])_(?=[^\s_])([^_\n]{1,400}?)(?<=[^\s_])_(?![\w_])"
)
_ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~])")
# What Org and reStructuredText write otherwise than Markdown: patterns, and what takes their place.
_ORG_MARKS = [
    (re.compile(expression), replacement)
    for expression, replacement in (
        (r"(?im)^[ \t]*#\+(?:begin|end)_(?:src|example|export).*$", "```"),
        (r"(?im)^[ \t]*#\+(?:title|caption):[ \t]*(.*)$", r"\1"),
        (r"(?m)^[ \t]*#\+.*$", ""),
        (r"(?m)^[ \t]*:[\w+-]{1,60}:(?:[ \t].*|)$\n?", ""),  # drawers and their properties
        (
            r"(?m)^\*{1,9}[ \t]+(?:[A-Z]{4,10}[ \t]+)?(?:\[#\w\][ \t]*)?(.*?)(?:[ \t]+:[\w@#%:]{1,200}:)?[ \t]*$",
            r"# \1",
        ),
        (r"\[\[[^\[\]\n]{1,1000}\]\[([^\[\]\n]{1,1000})\]\]", r"\1"),
        (r"\[\[(?:file:)?([^\[\]\n]{1,1000})\]\]", r"\1"),
        (r"(?<![^\s('\"、。（「])([=~])(?=\S)([^\n]{1,200}?)(?<=\S)\1(?![\w=~])", r"`\2`"),
        (r"(?<![^\s('\"、。（「])/(?=[^\s/])([^/\n]{1,200})(?<=\S)/(?![\w/])", r"\1"),
        (r"(?m)^[ \t]*\|[-+|]{3,}$", "|---|"),
    )
]
_RST_MARKS = [
    (re.compile(expression), replacement)
    for expression, replacement in (
        (r"(?m)^[ \t]*([=\-~`'\"^+*.:#_])\1{2,}(?:[ \t]+\1{2,})*[ \t]*$", ""),  # below titles, and rules of tables
        (r"(?m)^[ \t]*\.\. +(?:_[^\n]*|\|[^\n]*|\[[^\n]*)$", ""),  # targets, substitutions and footnotes
        (r"(?m)^[ \t]*\.\. +(?:note|warning|tip|important|seealso|admonition|figure|image)::[ \t]*(.*)$", r"\1"),
        (r"(?m)^[ \t]*\.\.(?:[ \t].*|)$", ""),  # other directives, and comments
        (r"(?m)^[ \t]+:[\w-]{1,60}:(?:[ \t].*|)$\n?", ""),  # options of directives
        (r"(?<![`\w]):[\w:+.-]{1,60}:`([^`\n]{1,400})`", r"`\1`_"),
        (r"`([^`<>\n]{1,300}?)\s*<[^`<>\n]{1,600}>`__?", r"\1"),
        (r"(?<!`)`~?([^`\n]{1,300})`__?(?!\w)", r"\1"),
        (r"(?<![|\w])\|([^|\s][^|\n]{0,100})\|(?![|\w])", r"\1"),
        (r"(?m)(?<!:)::[ \t]*$", ":"),
    )
]
# Stand for code and escaped signs, the beginning of a line of code, <, and the ends of code while the rest is read; no
# text has them.
_KEPT, _CODE_LINE, _LESS, _CODE_START, _CODE_END = "\ue000", "\ue001", "\ue002", "\ue003", "\ue004"
_NO_CODE = str.maketrans("", "", f"{_CODE_LINE}{_CODE_START}{_CODE_END}")


def has_markup(uri: str) -> bool:
    """Return whether the text of a document has marks that people do not read."""
    return uri.startswith(("http://", "https://")) or _suffix(uri) in _MARKUP_SUFFIXES


def file_of(uri: str) -> str:
    """Return the file that a document is, or is an entry of; a folder may have the mark of entries in its name: C#."""
    file = uri.partition("#")[0]
    return file if PurePosixPath(file).suffix else uri


def _suffix(uri: str) -> str:
    return PurePosixPath(file_of(uri)).suffix.lower()


def readable(text: str, uri: str) -> str:
    """Return the text of a document as people read it, a paragraph or an item on a line of its own."""
    return _readable(text, uri).translate(_NO_CODE)


def readable_markdown(text: str) -> str:
    """Return Markdown as people read it."""
    return _from_markdown(text).translate(_NO_CODE)


def _readable(text: str, uri: str) -> str:
    suffix = _suffix(uri)
    if suffix in _EXTRACTED_SUFFIXES:
        return _from_markdown(text.replace("<", _LESS)).replace(_LESS, "<")
    if not has_markup(uri):
        return text
    for pattern, replacement in _ORG_MARKS if suffix == ".org" else _RST_MARKS if suffix in _RST_SUFFIXES else ():
        text = pattern.sub(replacement, text)
    return _from_markdown(text)


def _from_markdown(text: str) -> str:
    return "\n".join(_lines(text.replace("\r\n", "\n").translate(_NO_CODE))).strip("\n")


def readable_title(title: str, uri: str) -> str:
    """Return the title of a document without the marks in it; those of web pages have none."""
    return " ".join(readable_markdown(title).split()) if _suffix(uri) in _MARKDOWN_SUFFIXES else title


def excerpt_text(text: str, uri: str) -> str:
    """Return the text of a document for an excerpt: a line for each heading, paragraph, item, row and line of code."""
    return excerpt_with_code(text, uri)[0]


def excerpt_with_code(text: str, uri: str) -> tuple[str, list[tuple[int, int]]]:
    """Return the text of a document for an excerpt, and where the code in it begins and ends."""
    lines = "\n".join(line for block in _BLANK_LINES.split(_readable(text, uri)) if (line := _joined(block)))
    parts = re.split(f"[{_CODE_START}{_CODE_END}]", lines)  # text and code in turn
    ends = list(accumulate(map(len, parts)))
    return "".join(parts), [(end - len(code), end) for code, end in zip(parts[1::2], ends[1::2], strict=True)]


def _joined(block: str) -> str:
    """Return a block whose lines were broken at a margin with a line for each item, row and line of code."""
    lines: list[str] = []
    is_code = False
    for line in block.splitlines():
        was_code, is_code = is_code, line.startswith(_CODE_LINE)
        text = line.removeprefix(_CODE_LINE).strip()
        if lines and not (is_code or was_code or _LINE_START.match(line) or " · " in line):
            lines[-1] = f"{lines[-1]} {text}"
        elif text:
            lines.append(text)
    return "\n".join(" ".join(line.split()) for line in lines)


def _lines(text: str) -> Iterator[str]:
    fence, header = "", list[str]()
    text = _COMMENT.sub("", text)
    lines = text.split("\n")
    for line, below in zip(lines, [*lines[1:], ""], strict=True):
        mark = _FENCE.match(line)
        if fence:
            if mark and mark[1].startswith(fence) and not line.strip(" \t`~"):
                fence = ""
            else:
                code = line.lstrip()
                marked = f"{_CODE_START}{code}{_CODE_END}" if code else ""
                yield f"{_CODE_LINE}{line[: len(line) - len(code)]}{marked}"
        elif mark:
            fence = mark[1]
        elif not _is_row(line):
            header = []
            yield from _block(line)
        elif _TABLE_RULE.fullmatch(line):
            continue
        elif _is_row(below) and _TABLE_RULE.fullmatch(below):
            header = _cells(line)  # its rows name it
        else:
            yield _row(header, _cells(line))


def _is_row(line: str) -> bool:
    return line.lstrip().startswith("|") and line.count("|") > 1


def _block(line: str) -> Iterator[str]:
    line = _QUOTE.sub("", line)
    if _RULE.fullmatch(line) or _ADMONITION.fullmatch(line) or _DEFINITION.fullmatch(line):
        return
    if heading := _HEADING.fullmatch(line):
        yield f"{_inline(heading[1])}\n"
    elif item := _ITEM.fullmatch(line):
        box = {None: "", " ": "☐ "}.get(item[2], "☑ ")
        yield f"{item[1]}• {box}{_inline(item[3])}"
    else:
        yield _inline(line)


def _cells(line: str) -> list[str]:
    return [_inline(cell.strip()) for cell in _CELL_BORDER.split(line.strip().strip("|"))]


def _row(header: list[str], cells: list[str]) -> str:
    """Return a row of a table on a line, each cell but the first with the name of its column."""
    named = [
        f"{name}: {cell}" if name and place else cell
        for place, cell in enumerate(cells)
        if cell
        for name in (header[place] if place < len(header) else "",)
    ]
    return " · ".join(named)


def _inline(line: str) -> str:
    """Return a line without the marks inside it."""
    if not any(mark in line for mark in "`[]<>*_~\\{&"):
        return line
    kept: list[str] = []

    def keep(value: str) -> str:
        kept.append(value)
        return f"{_KEPT}{len(kept) - 1}{_KEPT}"

    line = _CODE.sub(
        lambda match: keep(f"{_CODE_START}{match[2].strip() or match[2]}{_CODE_END}"), line.replace(_KEPT, "")
    )
    line = _ESCAPE.sub(lambda match: keep(match[1]), line)
    line = _FOOTNOTE.sub("", SITE_MARK.sub("", line))
    line = _LINK.sub(r"\1", _IMAGE.sub(r"\1", line))
    line = _TAG.sub("", _BREAK.sub(" ", _ADDRESS.sub(r"\1", line)))
    line = _STRONG.sub(r"\2", _STRONG.sub(r"\2", line))
    line = _EMPHASIS.sub(lambda match: match[1] or match[2], line)
    line = html.unescape(line)
    for number in range(len(kept) - 1, -1, -1):
        line = line.replace(f"{_KEPT}{number}{_KEPT}", kept[number])
    return line.rstrip()
