"""What a store must offer, subject by subject."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from bunko.types import Fingerprint, Problem, SourceEntry, Tool
from bunko.types.access import AuditEntry, AuditResult, Token
from bunko.types.build_info import BuildInfo
from bunko.types.records import (
    NO_FILTER,
    ChunkRow,
    DatedDocument,
    DocumentSummary,
    DomainRule,
    EmbeddingUsage,
    FailedDocument,
    Filter,
    IndexNote,
    ListedDocument,
    LoggedSearch,
    OutboxEntry,
    PreparedDocument,
    ScanRecord,
    StorageSize,
    StoreAddress,
    StoredChunk,
    StoredDocument,
    ToolStatistics,
    Totals,
    VectorRoom,
    WebPage,
)

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from bunko.types import SentenceSubwords


Row = tuple[Any, ...]
Key = tuple[Any, ...]  # the values that identify and sort a row; an empty one is before the first or after the last


class RowPage(NamedTuple):
    """Consecutive rows of a table: all those after one key and up to another."""

    after: Key
    until: Key
    rows: Sequence[Row]


class Digest(NamedTuple):
    """The number of some rows, and a hash of them that does not depend on their order."""

    rows: int = 0
    hash: int = 0

    def __add__(self, other: object) -> Digest:
        """Return the digest of both groups of rows."""
        if not isinstance(other, Digest):
            return NotImplemented
        return Digest(self.rows + other.rows, (self.hash + other.hash) % 2**128)


class MovingRows(Protocol):
    """All rows of a library as they are stored, table by table, in every store the same."""

    tables: Sequence[str]  # in an order in which each refers only to those before it

    def count(self, table: str) -> int:
        """Return how many rows a table has."""

    def pages(self, table: str) -> Iterator[RowPage]:
        """Yield a table in pages of a limited number of rows and bytes; the last one reaches to the end."""

    def digests(self, table: str, page: RowPage) -> dict[int, Digest]:
        """Return the digest of the rows of a page, by the id of their tool."""

    def last_key(self, table: str) -> Key:
        """Return the key of the last row of a table, an empty one if it has no rows."""

    def put_page(self, table: str, page: RowPage, *, is_new: bool) -> bool:
        """Replace the rows between two keys with those of a page; return whether that changed anything.

        `is_new`: the table has no row after the first of the two keys, so that there is nothing to replace.
        """

    def last_ids(self) -> dict[str, int]:
        """Return the highest id that each table with ids has ever given."""

    def put_last_ids(self, ids: Mapping[str, int]) -> None:
        """Give only higher ids from now on."""

    def values(self) -> dict[str, str]:
        """Return the values that describe the library as a whole, such as its id, its generation, and index notes."""

    def put_values(self, values: Mapping[str, str], index_files: Mapping[int, str], *, is_finished: bool) -> None:
        """Store the values of another library, and the index files of this machine by tool.

        A library that is finished can be used from now on. On a server, tools that belong to no machine become those
        of this one.
        """

    def copy_of(self) -> str:
        """Return the id of the library that this one is a copy of and nothing else, or an empty string.

        A copy that was written to since it was finished is a library of its own.
        """

    def is_unfinished(self) -> bool:
        """Return whether this library is a copy that is not complete."""

    def begin_use(self) -> None:
        """Make this library more than a copy, as the first write does."""

    def begin_copy(self, library_id: str) -> None:
        """Mark this library as an unfinished copy, so that no other command uses it."""

    def leave(self, place: str) -> AbstractContextManager[None]:
        """Run the block while writers wait, and then mark this library as moved; if it fails, as nothing."""

    def stay(self) -> None:
        """Remove the mark that this library has moved."""


class ChangeStore(Protocol):
    """What changed since a generation, for indexes that follow the store."""

    def chunks_since(self, tool_id: int, since: int) -> Iterator[StoredChunk]:
        """Yield the chunks of all documents written after a generation, in the order they were written."""

    def documents_since(self, tool_id: int, since: int) -> list[int]:
        """Return the ids of the documents written after a generation, in the order they were written."""

    def chunks_of(self, document_ids: Sequence[int]) -> Iterator[StoredChunk]:
        """Yield the chunks of documents, in the order they were written; a document that was removed has none."""

    def chunk_sentences(self, ids: Sequence[int]) -> dict[int, SentenceSubwords | str | None]:
        """Return the subwords of those of the chunks that still exist, or else their texts; None without a vector."""

    def chunk_ids(self, tool_id: int) -> list[int]:
        """Return the ids of all chunks of a tool."""

    def removed_since(self, tool_id: int, since: int) -> list[int] | None:
        """Return the ids of the documents removed after a generation, or None if those records were pruned."""

    def redated_since(self, tool_id: int, since: int) -> list[int]:
        """Return the ids of documents whose date, that of their file, became another day after a generation."""

    def last_generation(self, tool_id: int) -> int:
        """Return a generation after which nothing of a tool was written or removed; it never goes back."""

    def prune_removals(self, tool_id: int, before: int) -> None:
        """Delete the records of removals up to a generation."""

    def set_index_file(self, tool_id: int, name: str) -> None:
        """Store the name of the tool's current index file."""

    def index_file(self, tool_id: int) -> str:
        """Return the name of the tool's current index file, or an empty string."""

    def set_index_note(self, tool_id: int, index: str, note: str) -> None:
        """Store the note of an index outside the library about its copy of a tool; an empty one deletes it."""

    def index_note(self, tool_id: int, index: str) -> str:
        """Return the note of an index about its copy of a tool, or an empty string."""


