"""Extract passages from the documents of hits: a snippet, a chunk, its section or the whole text."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import NamedTuple

from bunko.readers.outline import Heading, unify_line_ends
from bunko.readers.outlines import scan_outline
from bunko.readers.places import place_of
from bunko.search.nearest_sentence import nearest_sentence
from bunko.text import analyzer
from bunko.text.labels import is_author, remove_hidden_chars
from bunko.text.snippets import SNIPPET_CHARS, SnippetTerms, add_highlights, cut_offset, highlight_ranges, snippet_range
from bunko.types import Hit, format_citation
from bunko.types.records import StoredDocument
from bunko.types.tool_options import Extract as Extract

EXTRACTS: tuple[Extract, ...] = ("chunk", "section", "full")
# Of a memo: the text around the match, the whole entry, or the entry without its heading and tags.
MEMO_EXTRACTS: tuple[Extract, ...] = ("snippet", "entry", "full")
# Texts of these extents are displayed with a mark where text of the document is omitted.
PARTIAL_EXTRACTS: tuple[Extract, ...] = ("snippet", "entry", "full")
# Letters, because a model needs a token for almost every digit; consonants, because they spell no word.
_HEX, _LETTERS = "0123456789abcdef", "bcdfghjklmnpqrst"
_HEX_TO_LETTERS, _LETTERS_TO_HEX = str.maketrans(_HEX, _LETTERS), str.maketrans(_LETTERS, _HEX)
_PASSAGE_HASH = re.compile(f"[{_LETTERS}]{{10}}")
_LONG_PASSAGE_HASH = re.compile(r"([0-9a-f]{12})\.([0-9a-f]{12})")  # as it was before it became short
# A longer line is text that happens to look like a heading.
_MAX_HEADING_CHARS = 100
_BLANKS = re.compile(r"\s*")
_LONG_TEXT = re.compile(r"(?:\s*+\S){50}")  # at least as long as a section that is a chunk of its own


class PassageLabel(NamedTuple):
    """What a passage is a part of: of joined neighbours, what all of them have in common."""

    chunk_index: int  # of the first chunk in it
    heading: str  # as in the source; empty if there is none
    heading_path: tuple[str, ...]
    author: str = ""  # of a memo, as the day above it names them


class Passage(NamedTuple):
    """A range of a document that answers a query, and the best hit it was extracted for."""

    hit: Hit
    start: int
    end: int
    first_line: int  # counted from 1, both included
    last_line: int
    text: str
    hash: str  # of the document and of these lines, to verify a citation later
    label: PassageLabel
    chars_before: int = 0  # characters of the document before and after the passage
    chars_after: int = 0
    place: str = ""  # its pages, slides or cells: p12, slide3-slide4, Sheet1!A5; "" in files without them

    @property
    def citation(self) -> str:
        """The passage's location in the form path:L12-L30."""
        return format_citation(self.hit.uri, self.first_line, self.last_line)

    @property
    def headings(self) -> list[str]:
        """The headings above the passage, shortened for display."""
        return [display_label(heading) for heading in self.label.heading_path]


def display_label(label: str) -> str:
    """Return a label without hidden characters, at most 100 characters long."""
    visible = remove_hidden_chars(label)
    return visible if len(visible) <= _MAX_HEADING_CHARS else f"{visible[:_MAX_HEADING_CHARS]}…"


# Of hits, by what tells them apart and, for a snippet, the query.
PassageOffsets = dict[tuple[object, ...], tuple[int, int]]


