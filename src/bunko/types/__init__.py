"""Define the types that all parts share: documents, chunks, tools, hits and reports."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, NamedTuple

from bunko.types.build_info import NOT_BUILT, BuildInfo
from bunko.types.pickling import reduce_to_fields
from bunko.types.tool_options import NO_OPTIONS, ToolOptions

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from bunko.types.records import StoredDocument

    Vectors = npt.NDArray[np.float32]
    SentenceSubwords = npt.NDArray[np.uint16]  # those of each sentence of a text, see `text.sentence_codec`

Mode = Literal["bm25", "semantic", "hybrid"]
Fusion = Literal["cc", "rrf"]
MODES: tuple[Mode, ...] = ("bm25", "semantic", "hybrid")
FUSIONS: tuple[Fusion, ...] = ("cc", "rrf")

# FAT stores times in steps of two seconds, the coarsest of the file systems in use: a second change within that span
# may leave time and size unchanged.
RACY_NS = 2_000_000_000

# A longer title, more tags or a longer tag are data that happens to stand where a title or tags are expected.
MAX_TITLE_CHARS = 300
_MAX_REPR_CHARS = 60  # of the text of a hit: one fits on a line
MAX_TAGS, MAX_TAG_CHARS = 1000, 200


@dataclass(frozen=True, slots=True)
class Text:
    """The decoded text of a document and its metadata, as returned by a reader."""

    __reduce__ = reduce_to_fields

    text: str
    media_type: str
    encoding: str
    title: str = ""
    date: str = ""  # ISO 8601, as precise as in the source: 2024, 2024-01-15, 2024-01-15T09:30:00
    tags: tuple[str, ...] = ()
    body_start: int = 0  # offset of the body, after the front matter
    context: str = ""  # what stands above an entry in its file: the authors of its day, or headings
    aliases: tuple[str, ...] = ()  # other names of the document; they are searched, but not stored
    missing: str = ""  # which parts of the file have no text, and what to do; the report of an import says it

    def __post_init__(self) -> None:
        # Every chunk is indexed with the title and every hit carries the tags: without limits, a file could make them
        # take far more memory than its own text.
        if len(self.title) > MAX_TITLE_CHARS:
            object.__setattr__(self, "title", self.title[:MAX_TITLE_CHARS].rstrip())
        if len(self.tags) > MAX_TAGS or any(len(tag) > MAX_TAG_CHARS for tag in self.tags):
            tags = tuple(tag for tag in self.tags if len(tag) <= MAX_TAG_CHARS)
            object.__setattr__(self, "tags", tags[:MAX_TAGS])


@dataclass(frozen=True, slots=True)
class Chunk:
    """A part of a document that is indexed, with its position and its headings."""

    __reduce__ = reduce_to_fields

    index: int
    start: int  # characters into the document's text
    end: int
    first_line: int  # counted from 1, both inclusive
    last_line: int
    text: str  # indexed and shown; a table row includes its header, so it may differ from the range
    heading: str = ""  # as in the source: ## インストール手順
    heading_path: tuple[str, ...] = ()  # from the outermost heading to this one, without markup

    def text_in_context(self, title: str) -> str:
        """Return the text to embed, with the document title and the parent headings."""
        return text_in_context(title, self.heading_path, self.text)

    def headings(self, title: str) -> list[str]:
        """Return the document title and the headings of the chunk, each once."""
        return list(dict.fromkeys(part for part in (title, *self.heading_path) if part))

    def text_to_index(self, title: str) -> str:
        """Return the text to split into words and n-grams, with the document title and the parent headings."""
        return text_to_index(title, self.heading_path, self.text)


def text_to_index(title: str, heading_path: Sequence[str], text: str) -> str:
    """Return a text preceded by its document title and parent headings.

    They are paragraphs of their own: no word continues from one to the next.
    """
    return "\n\n".join((*_context(title, heading_path), text))


def text_in_context(title: str, heading_path: Sequence[str], text: str) -> str:
    """Return a text to embed, with its document title and parent headings above it."""
    return "\n".join((*_context(title, heading_path), text))


def _context(title: str, heading_path: Sequence[str]) -> list[str]:
    # The last heading is part of the text itself.
    return list(dict.fromkeys(part for part in (title, *heading_path[:-1]) if part))


def format_citation(uri: str, first_line: int, last_line: int) -> str:
    """Return the location of a passage, in the form path:L12-L30."""
    return f"{uri}:L{first_line}" if first_line == last_line else f"{uri}:L{first_line}-L{last_line}"


@dataclass(frozen=True, slots=True)
class LineSpan:
    """The lines of a file that a document occupies; on a single line, the line breaks of its text are escaped."""

    __reduce__ = reduce_to_fields

    first: int = 1  # counted from 1, both inclusive
    last: int = 0  # 0: the whole file

    @property
    def is_single_line(self) -> bool:
        """Return whether the document is one line of its file."""
        return self.first == self.last

    def file_line(self, line: int) -> int:
        """Return the line of the file that holds a line of the text."""
        return self.first if self.is_single_line else self.first + line - 1


WHOLE_FILE = LineSpan()


@dataclass(frozen=True, slots=True)
class SourceEntry:
    """An item of a source, known without reading it."""

    __reduce__ = reduce_to_fields

    uri: str  # relative to the source's root, with forward slashes
    size: int  # of its file, in bytes
    modified_ns: int
    seen_ns: int = 0  # when it was scanned
    lines: LineSpan = field(default=WHOLE_FILE, kw_only=True)

    @property
    def work_size(self) -> int:
        """Return the approximate amount of work, in bytes or characters."""
        return self.size

    def trusted_modified_ns(self) -> int:
        """Return the timestamp to store, or 0 if it is so recent that the entry could change again unnoticed."""
        return self.modified_ns if self.seen_ns - self.modified_ns > RACY_NS else 0


@dataclass(frozen=True, slots=True)
class ExcerptEntry(SourceEntry):
    """One of many entries in a file; scanning has already read it, or found a problem with it.

    In large files the text is omitted to save memory, and `Scan.load_texts` reads it again.
    The time of its file cannot be trusted until all entries are stored: `seen_ns` of one of them stays 0 until then.
    """

    content_hash: str = ""
    text: Text | None = None
    problem: str = ""
    length: int = 0  # of its text, in characters

    @property
    def work_size(self) -> int:
        """Return the approximate amount of work, in bytes or characters."""
        return self.length

    @property
    def needs_text(self) -> bool:
        """Return whether the text was omitted and has to be read again."""
        return self.text is None and not self.problem

    def without_text(self) -> SourceEntry:
        """Return the entry without its text."""
        return SourceEntry(self.uri, self.size, self.modified_ns, self.seen_ns, lines=self.lines)


NO_TEXT = "contains no text"


@dataclass(frozen=True, slots=True)
class Problem:
    """A document that could not be imported, and why; never fatal."""

    uri: str
    reason: str
    tool: str = ""  # set when several tools were imported at once
    package: str = ""  # that is missing; all files of its format are one problem
    files: int = 1  # that it is about

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to import in it: it is blank, or only has front matter."""
        return self.reason == NO_TEXT


