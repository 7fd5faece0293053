"""Follow a store from outside the library: find what a copy of a tool lacks, and stamp the copy.

A copy carries its id, the generation that it has caught up with and a nonce. The library notes which nonces the copy
has or is about to get, and up to which document everything was written to it: a document that is written or replaced
gets an id above all earlier ones, and one that keeps its id counts as removed too. So whatever a crash interrupts goes
on from there. A copy with another nonce belongs to another history of the library, such as one that was restored from a
backup, and is filled from scratch: like any change, from generation 0 on.

There may be several copies of a tool, such as one on each machine. A copy that is filled from scratch gets a new id,
so that each has its own notes, under all addresses of a server.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple, TypeVar

from bunko.errors import IndexFailure
from bunko.protocols import Store
from bunko.runtime.failpoints import reach_failpoint
from bunko.types.records import ChunkRow, IndexNote, StoredChunk

T = TypeVar("T")

# A store may forget removals after a thousand generations.
_OLD_GENERATIONS = 100
# Documents whose chunks are in memory at a time, and chunks that are read at once.
_DOCUMENT_BATCH, _READ_BATCH = 50, 200
# What a crash may lose, as a share of all that is to be written, and in documents where these are few.
_PARTS, _MIN_PART = 100, 10
COPY_STEP = "Copying chunks"


class Stamp(NamedTuple):
    """What a copy of a tool says about itself."""

    generation: int  # 0: it is being filled
    copy: str  # its id
    nonce: str


class _Note(NamedTuple):
    """What the library says about a copy."""

    began: int  # the generation from which on it is filled: earlier removals do not concern it
    document: int  # up to this one, it has all
    nonces: list[str]

    def __str__(self) -> str:
        return " ".join(map(str, (self.began, self.document, *self.nonces)))


class Replay(NamedTuple):
    """The changes that bring a copy up to date: documents are removed first, then written."""

    generation: int  # that the copy has afterwards
    from_scratch: bool  # the copy must be emptied first
    removed: Sequence[int]  # document ids
    written: Sequence[int]
    redated: Sequence[int] = ()  # their dates changed, and nothing else
    document: int = 0  # those up to this one were written before

    @property
    def pending(self) -> int:
        """Return how many documents differ."""
        return len({*self.removed, *self.written, *self.redated})

    def is_worthwhile(self, stamp: Stamp) -> bool:
        """Return whether a copy lacks documents, or has a stamp so old that the store may soon forget removals."""
        return bool(self.pending) or not stamp.generation or self.generation - stamp.generation >= _OLD_GENERATIONS

    def has_same_ids(self) -> bool:
        """Return whether documents were embedded again: all their chunks change, under the ids that they have."""
        return not set(self.removed).isdisjoint(self.written)

    def parts(self) -> Iterator[Sequence[int]]:
        """Yield the documents to write in parts after each of which a copy says how far it has come."""
        return batches(self.written, max(_MIN_PART, len(self.written) // _PARTS))


class Follower:
    """Follows a store for one engine, whose name is that of its notes in the library.

    With `with_dates`, the copies have the dates of documents, and a change of only that is replayed too.
    """

    def __init__(self, store: Store, engine: str, *, with_dates: bool = False) -> None:
        self._store, self._engine, self._with_dates = store, engine, with_dates

    def plan_replay(self, tool_id: int, stamp: Stamp | None) -> Replay:
        """Return the changes since a copy was stamped; all documents if there is no copy or it has another history."""
        with self._store.read_transaction():
            generation, changes = self._store.generation(), self._store.changes
            if stamp is not None and stamp.generation <= generation:
                note = self._read_note(tool_id, stamp)
                since = max(note.began, stamp.generation)
                removed = changes.removed_since(tool_id, since) if stamp.nonce in note.nonces else None
                if removed is not None:
                    written, with_same_id = changes.documents_since(tool_id, stamp.generation), set(removed)
                    written = [number for number in written if number > note.document or number in with_same_id]
                    redated = changes.redated_since(tool_id, since) if self._with_dates else []
                    redated = sorted(set(redated).difference(written))
                    return Replay(generation, False, removed, written, redated, note.document)
            return Replay(generation, True, (), changes.documents_since(tool_id, 0))

    def knows(self, tool_id: int, stamp: Stamp) -> bool:
        """Return whether the copy with a stamp is still the one that the library follows."""
        return stamp.nonce in self._read_note(tool_id, stamp).nonces

    def announce_copy(self, tool_id: int) -> Stamp:
        """Note in the library that a copy is about to be filled from scratch, and return its first stamp."""
        stamp = Stamp(0, secrets.token_hex(8), secrets.token_hex(8))
        self._announce(tool_id, stamp, _Note(self._store.generation(), 0, [stamp.nonce]))
        return stamp

    def announce_change(self, tool_id: int, stamp: Stamp) -> Stamp:
        """Note in the library that a copy is about to change, and return the stamp that it gets before the first."""
        note, nonce = self._read_note(tool_id, stamp), secrets.token_hex(8)
        if stamp.nonce not in note.nonces:
            raise self.other_process()
        self._announce(tool_id, stamp, note._replace(nonces=[stamp.nonce, nonce]))
        return stamp._replace(nonce=nonce)

    def progress(self, tool_id: int, stamp: Stamp, document_id: int) -> IndexNote:
        """Return the note that a copy has all documents up to one, which replaces the present note."""
        note = self._read_note(tool_id, stamp)
        if note.nonces[-1:] != [stamp.nonce]:
            raise self.other_process()
        return IndexNote(self._note_name(stamp), str(note), str(note._replace(document=document_id)))

    def note_progress(self, tool_id: int, stamp: Stamp, document_id: int) -> None:
        """Note that a copy has all documents up to one."""
        note = self.progress(tool_id, stamp, document_id)
        self._store.changes.set_index_note(tool_id, note.name, note.new)
        reach_failpoint("index.counted")

    def other_process(self) -> IndexFailure:
        """Return the failure of a copy that another process has begun to change."""
        return IndexFailure(
            f"Another process is copying the same tool to {self._engine.title()}",
            hint="Wait for it, then run: bunko index sync.",
        )

    def forget_copy(self, tool_id: int, stamp: Stamp) -> None:
        """Delete what the library has noted about a copy that no longer exists."""
        self._store.changes.set_index_note(tool_id, self._note_name(stamp), "")

    def read_chunks(
        self, document_ids: Sequence[int], *, with_vector: bool = False
    ) -> Iterator[tuple[list[StoredChunk], dict[int, ChunkRow]]]:
        """Yield the chunks of documents in batches, or those with a vector; a search waits for none of the reads."""
        for batch in batches(document_ids, _DOCUMENT_BATCH):
            rows: dict[int, ChunkRow] = {}
            with self._store.read_transaction():
                chunks = list(self._store.changes.chunks_of(batch))
                if with_vector:
                    chunks = [chunk for chunk in chunks if chunk.vector is not None]
                for part in batches(chunks, _READ_BATCH):
                    rows |= self._store.documents.chunks([chunk.chunk_id for chunk in part])
            if chunks:
                yield chunks, rows

    def _announce(self, tool_id: int, stamp: Stamp, note: _Note) -> None:
        self._store.changes.set_index_note(tool_id, self._note_name(stamp), str(note))
        reach_failpoint("index.announced")

    def _read_note(self, tool_id: int, stamp: Stamp) -> _Note:
        """Return the note about a copy, without nonces if there is none."""
        words = self._store.changes.index_note(tool_id, self._note_name(stamp)).split()
        # That of an older bunko has only nonces: the copy has all up to its stamp.
        return _Note(int(words[0]), int(words[1]), words[2:]) if len(words) > 2 else _Note(0, 0, words)

    def _note_name(self, stamp: Stamp) -> str:
        return f"{self._engine} {stamp.copy}"


def batches(values: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """Split values into batches."""
    return (values[start : start + size] for start in range(0, len(values), size))


PAUSE_SECONDS = 30.0


class EnginePause:
    """The time in which searches do not ask an engine; an import tries it at once, but only once for all its tools."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._pause: tuple[float, IndexFailure] | None = None  # when it ends, and what began it
        self._failed_tools: set[int] = set()  # whose sync met the failure

    @contextmanager
    def asking(self) -> Iterator[None]:
        """Ask the engine inside the block; in a pause, raise the failure that began it instead."""
        try:
            self._raise_if_paused()
            yield
        except IndexFailure as failure:
            self._begin(failure)
            raise

    @contextmanager
    def syncing(self, tool_id: int) -> Iterator[None]:
        """Sync a tool inside the block, which ends a pause, unless the sync of another tool has just met a failure."""
        try:
            if self._failed_tools and tool_id not in self._failed_tools:
                self._raise_if_paused()
            self._failed_tools.clear()
            self._pause = None
            yield
        except IndexFailure as failure:
            self._begin(failure)
            if failure.is_away:
                self._failed_tools.add(tool_id)
            raise

    def _raise_if_paused(self) -> None:
        pause = self._pause  # read once: another thread may end it
        if pause is not None and self._clock() < pause[0]:
            raise pause[1]

    def _begin(self, failure: IndexFailure) -> None:
        """Begin a pause if the engine is away; a failure during a pause does not make it longer."""
        pause, now = self._pause, self._clock()
        if failure.is_away and (pause is None or now >= pause[0]):
            self._pause = now + PAUSE_SECONDS, failure