class IndexStatisticsStore(Protocol):
    """Statistics over the chunks of tools, for indexes outside the library that cannot compute them for each search.

    They follow the documents by generation: the copying process brings the statistics along. Each copy
    of a tool has statistics of its own, because one may be behind another; `copy` is its id.
    """

    def get(self, tool_id: int, copy: str) -> ToolStatistics | None:
        """Return the statistics of a copy, without the frequencies, or None if there are none."""

    def frequencies(self, tool_id: int, copy: str, keys: Sequence[int]) -> dict[int, int]:
        """Return in how many chunks of a copy each key occurs; a key that occurs in none may be left out."""

    def replace(
        self, tool_id: int, copy: str, statistics: ToolStatistics, frequencies: Iterable[tuple[int, int]]
    ) -> None:
        """Store the statistics of a copy in place of earlier ones, and delete those of abandoned copies, atomically."""

    def update(
        self, tool_id: int, copy: str, statistics: ToolStatistics, changes: Iterable[tuple[int, int]], note: IndexNote
    ) -> bool:
        """Replace the statistics of a copy and the note about it, and add changes to its frequencies, atomically.

        If the library has another note than the old one, nothing is stored and the result is False.
        """

    def clear(self, tool_id: int, copy: str) -> None:
        """Delete the statistics of a copy."""


class OutboxStore(Protocol):
    """What bots have promised to answer; it survives the end of a process."""

    def add(self, entry: OutboxEntry) -> bool:
        """Store an entry; return False if there is one with its key."""

    def get(self, key: str) -> OutboxEntry | None:
        """Return the entry with a key, or None."""

    def update(self, entry: OutboxEntry) -> None:
        """Store the state, the attempts and the answer of an entry."""

    def unfinished(self, bot: str, *, limit: int) -> list[OutboxEntry]:
        """Return the entries of a bot that are waiting or answered, by position."""

    def finished(self, bot: str, thread: str, *, limit: int) -> list[OutboxEntry]:
        """Return the last entries of a thread that are done, by position."""

    def prune(self, before: float) -> None:
        """Delete the entries that are done or failed and were created before a time."""


class DomainStore(Protocol):
    """The domains that a bot may add pages from, as people have decided in a chat."""

    def all(self) -> list[DomainRule]:
        """Return all rules, sorted by domain."""

    def put(self, rule: DomainRule) -> None:
        """Store a rule in place of the earlier one for its domain."""


class TokenStore(Protocol):
    """The tokens of HTTP clients, each with the rights that it gives."""

    def all(self) -> list[Token]:
        """Return all tokens, sorted by name; those that have expired too."""

    def add(self, token: Token) -> bool:
        """Add a token; return False if there is one of that name."""

    def remove(self, name: str) -> bool:
        """Delete a token; return False if there is none of that name."""

    def mark_used(self, name: str, used_at: str) -> bool:
        """Record the last use of a token; return False if another process is writing."""

    def rename_tool(self, name: str, new_name: str) -> None:
        """Give the rights to a tool to the tool of its new name."""

    def remove_tool(self, name: str) -> None:
        """Take the rights to a tool from all tokens."""