@dataclass(frozen=True, slots=True)
class ToolFailure:
    """A tool that could not be imported, with its error."""

    tool: str
    code: str
    message: str
    hint: str = ""


class Fingerprint(NamedTuple):
    """Stored facts about an entry, to detect whether it changed."""

    content_hash: str
    size: int
    modified_ns: int  # 0: too recent to be trusted, compare the content
    first_line: int = 1  # of the entry in its file


@dataclass(frozen=True, slots=True)
class Document:
    """A document read from a source."""

    __reduce__ = reduce_to_fields

    entry: SourceEntry
    text: Text
    content_hash: str  # SHA-256 of the bytes, or of the text of an entry in a larger file

    @property
    def uri(self) -> str:
        """The URI of the document in its source."""
        return self.entry.uri


@dataclass(frozen=True, slots=True)
class Tool:
    """A named, described collection of documents from one source."""

    name: str
    kind: str = "folder"  # kind of source: folder, memos, jsonl, web
    description: str = ""
    source: str = ""  # absolute path of the folder or file
    active: bool = True
    id: int = 0  # assigned by the store
    created_at: str = ""
    imported_at: str = ""  # when the last import finished
    checked_at: str = ""  # when its source was last scanned
    built: BuildInfo = NOT_BUILT
    options: ToolOptions = NO_OPTIONS

    @property
    def is_built(self) -> bool:
        """Return whether an import has recorded what the index is built with."""
        return self.built != NOT_BUILT


