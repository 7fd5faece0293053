"""Write the lines of PDF pages as Markdown: headings, paragraphs, lists, without running heads and page numbers."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from statistics import median
from typing import NamedTuple

from bunko.readers.html.blocks import WIDE_CHARS, escape_markdown
from bunko.readers.places import page_heading
from bunko.text.labels import remove_hidden_chars

# A line as long as its neighbours continues on the next line.
_FULL_LINE_SHARE = 0.85
_MIN_FULL_LINE_CHARS = 10
_WRAPPED_LINE_END = re.compile(rf"[{WIDE_CHARS}](?<![。．！？」』）】])\Z")
_WIDE_LINE_START = re.compile(rf"[{WIDE_CHARS}]")
_CELL_GAP = re.compile(rf"(?<=[{WIDE_CHARS}]) (?=[{WIDE_CHARS}])")  # two or more of them: a row of a table
_BULLET = re.compile(r"[•◦▪‣⁃●・][ \t　]*(?=\S)")
_HYPHEN = re.compile(
    "\ufffe(?=[a-zß-ÿ])"
)  # PDFium writes U+FFFE for the hyphen at the end of a line and joins the lines
_LEADERS = re.compile(r"(?: ?[.．…‥・]){4,} ?")  # the dots before the page numbers of a table of contents
_SECTION_NUMBER = re.compile(
    r"(?:第[0-9一二三四五六七八九十百]+[章節部編回]|chapter[0-9ivxlc]+|appendix[a-z0-9]+|[a-z]?[0-9][0-9.]*|[a-z]\.)[:.、．-]*"
)
_LETTER = re.compile(r"[^\W\d_]")
_KANA = re.compile(r"[\u3041-\u30ff\s]+")

_MIN_HEADING_RATIO = 1.15  # to the size of the running text
_MAX_HEADING_CHARS = 120
_MAX_HEADING_LINES = 3
_MAX_SIZE_LEVELS = 4
_FIRST_LEVEL = 3  # pages have level 2
_MAX_READING_RATIO = 0.62  # furigana have half the size of the text
_MAX_EDGE_LINES = 2  # running heads and page numbers
_MIN_REPEATS = 3
_PARAGRAPH_GAP = 1.35  # times the usual distance of two lines
_SENTENCE_ENDS = ("。", "、", ",", ";", "．")

Bookmark = tuple[int, str, int]  # level, title, page


class Line(NamedTuple):
    """A line of a page: its text, font size and box in points; the origin is the lower left corner of the page."""

    text: str
    size: float
    left: float
    bottom: float
    right: float
    top: float
    level: int = 0  # of a heading; 0: running text


def markdown(pages: Sequence[Sequence[Line]], outline: Sequence[Bookmark] = ()) -> str:
    """Return the text of all pages, each under its number."""
    clean_pages = [[line._replace(text=_clean_text(line.text)) for line in page] for page in pages]
    body_size = _body_size(clean_pages)
    repeated = _repeated_edges(clean_pages, body_size)
    title_levels = _title_levels(outline)
    kept_pages = [
        _remove_readings(_remove_edges(page, repeated, title_levels.get(number, {})), body_size)
        for number, page in enumerate(clean_pages)
    ]
    if not _mark_outline(kept_pages, title_levels):
        _mark_large_lines(kept_pages, body_size)
    parts: list[str] = []
    section = ""  # the last heading, for pages that begin in the middle of its text
    for number, page in enumerate(kept_pages, 1):
        lines = _join_headings(page)
        if lines:
            parts.append(page_heading(number, "" if lines[0].level else section))
            parts += _page_blocks(lines)
            section = next((line.text for line in reversed(lines) if line.level), section)
    return "\n\n".join(parts)


def _clean_text(text: str) -> str:
    text = _HYPHEN.sub("", text).replace("\ufffe", "-")
    return _LEADERS.sub(" … ", " ".join(remove_hidden_chars(text).split()))


def _body_size(pages: Iterable[Iterable[Line]]) -> float:
    """Return the font size of the running text: the one of most characters."""
    sizes: Counter[float] = Counter()
    for page in pages:
        for line in page:
            sizes[round(line.size * 2) / 2] += len(line.text)
    return max(sizes, key=lambda size: (sizes[size], size), default=0.0)


def _edge_key(line: Line) -> tuple[str, int, int]:
    """Return the key of a running head, common to those of other pages: its text without numbers, and its height."""
    return re.sub(r"\d+|\b[ivxlc]+\b", "#", line.text), round(line.bottom / 3), round(line.size)


def _repeated_edges(pages: Sequence[Sequence[Line]], body_size: float) -> set[tuple[str, int, int]]:
    """Return the running heads and feet; lines larger than the text are headings, even if pages share them."""
    texts_by_key: dict[tuple[str, int, int], dict[int, str]] = {}
    for number, page in enumerate(pages):
        by_height = sorted(page, key=lambda line: line.bottom)
        for line in {*by_height[:_MAX_EDGE_LINES], *by_height[-_MAX_EDGE_LINES:]}:
            if line.size < body_size * _MIN_HEADING_RATIO:
                texts_by_key.setdefault(_edge_key(line), {})[number] = line.text
    min_pages = min(_MIN_REPEATS, max(2, len(pages)))
    return {key for key, texts in texts_by_key.items() if len(texts) >= min_pages and _numbers_follow_pages(texts)}


def _numbers_follow_pages(texts: dict[int, str]) -> bool:
    """Return whether the numbers of a line stay the same or count the pages; otherwise it is a row of a table."""
    steps = [
        (
            following_page - page,
            [after - before for before, after in zip(_numbers(text), _numbers(following), strict=False)],
        )
        for (page, text), (following_page, following) in pairwise(sorted(texts.items()))
    ]
    # Not in every step: the numbers of pages may begin again in each chapter.
    return 2 * sum(set(changes) <= {0, step} and changes.count(step) <= 1 for step, changes in steps) >= len(steps)


def _numbers(text: str) -> list[int]:
    return [int(digits) for digits in re.findall(r"\d{1,9}", text)]


def _remove_edges(
    page: Sequence[Line], repeated: set[tuple[str, int, int]], title_levels: Mapping[str, int]
) -> list[Line]:
    """Return a page without running heads, except one that is the only line to have the title of a bookmark."""
    titles = title_levels.keys() - {_title_key(line.text) for line in page if _edge_key(line) not in repeated}
    return [line for line in page if _edge_key(line) not in repeated or _title_key(line.text) in titles]


def _remove_readings(page: list[Line], body_size: float) -> list[Line]:
    """Return a page without the furigana above its lines, which would stand between the halves of a sentence."""
    return [
        line
        for line, following in pairwise([*page, None])
        if line is not None and not (following is not None and _is_reading(line, following, body_size))
    ]


def _is_reading(line: Line, following: Line, body_size: float) -> bool:
    return (
        line.size <= body_size * _MAX_READING_RATIO
        and following.size > line.size
        and _KANA.fullmatch(line.text) is not None
        and following.left - line.size <= line.left <= following.right
        and abs(line.bottom - following.top) <= body_size
    )


def _title_levels(outline: Sequence[Bookmark]) -> dict[int, dict[str, int]]:
    """Return the levels of the titles that bookmarks name, by page."""
    levels_by_page: dict[int, dict[str, int]] = {}
    for level, title, number in outline:
        if key := _title_key(title):
            levels_by_page.setdefault(number, {})[key] = level
    return levels_by_page


def _mark_outline(pages: list[list[Line]], title_levels: Mapping[int, Mapping[str, int]]) -> bool:
    """Mark the lines that bookmarks name as headings; return whether there are any."""
    marked = False
    for number, levels in title_levels.items():
        page = pages[number] if number < len(pages) else []
        for start in range(len(page)):
            # A long title takes several lines, and its number may stand on a line of its own.
            for count in range(1, min(_MAX_HEADING_LINES, len(page) - start) + 1):
                level = levels.get(_title_key("".join(line.text for line in page[start : start + count])))
                if level is not None:
                    for index in range(start, start + count):
                        page[index] = page[index]._replace(level=_FIRST_LEVEL + min(level, 6 - _FIRST_LEVEL))
                    marked = True
                    break
    return marked


def _title_key(title: str) -> str:
    """Return a title without blanks and its number, which either the bookmark or the page may lack."""
    key = "".join(unicodedata.normalize("NFKC", title[: 2 * _MAX_HEADING_CHARS]).casefold().split())
    return key[number.end() :] or key if (number := _SECTION_NUMBER.match(key)) else key


def _mark_large_lines(pages: list[list[Line]], body_size: float) -> None:
    """Mark lines in a larger font than the running text as headings; each size is a level."""
    candidates = [
        (page, index)
        for page in pages
        for index, line in enumerate(page)
        if line.size >= body_size * _MIN_HEADING_RATIO
        and len(line.text) <= _MAX_HEADING_CHARS
        and _LETTER.search(line.text)
        and not line.text.endswith(_SENTENCE_ENDS)
    ]
    sizes = sorted({round(page[index].size) for page, index in candidates}, reverse=True)
    levels = {size: _FIRST_LEVEL + min(rank, _MAX_SIZE_LEVELS - 1) for rank, size in enumerate(sizes)}
    for page, index in candidates:
        page[index] = page[index]._replace(level=levels[round(page[index].size)])


def _join_headings(page: Sequence[Line]) -> list[Line]:
    """Return a page with the lines of each heading as one."""
    joined: list[Line] = []
    heading_lines = 0
    for line in page:
        if not line.text:
            continue
        previous = joined[-1] if joined else None
        is_same = previous is not None and previous.level == line.level and abs(previous.size - line.size) < 0.5
        if line.level and previous is not None and is_same and heading_lines < _MAX_HEADING_LINES:
            blank = "" if _WIDE_LINE_START.match(line.text) else " "
            joined[-1] = previous._replace(text=f"{previous.text}{blank}{line.text}", bottom=line.bottom)
            heading_lines += 1
        else:
            joined.append(line)
            heading_lines = 1
    return joined


def _page_blocks(lines: Sequence[Line]) -> list[str]:
    """Return headings and paragraphs; wrapped Japanese lines are joined without a space."""
    # The upper quartile: a single very long line such as a footer must not make all others look short.
    lengths = sorted(_length(line) for line in lines if not line.level)
    full_length = _FULL_LINE_SHARE * lengths[len(lengths) * 3 // 4] if lengths else 0.0
    usual_distance = _usual_distance(lines)
    blocks: list[str] = []
    paragraph: list[str] = []
    previous: Line | None = None
    for line in [*lines, None]:
        is_new = line is None or line.level or previous is None or previous.level
        if paragraph and (is_new or _distance(previous, line) > usual_distance * _PARAGRAPH_GAP):
            blocks.append(escape_markdown("\n".join(paragraph)))
            paragraph = []
        if line is None:
            break
        if line.level:
            blocks.append(f"{'#' * line.level} {line.text}")
        elif (
            paragraph
            and previous is not None
            and len(previous.text) >= _MIN_FULL_LINE_CHARS
            and _length(previous) >= full_length
            and _WRAPPED_LINE_END.search(previous.text)
            and _WIDE_LINE_START.match(line.text)
            and not _BULLET.match(line.text)
            and len(_CELL_GAP.findall(previous.text)) < 2
        ):
            paragraph[-1] += line.text
        else:
            paragraph.append(_BULLET.sub("- ", line.text, count=1) if _BULLET.match(line.text) else line.text)
        previous = line
    return blocks


def _usual_distance(lines: Sequence[Line]) -> float:
    distances = [_distance(line, following) for line, following in pairwise(lines)]
    return median(distance for distance in distances if distance > 0) if any(distances) else 0.0


def _length(line: Line) -> float:
    return max(line.right - line.left, line.top - line.bottom)


def _distance(line: Line | None, following: Line | None) -> float:
    """Return how far a line is below the one before it, or to its left in vertical text; 0 if it is elsewhere."""
    if line is None or following is None:
        return 0.0
    is_vertical = line.top - line.bottom > 2 * (line.right - line.left)
    gap = line.left - following.right if is_vertical else line.bottom - following.top
    return max(0.0, gap + following.size)
