"""The words everyone uses: a document is read, its chunks are indexed, a hit is a chunk that answered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Vectors = npt.NDArray[np.float32]

Mode = Literal["bm25", "semantic", "hybrid"]
Fusion = Literal["cc", "rrf"]
MODES: tuple[Mode, ...] = ("bm25", "semantic", "hybrid")
FUSIONS: tuple[Fusion, ...] = ("cc", "rrf")

# FAT keeps times in steps of two seconds, the coarsest of the file systems in use: a second change within that span
# may leave time and size as they were.
RACY_NS = 2_000_000_000


@dataclass(frozen=True, slots=True)
class Text:
    """What a reader made of some bytes: the decoded text and what it says about itself."""

    text: str
    media_type: str
    encoding: str
    title: str = ""
    date: str = ""  # ISO 8601 as far as it was given: 2024, 2024-01-15, 2024-01-15T09:30:00
    tags: tuple[str, ...] = ()
    body_start: int = 0  # where the body begins: after the front matter


@dataclass(frozen=True, slots=True)
class Chunk:
    """The piece that is indexed: where it stands in its document, and under which headings."""

    index: int
    start: int  # characters into the document's text
    end: int
    first_line: int  # counted from 1, both included
    last_line: int
    text: str  # what is indexed and shown; a table row carries its header, so it may differ from the range
    heading: str = ""  # as it is written in the source: ## インストール手順
    heading_path: tuple[str, ...] = ()  # from the outermost heading to this one, without the marks

    def text_in_context(self, title: str) -> str:
        """Return what is indexed: the title and the headings above say what the text itself may not repeat."""
        return text_in_context(title, self.heading_path, self.text)


def text_in_context(title: str, heading_path: Sequence[str], text: str) -> str:
    """Return a text under its document's title and its headings; its own heading it already begins with."""
    return "\n".join((*dict.fromkeys(part for part in (title, *heading_path[:-1]) if part), text))


def format_citation(uri: str, first_line: int, last_line: int) -> str:
    """Return where a passage stands, as editors and people read it: path:L12-L30."""
    return f"{uri}:L{first_line}" if first_line == last_line else f"{uri}:L{first_line}-L{last_line}"


@dataclass(frozen=True, slots=True)
class LineSpan:
    """Which lines of its file a document takes; if it is one, all of a text stands on it with its line ends escaped."""

    first: int = 1  # counted from 1, both included
    last: int = 0  # 0: it is the whole file

    @property
    def is_single_line(self) -> bool:
        """Say whether the file has it all on one line."""
        return self.first == self.last

    def file_line(self, line: int) -> int:
        """Return the line of the file that one of the text is."""
        return self.first if self.is_single_line else self.first + line - 1


WHOLE_FILE = LineSpan()


@dataclass(frozen=True, slots=True)
class SourceEntry:
    """One thing a source holds, known without reading it."""

    uri: str  # relative to the source's root, with forward slashes
    size: int  # of its file
    modified_ns: int
    seen_ns: int = 0  # when it was looked at
    lines: LineSpan = field(default=WHOLE_FILE, kw_only=True)

    @property
    def work_size(self) -> int:
        """Return how much there is to do, in bytes or nearly so."""
        return self.size

    def trusted_modified_ns(self) -> int:
        """Return the time to remember: 0 if the entry was so fresh when seen that it could change again unnoticed."""
        return self.modified_ns if self.seen_ns - self.modified_ns > RACY_NS else 0


@dataclass(frozen=True, slots=True)
class ExcerptEntry(SourceEntry):
    """An entry that is one of many in a file: looking for it has read it already, or found that it cannot be used.

    Where there is much to read, its text is left out until it is needed: `Scan.texts` brings it back.
    Not to be trusted by its time until all entries of its file are stored: `seen_ns` stays 0 until then.
    """

    content_hash: str = ""
    text: Text | None = None
    problem: str = ""
    length: int = 0  # of its text, in characters

    @property
    def work_size(self) -> int:
        """Return how much there is to do, in bytes or nearly so."""
        return self.length

    @property
    def needs_text(self) -> bool:
        """Say whether there is a text that has to be read again."""
        return self.text is None and not self.problem

    def without_text(self) -> SourceEntry:
        """Return the entry alone."""
        return SourceEntry(self.uri, self.size, self.modified_ns, self.seen_ns, lines=self.lines)


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that could not be imported, and why; never fatal."""

    uri: str
    reason: str
    tool: str = ""  # said where several were imported at once


@dataclass(frozen=True, slots=True)
class ToolFailure:
    """A tool that could not be imported, as its error says."""

    tool: str
    code: str
    message: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What the library remembers of an entry, to tell whether it changed."""

    content_hash: str
    size: int
    modified_ns: int  # 0: too fresh when it was read to be trusted, compare the content
    first_line: int = 1  # where it begins in its file


@dataclass(frozen=True, slots=True)
class Document:
    """What was read from a source."""

    entry: SourceEntry
    text: Text
    content_hash: str  # SHA-256 of the bytes, or of what an entry among many says

    @property
    def uri(self) -> str:
        """Where it stands in its source."""
        return self.entry.uri


@dataclass(frozen=True, slots=True)
class Tool:
    """A named, described body of documents with one source."""

    name: str
    kind: str = "folder"  # which source: folder, memos, jsonl
    description: str = ""
    source: str = ""  # the folder or file, absolute
    active: bool = True
    id: int = 0  # given by the store
    created_at: str = ""
    imported_at: str = ""  # when an import last ended
    checked_at: str = ""  # when its source was last looked at
    built: dict[str, Any] = field(default_factory=dict)  # what its index was made with
    options: dict[str, Any] = field(default_factory=dict)  # include, exclude: which files of the folder


@dataclass(frozen=True, slots=True)
class ArmScore:
    """How one way of searching saw a hit."""

    score: float
    rank: int


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a hit answered."""

    lane: str  # word, gram, or vector where no word matched
    terms: tuple[str, ...]  # the query's terms that this chunk contains, as they are indexed
    expansions: tuple[tuple[str, str], ...] = ()  # (loanword or gram, what matched beside the words)
    bm25: ArmScore | None = None
    vector: ArmScore | None = None


@dataclass(frozen=True, slots=True)
class Hit:
    """The piece that answered."""

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
    trust: str = ""  # web: somebody else wrote it; empty where the user chose the documents
    fetched_at: str = ""  # when it came from the web


@dataclass(slots=True)
class Freshness:
    """Which state of the world an answer reflects."""

    generation: int
    checked_at: str = ""  # when the source was last looked at
    pending_changes: int = 0  # entries known to have changed that this answer does not reflect yet


@dataclass(slots=True)
class Answer:
    """What a search returns."""

    query: str
    mode: Mode
    hits: list[Hit]
    total_chunks: int
    freshness: Freshness = field(default_factory=lambda: Freshness(generation=0))
    notices: list[str] = field(default_factory=list)
    rewritten_query: str = (
        ""  # what a model made of the query, and what was searched; empty where it was searched as it is
    )

    @property
    def searched_query(self) -> str:
        """Return the words that were searched."""
        return self.rewritten_query or self.query


@dataclass(slots=True)
class Report:
    """What an import did."""

    added: int = 0
    updated: int = 0
    deleted: int = 0
    moved: int = 0
    unchanged: int = 0
    total_chunks: int = 0
    embedded: int = 0  # texts that had to be embedded; the rest were known
    problems: list[Problem] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    interrupted: bool = False
    failures: list[ToolFailure] = field(default_factory=list)  # tools that were passed over, the rest is done