@dataclass(frozen=True, slots=True)
class ArmScore:
    """Score and rank of a hit in one of the rankings."""

    score: float
    rank: int


@dataclass(frozen=True, slots=True)
class TermScore:
    """What a term of the query adds to the score by words."""

    term: str  # as it is indexed
    # "" is a word of the query, light one that says little; part, loanword, bridge, synonym and gram are expansions.
    role: str
    score: float  # 0 if another term of the same meaning counts instead
    fields: tuple[str, ...] = ()  # where it is: title, author, heading, text


@dataclass(frozen=True, slots=True)
class ScorePart:
    """What one arm adds to the score of a hit: its value times its weight."""

    arm: str  # bm25, vector, or near_words: what is taken away for words of the query that have no near one
    score: float  # in the arm: BM25, cosine, or a mean of cosines
    rank: int | None  # None: the arm did not return the hit among its best
    value: float  # the score as it is weighted: relative to the other hits, or by its rank
    weight: float
    points: float


@dataclass(frozen=True, slots=True)
class WordingScore:
    """What the query, or another wording of it, adds to the score of a hit."""

    kind: str  # query, also or passage
    text: str
    score: float | None  # by itself; None: it does not find the hit
    rank: int | None
    weight: float  # all weights add up to 1; that of a wording that agrees little with the query is low
    added: float  # a hit that the query does not find begins with what the query gives its fiftieth


