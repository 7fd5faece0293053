"""Define the records that stores and indexes take and return."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from bunko.types import WHOLE_FILE, Chunk, Document, LineSpan, SourceEntry
from bunko.types.pickling import reduce_to_fields

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from bunko.types import SentenceSubwords


@dataclass(frozen=True, slots=True)
class DatabaseServer:
    """A database server, and the schema of a library in it."""

    url: str  # without a password
    schema: str = "bunko"
    password: str = field(default="", repr=False)
    pool_size: int = 8  # connections of a process


class StoreAddress(NamedTuple):
    """What opens the same library in another process: the arguments of `stores.build`."""

    kind: str
    location: Path  # of its file; on a server, only its folder is used, for the files of indexes
    server: DatabaseServer | None = None


@dataclass(frozen=True, slots=True)
class PreparedDocument:
    """A document ready to be stored, with its chunks and the terms of each chunk."""

    __reduce__ = reduce_to_fields

    document: Document
    chunks: list[Chunk]
    packed_terms: bytes  # for each chunk its distinct terms and their counts, packed by `text.term_codec`
    vector_keys: list[bytes] = field(default_factory=list)  # for each chunk the key of its vector

    def texts_to_embed(self) -> list[str]:
        """Return the text of each chunk with the headings that it stands under."""
        return [chunk.text_in_context(self.document.text.title) for chunk in self.chunks]


@dataclass(frozen=True, slots=True)
class FailedDocument:
    """An entry that could not be imported; it is stored so that it is not read again until it changes."""

    entry: SourceEntry
    content_hash: str
    reason: str


@dataclass(frozen=True, slots=True)
class StoredChunk:
    """A chunk with the data that an index needs."""

    chunk_id: int
    document_id: int
    tiebreak_order: int
    text: str  # with title and headings: n-grams are computed from it
    term_keys: npt.NDArray[np.uint64]
    term_counts: npt.NDArray[np.uint16]
    vector: npt.NDArray[np.float32] | None
    sentences: SentenceSubwords | None = None  # of its text in context, if its embedder splits it


class SentenceMatch(NamedTuple):
    """The sentence of a chunk that is nearest to a query: its cosine and its position among the chunk's sentences."""

    cosine: float
    position: int
    nearness: float = 0.0  # of the query's words to their nearest ones, in the sentence where they are nearest


class ChunkRow(NamedTuple):
    """A chunk with the data that a search result needs."""

    tool_id: int
    document_id: int
    uri: str
    title: str
    date: str
    tags: tuple[str, ...]
    content_hash: str
    chunk: Chunk
    document: StoredDocument | None = None  # only if asked for, and if the text of the chunk is not stored apart


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """A stored document with its full text."""

    uri: str
    title: str
    date: str
    tags: tuple[str, ...]
    content_hash: str
    media_type: str
    text: str
    body_start: int
    lines: LineSpan = WHOLE_FILE


@dataclass(frozen=True, slots=True)
class Filter:
    """Restricts a search to some documents."""

    path: str = ""  # a glob over the uri
    tags: tuple[str, ...] = ()  # a document must have all of them
    since: str = ""  # ISO 8601; both ends are inclusive
    until: str = ""
    zone: str = ""  # time zone of since and until, such as Asia/Tokyo; empty: the system's
    selection: str = ""  # the id of chosen documents
    selected_uris: Mapping[int, frozenset[str]] | None = field(default=None, repr=False, compare=False)  # by tool

    def __bool__(self) -> bool:
        return bool(self.path or self.tags or self.since or self.until or self.selection)


NO_FILTER = Filter()


class SelectedDocuments(tuple[int, ...]):
    """The ids of the documents that match a filter, and the filter, which says the same in fewer words."""

    filter: Filter = NO_FILTER

    @classmethod
    def of(cls, ids: Iterable[int], where: Filter) -> SelectedDocuments:
        """Return the ids of documents with the filter that selected them."""
        selected = cls(ids)
        selected.filter = where
        return selected


@dataclass(frozen=True, slots=True)
class Totals:
    """How many documents, chunks, vectors and characters a tool has."""

    documents: int
    chunks: int
    vectors: int
    characters: int


# A store may forget what was removed so long ago, so that an index that was not updated since is built again.
MAX_GENERATIONS_BEHIND = 1000


class IndexNote(NamedTuple):
    """A note of an index about its copy of a tool, and the one that replaces it."""

    name: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class ToolStatistics:
    """Statistics over the chunks of a copy of a tool at one generation."""

    generation: int
    chunks: int
    terms: int  # of all chunks, with repetitions
    vectors: bytes = b""  # number, mean and covariance of the vectors; empty if there are none


@dataclass(frozen=True, slots=True)
class EmbeddingUsage:
    """How much imports have used one embedder."""

    texts: int = 0  # texts embedded
    calls: int = 0  # requests, including retries
    saved_texts: int = 0  # texts whose vectors were already stored
    saved_calls: int = 0  # requests these texts would have taken

    def __add__(self, other: EmbeddingUsage) -> EmbeddingUsage:
        return EmbeddingUsage(
            self.texts + other.texts,
            self.calls + other.calls,
            self.saved_texts + other.saved_texts,
            self.saved_calls + other.saved_calls,
        )