class AuditStore(Protocol):
    """The log of who changed what."""

    def begin(self, entry: AuditEntry, *, limit: int) -> int:
        """Store an entry before the change, so that it survives a crash; keep `limit` entries. Return its id."""

    def finish(
        self, entry_id: int, result: AuditResult, details: Mapping[str, Any], *, tools: Sequence[str] | None = None
    ) -> None:
        """Record the result of a change, and its tools if they were not known before."""

    def entries(self, *, since: str = "") -> list[AuditEntry]:
        """Return the entries, the oldest first; all, or those from a time on."""


class ToolStore(Protocol):
    """The tools of a library."""

    def all(self) -> list[Tool]:
        """Return all tools, sorted by name."""

    def put(self, tool: Tool) -> Tool:
        """Add a tool or replace the tool of the same name; return it with its id."""

    def ensure(self, tool: Tool) -> None:
        """Add a tool unless one of that name exists."""

    def update_build_info(self, tool_id: int, *, built: BuildInfo | None = None, imported_at: str = "") -> None:
        """Record how or when a tool's index was built, without overwriting concurrent changes to its other fields."""

    def rename(self, *tools: Tool) -> None:
        """Store the names and options of existing tools atomically; raise SettingsError if another has such a name."""

    def claim(self, tool_id: int) -> None:
        """Record that this machine imports a tool, which else the one does that added it."""

    def is_local(self, tool_id: int) -> bool:
        """Return whether this machine imports a tool: on others, the path of its folder may be another folder."""

    def drop(self, tool_id: int) -> None:
        """Delete a tool with its documents, pages and pinned vectors."""

    def swap(self, tool: Tool, shadow: Tool) -> int:
        """Replace a tool's documents by those of the shadow tool that a rebuild wrote, and delete that, atomically."""

    def adopt_documents(self, tool: Tool, shadow: Tool) -> Tool:
        """Store a tool, or replace the one of its name, with the documents of the shadow tool that an import wrote."""


class DocumentReader(Protocol):
    """The documents of all tools, with their chunks, to read."""

    def fingerprints(self, tool_id: int) -> dict[str, Fingerprint]:
        """Return the fingerprint of each document and of each failed entry, by URI."""

    def failures(self, tool_id: int) -> list[Problem]:
        """Return the entries that could not be imported."""

    def get(self, tool_id: int, uri: str) -> StoredDocument | None:
        """Return the document with this URI, or None."""

    def get_all(self, tool_id: int, uris: Sequence[str]) -> dict[str, StoredDocument]:
        """Return the documents with these URIs that exist, by URI."""

    def chunks(self, ids: Sequence[int], *, read_documents: bool = False) -> dict[int, ChunkRow]:
        """Return the chunks with these ids that still exist, and with `read_documents` what they were cut from."""

    def select(self, tool_id: int, where: Filter) -> list[int]:
        """Return the ids of the documents that match a filter."""

    def find(self, tool_id: int, where: Filter) -> list[ListedDocument]:
        """Return the documents that match a filter, without their texts, in any order."""

    def page(self, tool_id: int, *, after: str = "", limit: int = 100) -> list[ListedDocument]:
        """Return the documents whose URIs come after a given one, sorted by URI, without their texts."""

    def uris(self, tool_id: int, *, after: str = "", limit: int = 100) -> list[str]:
        """Return the URIs after a given one, sorted."""

    def uris_with_hash(self, tool_id: int, prefix: str) -> list[str]:
        """Return the URIs of documents whose content hash starts with a prefix."""

    def export(self, tool_id: int, uris: Sequence[str]) -> list[PreparedDocument]:
        """Return the documents as they were written, sorted by URI."""


class DocumentStore(DocumentReader, Protocol):
    """The documents of all tools, with their chunks."""

    def write(
        self,
        tool_id: int,
        *,
        upsert: Sequence[PreparedDocument] = (),
        fail: Sequence[FailedDocument] = (),
        remove: Sequence[str] = (),
        touch: Sequence[SourceEntry] = (),
        vectors: Mapping[bytes, npt.NDArray[np.float32]] | None = None,
        sentences: Mapping[bytes, SentenceSubwords] | None = None,
        usage: Mapping[str, EmbeddingUsage] | None = None,
    ) -> int:
        """Write documents atomically and return the new generation; a failed entry replaces its document.

        `sentences` are vectors by the keys of `vectors`. `usage` is added to the totals of each embedder.
        """


