"""Plain records: what goes into a store, and what comes out of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from bunko.types import WHOLE_FILE, Chunk, Document, LineSpan, SourceEntry

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


@dataclass(frozen=True, slots=True)
class PreparedDocument:
    """A document that is ready to be stored: cut, with the terms of each chunk."""

    document: Document
    chunks: list[Chunk]
    packed_terms: bytes  # for each chunk its distinct terms and their counts, as `index.terms` packs them
    vector_keys: list[bytes] = field(default_factory=list)  # for each chunk the name of its vector, if it has one


@dataclass(frozen=True, slots=True)
class FailedDocument:
    """An entry that was read and could not be used: remembered, so that it is not read again until it changes."""

    entry: SourceEntry
    content_hash: str
    reason: str


@dataclass(frozen=True, slots=True)
class StoredChunk:
    """One chunk as an index needs it."""

    chunk_id: int
    document_id: int
    tiebreak_order: int
    text: str  # in its context: what its grams are made from
    term_keys: npt.NDArray[np.uint64]
    term_counts: npt.NDArray[np.uint16]
    vector: npt.NDArray[np.float32] | None


@dataclass(frozen=True, slots=True)
class ChunkRow:
    """One chunk as an answer needs it."""

    tool_id: int
    document_id: int
    uri: str
    title: str
    date: str
    tags: tuple[str, ...]
    content_hash: str
    chunk: Chunk


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """One document as it is stored."""

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
    """Which documents a search may answer from."""

    path: str = ""  # a glob over the uri
    tags: tuple[str, ...] = ()  # all of them
    since: str = ""  # ISO 8601, both included
    until: str = ""
    zone: str = ""  # where these are told, such as Asia/Tokyo; empty: as the system has it

    def __bool__(self) -> bool:
        return bool(self.path or self.tags or self.since or self.until)


NO_FILTER = Filter()


@dataclass(frozen=True, slots=True)
class Totals:
    """How much a tool holds."""

    documents: int
    chunks: int
    vectors: int
    characters: int


@dataclass(frozen=True, slots=True)
class EmbeddingUsage:
    """What imports had of one embedder."""

    texts: int = 0  # embedded
    calls: int = 0  # made, those that were tried again among them
    saved_texts: int = 0  # whose vectors were stored already
    saved_calls: int = 0  # that these would have taken

    def __add__(self, other: EmbeddingUsage) -> EmbeddingUsage:
        return EmbeddingUsage(
            self.texts + other.texts,
            self.calls + other.calls,
            self.saved_texts + other.saved_texts,
            self.saved_calls + other.saved_calls,
        )


@dataclass(frozen=True, slots=True)
class StorageSize:
    """How many bytes a tool's rows take, without what SQLite adds for pages and indexes.

    A vector is counted once however many chunks have it; two tools that share one both count it.
    """

    text: int  # the documents' texts, in UTF-8
    index: int  # their terms, and their chunks' headings and texts as far as these are stored apart
    vectors: int
    dimension: int  # of each vector; 0 where there is none


@dataclass(frozen=True, slots=True)
class DocumentSummary:
    """One document in a list."""

    uri: str
    title: str
    chunks: int
    characters: int
    beginning: str  # of its body: enough to tell its language


@dataclass(frozen=True, slots=True)
class DatedDocument:
    """One document in a list by date."""

    uri: str
    title: str
    date: str
    tags: tuple[str, ...]
    beginning: str  # of its body
    lines: LineSpan


# waiting: to be fetched; held: fetched with success; failed: never; alias: held under another URL.
PageState = Literal["waiting", "held", "failed", "alias"]


@dataclass(frozen=True, slots=True)
class WebPage:
    """What is known of a web page, without its content."""

    url: str
    state: PageState = "waiting"
    depth: int = 0  # links away from where a crawl began
    found_on: str = ""  # where the crawl that found it began; of an alias: the URL it is held under
    status: int = 0  # what the server answered last; 0: nothing
    media_type: str = ""
    charset: str = ""  # as the server named it
    etag: str = ""
    last_modified: str = ""
    fetched_at: str = ""  # when the content came
    checked_at: str = ""  # when it was last asked for
    content_hash: str = ""  # of the content; empty where there is none
    problem: str = ""  # of the last attempt; content from before it stays
    size: int = 0  # bytes of the content as it is kept; nothing that is put


@dataclass(frozen=True, slots=True)
class LoggedSearch:
    """A search that somebody made and that is remembered."""

    query: str
    tool: str  # the tool that was asked; empty where all were
    count: int
    last_searched_at: str  # when it was made last