class PassageRanges:
    """The ranges of documents that hits stand for, best first; overlapping and adjacent ones of a document are joined.

    The first `already_returned` hits were on earlier pages: ranges inside theirs are left out. A snippet is the text
    around the words of `query`, `max_chars` or about 150 characters long; other passages longer than `max_chars` are
    cut after a sentence. `offsets` has the ranges of hits that were computed before, for the same extents and
    `max_chars`.
    """

    def __init__(
        self,
        find_document: Callable[[Hit], StoredDocument | None],
        extract: Extract | Mapping[str, Extract],
        *,
        already_returned: int = 0,
        query: str = "",
        max_chars: int | None = None,
        offsets: PassageOffsets | None = None,
    ) -> None:
        self._find_document, self._extract, self._max_chars = find_document, extract, max_chars
        self._already_returned, self._query = already_returned, query
        self._offsets = {} if offsets is None else offsets
        self._query_terms: SnippetTerms | None = None
        self._documents: dict[tuple[str, str], StoredDocument | None] = {}
        self._earlier: list[_TextRange] = []
        self._ranges: list[_TextRange] = []
        self._hit_count = 0

    def __len__(self) -> int:
        """Return how many passages the hits make."""
        return len(self._ranges)

    def add(self, hit: Hit) -> None:
        """Add the next hit of a ranking."""
        self._hit_count += 1
        document = self._document_of(hit)
        if document is None or document.content_hash != hit.content_hash:
            return  # the document changed since the search, so the offsets of its chunks are no longer valid
        text_range = self._range_of(hit, document)
        if self._hit_count <= self._already_returned:
            self._earlier.append(text_range)
        elif not any(text_range.is_inside(other) for other in self._earlier):
            self._ranges = _add_range(self._ranges, text_range)

    def passages(self) -> list[Passage]:
        """Return the text of each range."""
        return [
            _build_passage(
                text_range.hits, text_range.document, text_range.start, text_range.truncated_end(self._max_chars)
            )
            for text_range in self._ranges
        ]

    def _document_of(self, hit: Hit) -> StoredDocument | None:
        key = (hit.tool, hit.uri)
        if key not in self._documents:
            self._documents[key] = self._find_document(hit)
        return self._documents[key]

    def _range_of(self, hit: Hit, document: StoredDocument) -> _TextRange:
        size = self._extract if isinstance(self._extract, str) else self._extract[hit.tool]
        query = self._query if size == "snippet" else ""
        key = (hit.tool, hit.uri, hit.content_hash, hit.chunk.start, hit.chunk.end, hit.sentence, query)
        if key not in self._offsets:
            self._offsets[key] = (
                self._snippet_range(hit, document) if size == "snippet" else _extract_range(hit, document, size)
            )
        return _TextRange([hit], document, *self._offsets[key])

    def _snippet_range(self, hit: Hit, document: StoredDocument) -> tuple[int, int]:
        self._query_terms = self._query_terms or snippet_terms(self._query)
        chunk_text = document.text[hit.chunk.start : hit.chunk.end]
        size_in_chars, sentence = self._max_chars or SNIPPET_CHARS, nearest_sentence(hit)
        start, end = snippet_range(chunk_text, self._query_terms, size_in_chars, sentence=sentence)
        return hit.chunk.start + start, hit.chunk.start + end


def extract_passages(
    hits: Sequence[Hit],
    find_document: Callable[[Hit], StoredDocument | None],
    extract: Extract | Mapping[str, Extract],
    *,
    already_returned: int = 0,
    query: str = "",
    max_chars: int | None = None,
    offsets: PassageOffsets | None = None,
) -> list[Passage]:
    """Return the passages of hits, as `PassageRanges` describes them."""
    ranges = PassageRanges(
        find_document, extract, already_returned=already_returned, query=query, max_chars=max_chars, offsets=offsets
    )
    for hit in hits:
        ranges.add(hit)
    return ranges.passages()


def chunk_passages(hits: Sequence[Hit], find_document: Callable[[Hit], StoredDocument | None]) -> list[Passage]:
    """Return the chunk of each hit as a passage; those of a document that changed since the search have no hash."""
    documents: dict[tuple[str, str], StoredDocument | None] = {}
    passages = []
    for hit in hits:
        key, chunk = (hit.tool, hit.uri), hit.chunk
        document = documents[key] if key in documents else documents.setdefault(key, find_document(hit))
        if document is not None and document.content_hash == hit.content_hash:
            passages.append(_build_passage([hit], document, chunk.start, chunk.end))
        else:
            lines, label = (chunk.first_line, chunk.last_line), _label_of([hit], document=None, start=chunk.start)
            passages.append(Passage(hit, chunk.start, chunk.end, *lines, chunk.text, "", label))
    return passages