class VectorStore(Protocol):
    """The vectors of chunks by key, and the usage of the embedders that computed them."""

    def get(self, keys: Iterable[bytes]) -> dict[bytes, npt.NDArray[np.float32]]:
        """Return the stored vectors among these keys."""

    def missing(self, keys: Iterable[bytes], *, split: bool = False) -> set[bytes]:
        """Return the keys that have no stored vector; with `split`, or no subwords of sentences."""

    def unsplit(self, tool_id: int) -> int:
        """Return how many chunks of a tool have a vector and no subwords of their sentences."""

    def has_any(self, tool_id: int) -> bool:
        """Return whether any chunk of a tool has a vector."""

    def uris_without(self, tool_id: int, *, after: str = "", limit: int = 100) -> list[str]:
        """Return the URIs after a given one of the documents that have a chunk without a vector, sorted."""

    def document_means(self, tool_id: int, uri: str = "") -> tuple[list[str], npt.NDArray[np.float32]]:
        """Return the URIs of the documents that have vectors, and the mean of the vectors of each, in the same order.

        With a URI, only of that document. Vectors of another length than that of the first do not count.
        """

    def pin(
        self,
        tool_id: int,
        embedder: str,
        vectors: Mapping[bytes, npt.NDArray[np.float32]],
        *,
        sentences: Mapping[bytes, SentenceSubwords] | None = None,
        usage: Mapping[str, EmbeddingUsage] | None = None,
    ) -> None:
        """Store vectors that no chunk uses yet, and keep them from being deleted as orphans until they are unpinned."""

    def unpin(self, tool_id: int, embedder: str | None = None) -> None:
        """Unpin the vectors of a tool, of one embedder or of all; those that no chunk uses are released."""

    def replace(self, tool_id: int, keys: Mapping[str, Sequence[bytes]], built: BuildInfo) -> int:
        """Assign new vectors to all chunks of a tool, atomically; return the new generation.

        `keys` holds the vector keys of each document by URI, in chunk order; an empty mapping removes all vectors.
        Texts and terms do not change. Raises LibraryError if a key is missing or has no stored vector.
        """

    def delete_released(self, tool_id: int) -> None:
        """Delete the vectors that a tool's documents used or that were pinned for it, and that nothing uses now.

        Until then, an import that embeds one of their texts finds them. The caller holds the import lock of the tool;
        others write in between. While others import, it may leave the rest to the next time.
        """

    def delete_orphans(self) -> None:
        """Delete all vectors that no chunk uses and that are not pinned, in the same way."""

    def unused(self) -> VectorRoom:
        """Return how many vectors no chunk uses, pinned or not, and how many bytes they take."""

    def usage(self) -> dict[str, EmbeddingUsage]:
        """Return how much imports have used each embedder, by embedder name."""


class WebPageStore(Protocol):
    """The fetched web pages of all tools."""

    def select(self, tool_id: int, urls: Sequence[str] | None = None) -> list[WebPage]:
        """Return all pages of a tool, or those with the given URLs, sorted by URL."""

    def content(self, tool_id: int, url: str) -> bytes | None:
        """Return the content of a page as it was fetched, or None."""

    def write(
        self,
        tool_id: int,
        *,
        upsert: Sequence[WebPage] = (),
        contents: Mapping[str, bytes] | None = None,
        remove: Sequence[str] = (),
    ) -> None:
        """Write pages atomically; a page without new content keeps its old content."""


class CacheStore(Protocol):
    """The search log and cached answers of models and web services: data that may be lost."""

    def log_search(self, query: str, tool: str, searched_at: str, *, limit: int) -> bool:
        """Add a search to the log, which keeps `limit` searches; return False if another process is writing."""

    def logged_searches(self) -> list[LoggedSearch]:
        """Return the logged searches, most frequent first."""

    def clear_searches(self) -> int:
        """Delete the search log; return how many searches it had."""

    def rename_tool(self, name: str, new_name: str) -> None:
        """Make the logged searches of a tool those of its new name, in the place of those of a tool that had it."""

    def cached_answer(self, kind: str, key: bytes, now: float) -> str | None:
        """Return a cached answer, or None if there is none or it expired; `now` is in seconds since 1970."""

    def cached_answers(self, kind: str, keys: Sequence[bytes], now: float) -> dict[bytes, str]:
        """Return the cached answers that have not expired, by key."""

    def cache_answer(self, kind: str, key: bytes, value: str, *, now: float, expires_at: float, limit: int) -> bool:
        """Cache an answer, keeping `limit` per kind; return False if another process is writing."""

    def cache_answers(self, kind: str, answers: Mapping[bytes, tuple[str, float]], *, now: float, limit: int) -> None:
        """Cache answers, each with its expiry time, keeping `limit` per kind; wait for other processes."""