@dataclass(frozen=True, slots=True)
class NearWord:
    """A word of the query, or a part of one, and the nearest one of a hit."""

    word: str
    near: str
    cosine: float


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a hit was found; its parts add up to the score, and its terms to the score by words.

    With other wordings, that is the score by the query alone, or by the wording that found what the query did not find;
    what each adds makes the score of the hit.
    """

    lane: str  # word, gram, or vector if no word matched
    terms: tuple[str, ...]  # query terms that the chunk contains, as they are indexed
    expansions: tuple[tuple[str, str], ...] = ()  # (loanword or gram, the term that matched)
    bm25: ArmScore | None = None
    vector: ArmScore | None = None
    fusion: str = ""  # how the arms were combined: adaptive, cc, rrf, or the mode if there was only one
    parts: tuple[ScorePart, ...] = ()
    term_scores: tuple[TermScore, ...] = ()
    best_sentence: str = ""
    nearest_sentence: str = ""  # by vectors: the similarity lies between its cosine and that of the whole text
    sentence_score: float | None = None  # that cosine; None: its sentences were not compared
    near_words: tuple[NearWord, ...] = ()  # those that are not the same word
    reranker: ArmScore | None = None  # None: it was not reranked
    wordings: tuple[WordingScore, ...] = ()  # the query first; empty if it has no other wordings

    def explained_score(self, score: float) -> float:
        """Return the score that the parts add up to, for a hit with this score: without what other wordings add."""
        return sum(part.points for part in self.parts) if self.wordings else score


@dataclass(frozen=True, slots=True)
class Hit:
    """A chunk found by a search."""

    tool: str
    uri: str
    title: str
    date: str
    tags: tuple[str, ...]
    content_hash: str
    chunk: Chunk
    score: float
    vector_distance: float | None = None
    bm25_score: float | None = None
    combined_score: float | None = None
    explanation: Explanation | None = None
    reranker_score: float | None = None  # None: it was not reranked
    trust: str = ""  # web: written by strangers; empty if the user chose the documents
    fetched_at: str = ""  # when it was fetched from the web
    sentence: int | None = None  # which of its sentences is nearest to the query by vectors, counted from 0
    more_in_document: int = 0  # hits of the same document that were left out in favour of others
    # As the search read it, for passages; None: it was not asked for, or a chunk does not need it.
    document: StoredDocument | None = field(default=None, compare=False, repr=False)

    @property
    def text(self) -> str:
        """The text of the chunk."""
        return self.chunk.text

    @property
    def path(self) -> str:
        """The path of the document in its folder, the URL of a web page, or the id of a memo."""
        return self.uri

    @property
    def lines(self) -> tuple[int, int]:
        """The first and last line of the chunk, counted from 1."""
        return self.chunk.first_line, self.chunk.last_line

    @property
    def citation(self) -> str:
        """Where the chunk is, as editors and people write it: path:L12-L30."""
        return format_citation(self.uri, *self.lines)

    def __repr__(self) -> str:
        text = " ".join(self.text.split())
        beginning = text if len(text) <= _MAX_REPR_CHARS else f"{text[:_MAX_REPR_CHARS]}…"
        return f"<Hit {self.citation} score={self.score:.4f} {beginning!r}>"


@dataclass(slots=True)
class Freshness:
    """Which state of the source an answer reflects."""

    generation: int
    checked_at: str = ""  # when the source was last scanned
    pending_changes: int = 0  # entries known to have changed but not imported yet


@dataclass(slots=True)
class Answer:
    """The result of a search."""

    query: str
    mode: Mode
    hits: list[Hit]
    total_chunks: int
    freshness: Freshness = field(default_factory=lambda: Freshness(generation=0))
    notices: list[str] = field(default_factory=list)
    rewritten_query: str = ""  # the query as rewritten by a model; empty if it was not rewritten
    words: str = ""  # of the query, without what it excludes
    reranker: str = ""  # the model that reranked the hits; empty if they were not reranked
    wordings: tuple[str, ...] = ()  # other words for the query that were searched, too

    @property
    def searched_query(self) -> str:
        """Return the query that was actually searched, with its other wordings."""
        return " ".join((self.rewritten_query or self.words or self.query, *self.wordings))

    def __len__(self) -> int:
        return len(self.hits)

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    def __repr__(self) -> str:
        hits = "1 hit" if len(self.hits) == 1 else f"{len(self.hits)} hits"
        best = f", best {self.hits[0].citation}" if self.hits else ""
        return f"<Answer to {self.query!r}: {hits} of {self.total_chunks} chunks, {self.mode}{best}>"

    def _repr_html_(self) -> str:
        """Return a table of the hits, which Jupyter shows."""
        from bunko.types.answers import html_table

        return html_table(self)


@dataclass(slots=True)
class Report:
    """The result of an import."""

    added: int = 0
    updated: int = 0
    deleted: int = 0
    moved: int = 0
    unchanged: int = 0
    total_chunks: int = 0
    embedded: int = 0  # texts that had to be embedded; the other vectors were already stored
    problems: list[Problem] = field(default_factory=list)
    skipped_folders: list[str] = field(default_factory=list)  # absolute paths of folders excluded by their names
    notices: list[str] = field(default_factory=list)
    interrupted: bool = False
    failures: list[ToolFailure] = field(default_factory=list)  # tools that failed; the others were imported
    changed_tools: list[str] = field(default_factory=list)  # those of which a notable part is new

    def include(self, report: Report, *, tool: str = "") -> None:
        """Add the report of another import; its problems are those of `tool`, if given."""
        for name in ("added", "updated", "deleted", "moved", "unchanged", "total_chunks", "embedded"):
            setattr(self, name, getattr(self, name) + getattr(report, name))
        self.problems += [replace(problem, tool=tool) if tool else problem for problem in report.problems]
        self.skipped_folders += report.skipped_folders
        self.notices += report.notices
        self.interrupted = self.interrupted or report.interrupted