def snippet_terms(query: str) -> SnippetTerms:
    """Return the terms a snippet is chosen by: those of the query, their expansions and the query's own spelling."""
    from bunko.search.query_analysis import analyse_query  # loads numpy, which help does not need

    analysis = analyse_query(query)
    weights = {
        spelling: term.weight
        for spelling, term, role in zip(analysis.spellings, analysis.terms, analysis.roles, strict=True)
        if role != "gram"
    }
    return SnippetTerms(weights, tuple(run for run in analyzer.runs(query) if len(run) > 1))


def render_extract(text: str, extract: Extract, terms: SnippetTerms, *, chars_before: int, chars_after: int) -> str:
    """Return a passage's text for display: matches in a snippet are highlighted, omitted text is marked."""
    if extract == "snippet":
        head, tail = "…" if chars_before else "", "…" if chars_after else ""
        return f"{head}{add_highlights(text, highlight_ranges(text, terms))}{tail}"
    if extract in ("entry", "full") and chars_after:
        return f"{text}… [{chars_after:,} more characters]"
    return text


@dataclass(slots=True, eq=False)
class _TextRange:
    hits: list[Hit]  # the best first
    document: StoredDocument
    start: int
    end: int

    def is_inside(self, other: _TextRange) -> bool:
        return other.document is self.document and other.start <= self.start and self.end <= other.end

    def touches(self, other: _TextRange) -> bool:
        low, high = (self.end, other.start) if self.end <= other.start else (other.end, self.start)
        return low >= high or not self.document.text[low:high].strip()

    def truncated_end(self, max_chars: int | None) -> int:
        text = self.document.text[self.start : self.end]
        return self.end if max_chars is None else self.start + len(text[: cut_offset(text, max_chars)].rstrip())


def _add_range(ranges: list[_TextRange], text_range: _TextRange) -> list[_TextRange]:
    """Return the ranges with one more, joined to those it touches."""
    touching = [other for other in ranges if other.document is text_range.document and text_range.touches(other)]
    if not touching:
        return [*ranges, text_range]
    # The new range may close the gap between others: then all of them become one.
    touching[0].start = min(text_range.start, *(other.start for other in touching))
    touching[0].end = max(text_range.end, *(other.end for other in touching))
    touching[0].hits += [*text_range.hits, *(hit for other in touching[1:] for hit in other.hits)]
    return [other for other in ranges if other not in touching[1:]]


def section_range(
    text: str, body_start: int, start: int, end: int, media_type: str = "text/markdown"
) -> tuple[int, int]:
    """Return the section around a range: from the heading above its text to the next of the same or a higher level.

    Headings at the beginning of the range that have no text of their own are left out: a chapter's first section is
    not the chapter. If it has a short text, the chapter's beginning and that section are returned.
    """
    lines = unify_line_ends(text)
    section: Heading | None = None
    last: Heading | None = None  # the first subsection in the range if the section has little text before it
    text_start = start  # of the range, after the headings at its beginning
    for block in scan_outline(lines, body_start, media_type=media_type):
        if not isinstance(block, Heading):
            continue
        if block.start <= text_start and block.start < end:
            section = last = block
            text_start = _skip_blanks(lines, block.end) if block.end > start else start
        elif block.start >= end and (last is None or block.level <= last.level):
            return (section.start if section else start), max(end, len(text[: block.start].rstrip()))
        elif last and last.level < block.level and not _LONG_TEXT.match(lines, max(start, last.end), block.start):
            last = block
    return (section.start if section else start), max(end, len(text.rstrip()))


def _skip_blanks(lines: str, position: int) -> int:
    match = _BLANKS.match(lines, position)
    return match.end() if match else position


def lines_hash(lines: Sequence[str]) -> str:
    """Return a hash of whole lines that ignores line endings and trailing whitespace."""
    return hashlib.sha256("\n".join(map(str.rstrip, lines)).encode("utf-8", "surrogatepass")).hexdigest()[:12]


def passage_hash(content_hash: str, lines: Sequence[str]) -> str:
    """Return the hash to verify cited lines by: three letters for the document, seven for the lines.

    It is short because a model reads it with every result. The lines decide; the document's part only narrows down
    where to look after a document was renamed.
    """
    return (content_hash[:3] + lines_hash(lines)[:7]).translate(_HEX_TO_LETTERS)