class StatsStore(Protocol):
    """Counts, sizes and lists of a tool's documents, without their texts."""

    def totals(self, tool_id: int) -> Totals:
        """Return how many documents, chunks, vectors and characters a tool has."""

    def count_incomplete(self) -> int:
        """Return how many documents of all tools lack some of their chunks, as after damage to the file."""

    def storage_size(self, tool_id: int) -> StorageSize:
        """Return how many bytes a tool's rows take."""

    def dimension(self, tool_id: int) -> int:
        """Return the dimension of a tool's vectors, 0 if there are none."""

    def chunk_lengths(self, tool_id: int) -> list[tuple[int, int]]:
        """Return pairs of chunk length in characters and number of chunks, shortest first."""

    def list_documents(self, tool_id: int, *, skip: int = 0, limit: int = 20) -> list[DocumentSummary]:
        """Return a page of documents, sorted by URI."""

    def beginnings(self, tool_id: int, *, limit: int) -> list[str]:
        """Return the beginnings of at most `limit` documents that are spread evenly over all."""

    def tags(self, tool_id: int) -> list[tuple[str, int]]:
        """Return each tag with its number of documents, most used first."""

    def recent_documents(self, tool_id: int, *, limit: int = 10, where: Filter = NO_FILTER) -> list[DatedDocument]:
        """Return the most recent documents, newest first; documents without a date come last."""


class ScanStore(Protocol):
    """What scans of the sources found, so that the next one need not read what is stored: data that may be lost."""

    def get(self, tool_id: int) -> ScanRecord:
        """Return the version of a tool's fingerprints, and the state of its source if nothing was written since."""

    def put(self, tool_id: int, record: ScanRecord) -> bool:
        """Record the state of a tool's source; return False if another process is writing."""


class WriterLock(Protocol):
    """Keeps other writers out: threads, processes and, if the store is on a server, other machines."""

    def acquire(self, seconds: float) -> bool:
        """Wait at most this long for the lock; return whether it is held now."""

    def release(self) -> None:
        """Release the lock."""

    def holder(self) -> str:
        """Describe the process that holds it, or return an empty string if that is not known."""


class StoreFiles(Protocol):
    """The files of a library, without those of its indexes; a store without files has none."""

    def paths(self) -> list[Path]:
        """Return the files that exist now."""

    def contain(self, real_path: str) -> bool:
        """Return whether a path without symbolic links names one of these files, existing or not."""

    def mode(self) -> int | None:
        """Return the permissions for files with parts of the library, None for those of other new files."""

    def still_exist(self) -> bool:
        """Return whether the library that was opened is still at its place."""


class LibraryStorage(Protocol):
    """Where a library is kept, and when it changes there; nothing of what is in it."""

    kind: str  # one of `stores.KINDS`
    address: StoreAddress  # to open the same library in another process
    location: str  # for messages
    announces_changes: bool  # whether `wait_for_change` returns as soon as another process has changed something

    def read_transaction(self) -> AbstractContextManager[None]:
        """Read everything inside the block from one state, unaffected by concurrent writes."""

    def lock(self, purpose: str = "import", *, tools: Sequence[str] | None = None) -> WriterLock:
        """Return the lock for a purpose: `import` of some tools or of all, `web`, `index` for collections, `slack-…`.

        Imports of different tools may run at the same time on a server; a file has one lock for all of them.
        """

    def generation(self) -> int:
        """Return a number that grows with every change that affects search results."""

    def wait_for_change(self, seconds: float) -> bool:
        """Wait at most this long for a change by any process; return whether there may have been one."""


class Store(LibraryStorage, Protocol):
    """Stores the tools and documents of a library, by subject."""

    id: str  # unique to the library
    engine: str  # what stores it, with its version, for messages
    is_persistent: bool  # False if the library ends with its process
    tools: ToolStore
    documents: DocumentStore
    vectors: VectorStore
    changes: ChangeStore
    pages: WebPageStore
    cache: CacheStore
    scans: ScanStore
    stats: StatsStore
    index_statistics: IndexStatisticsStore
    tokens: TokenStore
    audit: AuditStore
    outbox: OutboxStore
    domains: DomainStore
    files: StoreFiles
    rows: MovingRows

    def size(self) -> int:
        """Return how many bytes the library takes, without its indexes."""

    def check(self) -> str:
        """Return the problems found in the stored data, or an empty string."""

    def moved_to(self) -> str:
        """Return the new place of this library if it has moved, else an empty string; all writes are refused then."""

    def close(self) -> None:
        """Close the store."""
