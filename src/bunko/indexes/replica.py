"""Follow a store from outside the library: find what a copy of a tool lacks, and stamp the copy.

A copy carries its id, the generation that it has caught up with and a nonce. Before a copy is changed, the library
notes the nonce that the copy has and the one that it will get. So a crash at any point leaves a copy with a known
nonce, from whose generation the changes are replayed; a copy with another nonce belongs to another history of the
library, such as one that was restored from a backup, and is filled from scratch.

There may be several copies of a tool, such as one on each machine. A copy that is filled from scratch gets a new id,
so that each has its own notes, by whatever addresses the machines know a server.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeVar

from bunko.protocols import Store

T = TypeVar("T")

# A store may forget removals after a thousand generations.
_OLD_GENERATIONS = 100


class Stamp(NamedTuple):
    """What a copy of a tool says about itself."""

    generation: int
    copy: str  # its id
    nonce: str


class Replay(NamedTuple):
    """The changes that bring a copy up to date: documents are removed first, then written."""

    generation: int  # that the copy has afterwards
    from_scratch: bool  # the copy must be emptied first
    removed: Sequence[int]  # document ids
    written: Sequence[int]
    redated: Sequence[int] = ()  # their dates changed, and nothing else

    @property
    def pending(self) -> int:
        """Return how many documents differ."""
        return len({*self.removed, *self.written, *self.redated})

    def is_worthwhile(self, stamp: Stamp) -> bool:
        """Return whether a copy lacks documents, or has a stamp so old that the store may soon forget removals."""
        return bool(self.pending) or self.generation - stamp.generation >= _OLD_GENERATIONS


def plan_replay(store: Store, tool_id: int, index: str, stamp: Stamp | None, *, with_dates: bool = False) -> Replay:
    """Return the changes since a copy was stamped; all documents if there is no copy or it has another history.

    With `with_dates`, documents of which only the date changed are included.
    """
    with store.read_transaction():
        generation = store.generation()
        if stamp is not None and stamp.generation <= generation:
            is_known = stamp.nonce in store.changes.index_note(tool_id, _note_name(index, stamp.copy)).split()
            removed = store.changes.removed_since(tool_id, stamp.generation) if is_known else None
            if removed is not None:
                written = store.changes.documents_since(tool_id, stamp.generation)
                redated = store.changes.redated_since(tool_id, stamp.generation) if with_dates else []
                return Replay(generation, False, removed, written, sorted(set(redated).difference(written)))
        return Replay(generation, True, (), store.changes.documents_since(tool_id, 0))


def announce_copy(store: Store, tool_id: int, index: str) -> Stamp:
    """Note in the library that a copy is about to be filled from scratch, and return its first stamp."""
    stamp = Stamp(0, secrets.token_hex(8), secrets.token_hex(8))
    store.changes.set_index_note(tool_id, _note_name(index, stamp.copy), stamp.nonce)
    return stamp


def announce_change(store: Store, tool_id: int, index: str, stamp: Stamp, generation: int) -> Stamp:
    """Note in the library that a copy is about to change, and return the stamp that it will have."""
    nonce = secrets.token_hex(8)
    store.changes.set_index_note(tool_id, _note_name(index, stamp.copy), f"{stamp.nonce} {nonce}")
    return Stamp(generation, stamp.copy, nonce)


def forget_copy(store: Store, tool_id: int, index: str, stamp: Stamp) -> None:
    """Delete what the library has noted about a copy that no longer exists."""
    store.changes.set_index_note(tool_id, _note_name(index, stamp.copy), "")


def _note_name(index: str, copy: str) -> str:
    return f"{index} {copy}"


def batches(values: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """Split values into batches."""
    return (values[start : start + size] for start in range(0, len(values), size))