def parse_passage_hash(text: str) -> tuple[str, str] | None:
    """Return the hexadecimal hashes of the document and of the lines that a passage's hash begins with."""
    text = text.strip().lower()
    if _PASSAGE_HASH.fullmatch(text):
        text = text.translate(_LETTERS_TO_HEX)
        return text[:3], text[3:]
    match = _LONG_PASSAGE_HASH.fullmatch(text)
    return (match[1], match[2]) if match else None


def _extract_range(hit: Hit, document: StoredDocument, extract: Extract) -> tuple[int, int]:
    if extract == "entry":
        return 0, len(document.text.rstrip())
    if extract == "full":
        text = document.text
        begin = len(text) - len(text[document.body_start :].lstrip("\r\n"))
        return begin, max(begin, len(text.rstrip()))
    if extract == "section":
        return section_range(document.text, document.body_start, hit.chunk.start, hit.chunk.end, document.media_type)
    return hit.chunk.start, hit.chunk.end


def _label_of(hits: Sequence[Hit], document: StoredDocument | None, start: int) -> PassageLabel:
    """Return the label of a passage that begins at `start` and has the chunks of these hits."""
    chunks = [hit.chunk for hit in hits]
    authors, paths = zip(*(split_author(hit, document) for hit in hits), strict=True)
    path = paths[0][: sum(1 for _ in takewhile(lambda level: len(set(level)) == 1, zip(*paths, strict=False)))]
    heading = next((chunk.heading for chunk, own in zip(chunks, paths, strict=True) if own == path), None)
    if heading is None:  # the parts have only a heading above their own in common
        heading = _heading_line(document, path[-1], start) if document and path else ""
    return PassageLabel(min(chunk.index for chunk in chunks), heading, path, authors[0])


def split_author(hit: Hit, document: StoredDocument | None = None) -> tuple[str, tuple[str, ...]]:
    """Return the author above a memo in its file, and the headings above a hit, among which authors are indexed."""
    chunk, document = hit.chunk, document or hit.document
    if not chunk.heading_path or chunk.heading:
        return "", chunk.heading_path
    above, *headings = chunk.heading_path
    # A plain text has no headings of its own, and one that names no address may still be an author.
    has_author = is_author(above) or (document is not None and document.media_type == "text/plain")
    return (above, tuple(headings)) if has_author else ("", chunk.heading_path)


def _heading_line(document: StoredDocument, title: str, before: int) -> str:
    """Return the last heading with a title that begins before a position or there, as it is written."""
    lines, line = unify_line_ends(document.text), ""
    for block in scan_outline(lines, document.body_start, media_type=document.media_type):
        if block.start > before:
            break
        if isinstance(block, Heading) and block.title == title:
            line = block.source
    return line or title


def _build_passage(hits: Sequence[Hit], document: StoredDocument, start: int, end: int) -> Passage:
    hit = hits[0]
    full_text = unify_line_ends(document.text)
    first = full_text.count("\n", 0, start) + 1
    last_char = max(start, end - 1)
    last = first + full_text.count("\n", start, last_char)
    file_lines = document.lines
    # A citation names lines: if the whole document is on one line of its file, hash all of it.
    line_end = full_text.find("\n", last_char)
    line_range = slice(full_text.rfind("\n", 0, start) + 1, len(full_text) if line_end < 0 else line_end)
    whole_lines = full_text if file_lines.is_single_line else full_text[line_range]
    text = document.text[start:end]
    if (start, end) == (hit.chunk.start, hit.chunk.end):
        text = hit.chunk.text  # a table row includes the table's header
    digest = passage_hash(document.content_hash, whole_lines.split("\n"))
    chars_before, chars_after = (
        len(document.text[document.body_start : start].strip()),
        len(document.text[end:].strip()),
    )
    return Passage(
        hit,
        start,
        end,
        file_lines.file_line(first),
        file_lines.file_line(last),
        text,
        digest,
        _label_of(hits, document, start),
        chars_before,
        chars_after,
        place_of(full_text, document.media_type, first, last),
    )