@dataclass(frozen=True, slots=True)
class VectorRoom:
    """How many vectors there are of a kind, and how many bytes they take."""

    count: int
    bytes: int


@dataclass(frozen=True, slots=True)
class StorageSize:
    """How many bytes a tool's rows take, without the overhead of the database.

    A vector shared by several chunks of a tool is counted once; a vector shared by two tools is counted for both.
    """

    text: int  # texts of the documents, in UTF-8
    index: int  # terms, chunk headings, and chunk texts that are stored separately
    vectors: int
    dimension: int  # of each vector; 0 without vectors


@dataclass(frozen=True, slots=True)
class DocumentSummary:
    """A document in a list."""

    uri: str
    title: str
    chunks: int
    characters: int
    beginning: str  # first characters of the body, enough to detect the language


@dataclass(frozen=True, slots=True)
class DatedDocument:
    """A document in a list sorted by date."""

    uri: str
    title: str
    date: str
    tags: tuple[str, ...]
    beginning: str  # first characters of the body
    lines: LineSpan


@dataclass(frozen=True, slots=True)
class ListedDocument:
    """A document in a list, without its text."""

    uri: str
    title: str
    date: str
    tags: tuple[str, ...]
    media_type: str
    size: int  # of its file, in bytes
    modified_ns: int
    lines: LineSpan
    is_dated_by_file: bool = False  # whether the date is the time of its file, because the document itself has none


# waiting: not fetched yet; held: fetched; failed: never fetched successfully; alias: stored under another URL.
PageState = Literal["waiting", "held", "failed", "alias"]


@dataclass(frozen=True, slots=True)
class WebPage:
    """A web page of a tool, without its content."""

    url: str
    state: PageState = "waiting"
    depth: int = 0  # number of links from the start URL
    found_on: str = ""  # start URL of the crawl that found it; for an alias: the URL it is stored under
    status: int = 0  # last HTTP status; 0: no response
    media_type: str = ""
    charset: str = ""  # as named by the server
    etag: str = ""
    last_modified: str = ""
    fetched_at: str = ""  # when the content was fetched
    checked_at: str = ""  # when it was last requested
    content_hash: str = ""  # of the content; empty without content
    problem: str = ""  # of the last attempt; earlier content is kept
    size: int = 0  # bytes of the compressed content; set by the store, ignored on write


@dataclass(frozen=True, slots=True)
class LoggedSearch:
    """A search in the search log."""

    query: str
    tool: str  # the tool that was searched; empty: all tools
    count: int
    last_searched_at: str


class ScanRecord(NamedTuple):
    """The state of a tool's source in which a scan found nothing new."""

    version: int  # of the fingerprints that were compared: it grows whenever they are written
    state: str = ""  # as in `Look`; empty: no scan has found nothing new since they were written
    unchanged: int = 0  # entries


class QueryTerm(NamedTuple):
    """A key of a query and its weight; words come before n-grams."""

    key: int
    weight: float
    is_gram: bool = False
    group: int = -1  # of the terms of a group, only the one that scores highest in a row counts


class Ranking(NamedTuple):
    """Rows of an index and their scores, best first."""

    rows: Sequence[int]
    scores: Sequence[float]


EMPTY_RANKING = Ranking((), ())


class Wording(NamedTuple):
    """Other words for a query."""

    kind: Literal["query", "also", "passage"]
    text: str


class NearestRows(NamedTuple):
    """The nearest rows, best first, with the mean and spread of the cosines of all rows, both to 4 decimals."""

    ranking: Ranking
    query_vector: npt.NDArray[np.float32]
    mean: float
    spread: float


@dataclass(frozen=True, slots=True)
class IndexState:
    """How far an index has followed the store for one tool."""

    generation: int  # of the store, which it has caught up with; 0: it holds nothing of the tool
    pending: int = 0  # documents written or removed since then
    rows: int | None = None  # of the tool; None if counting them would mean loading them
    problem: str = ""  # why searches do not use it
    hint: str = ""  # what to do about the problem

    @property
    def is_current(self) -> bool:
        """Return whether searches use it."""
        return not (self.pending or self.problem)


# An n-gram counts a quarter of its idf, beside words and alone: chosen on judged sets, see docs/quality.md.
GRAM_WEIGHT = 0.25


# answered: the answer is known, but not all of it was sent; failed: it cannot be sent.
OutboxState = Literal["waiting", "answered", "done", "failed"]


@dataclass(frozen=True, slots=True)
class OutboxEntry:
    """A message that a bot has acknowledged, with its answer as soon as there is one."""

    key: str  # names the message, however often it is delivered
    bot: str
    thread: str
    position: str  # sorts the messages of a thread
    request: Mapping[str, Any]
    created_at: float  # in seconds since 1970
    state: OutboxState = "waiting"
    attempts: int = 0  # how often work on it began
    answer: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DomainRule:
    """Whether pages of a domain may be added, and who decided that."""

    domain: str
    is_allowed: bool
    changed_by: str
    changed_at: str
