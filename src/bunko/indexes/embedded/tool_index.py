"""A store in, a snapshot of its newest state out: follows the store, and keeps a derived file so as to start fast."""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bunko.errors import LibraryError
from bunko.indexes.embedded import segment as segments
from bunko.indexes.embedded.segment import DamagedArrayFile, Segment
from bunko.indexes.embedded.snapshot import SegmentView, Snapshot
from bunko.protocols import Store
from bunko.records import StoredChunk
from bunko.text import analyzer, ngrams

if TYPE_CHECKING:
    import numpy.typing as npt

_log = logging.getLogger("bunko.index")

# Rows to index at a time, and the characters of their texts: sorting more at once costs memory and gains nothing, and
# a character takes up to sixty bytes while its grams are found.
_BATCH_ROWS, _BATCH_CHARS = 4096, 1_500_000
# So many rows are kept in memory while an index is made, about 2 kB each; then they are put aside in a file.
_MAX_ROWS_IN_MEMORY = 32_768
# With more parts than this a query spends its time on bookkeeping.
_MAX_VIEWS = 4
# A start replays what the file lacks, at about 50 µs a row; more than this or 2 % is worth a new file.
_MIN_UNSAVED_ROWS = 256
# A half-written file this old was left by a process that was killed.
_ABANDONED_SECONDS = 3600
# Removals to remember before they are forgotten with a new file.
_MAX_REMOVALS = 10_000


class ToolIndex:
    """One tool's index: asked for a snapshot, it first catches up with its store."""

    def __init__(self, store: Store, tool_id: int, folder: Path | None) -> None:
        self._store, self._tool_id, self._folder = store, tool_id, folder
        self._lock = threading.Lock()
        self._snapshot: Snapshot | None = None
        self._saved_rows = self._saved_generation = 0
        self.rebuild_reason = ""  # why the derived file could not be used, if there was one

    def snapshot(self) -> Snapshot:
        """Return the newest state; call it inside the store's `reading`, and what is read there fits it."""
        with self._lock:
            generation = self._store.generation()
            if self._snapshot is None:
                self._snapshot = self._load(generation)
            if self._snapshot.generation != generation:
                self._snapshot = self._catch_up(self._snapshot, generation)
            return self._snapshot

    def save(self) -> None:
        """Write the derived file if what it lacks has grown; losing it loses nothing, so failing is no error."""
        snapshot = self._snapshot
        if self._folder is None or snapshot is None or not self._is_worth_saving(snapshot):
            return
        # The library names the one file that is true to it: a copy of an older library must not take a newer file.
        nonce = secrets.token_hex(8)
        path = self._folder / f"{self._prefix()}{snapshot.generation}.segment"
        try:
            _merge_into(path, snapshot.views, self._stamp(snapshot.generation, nonce))
            loaded = segments.load(path)
            self._store.set_index_file(self._tool_id, nonce)
        except (OSError, DamagedArrayFile, LibraryError) as error:
            _log.warning("The index file could not be written (%s); searching goes on without it.", error)
            return
        with self._lock:
            if self._snapshot is snapshot:
                self._snapshot = Snapshot([SegmentView(loaded)], snapshot.generation)
            self._saved_rows, self._saved_generation = len(loaded), snapshot.generation
        for old in self._files():
            if _file_generation(old) < snapshot.generation:
                with suppress(OSError):  # another process may have it open where that prevents removal
                    old.unlink()
        for left in self._folder.glob(f"{self._prefix()}*.segment.*.tmp"):
            with suppress(OSError):
                if time.time() - left.stat().st_mtime > _ABANDONED_SECONDS:
                    left.unlink()
        if len(self._store.removed_since(self._tool_id, 0) or ()) > _MAX_REMOVALS:
            self._store.prune_removals(self._tool_id, snapshot.generation)

    def discard(self) -> None:
        """Remove the derived file."""
        for path in self._files():
            with suppress(OSError):
                path.unlink()

    def repair(self) -> bool:
        """Remove the derived file if it is not what was written, and start anew; say whether that was so."""
        if not self.check_file():
            return False
        self.discard()
        with self._lock:
            self._snapshot, self._saved_rows = None, 0
        return True

    def check_file(self) -> str:
        """Return what is wrong with the derived file, or nothing."""
        for path in self._files():
            try:
                segments.load(path, check=True)
            except (DamagedArrayFile, OSError) as error:
                return str(error)
        return ""

    def _is_worth_saving(self, snapshot: Snapshot) -> bool:
        fresh = sum(len(part.segment) for part in snapshot.views[1:] if self._saved_rows)
        fresh += 0 if self._saved_rows else snapshot.size
        dead = sum(len(part.segment) - part.size() for part in snapshot.views)
        if not self._saved_rows:
            return fresh > 0
        return fresh + dead > max(_MIN_UNSAVED_ROWS, self._saved_rows // 50)

    def _prefix(self) -> str:
        return f"{self._store.id[:12]}-tool{self._tool_id}-"

    def _files(self) -> list[Path]:
        if self._folder is None:
            return []
        # Programs that synchronise folders put copies with longer names beside; they are none of ours.
        found = [path for path in self._folder.glob(f"{self._prefix()}*.segment") if _file_generation(path) >= 0]
        return sorted(found, key=_file_generation, reverse=True)

    def _stamp(self, generation: int, nonce: str) -> dict[str, Any]:
        return {
            "library": self._store.id,
            "nonce": nonce,
            "tool": self._tool_id,
            "generation": generation,
            "words": analyzer.VERSION,
            "grams": ngrams.VERSION,
        }

    def _load(self, generation: int) -> Snapshot:
        for path in self._files():
            try:
                loaded = segments.load(path)
            except FileNotFoundError:
                continue
            except (DamagedArrayFile, OSError, KeyError, ValueError, TypeError) as error:
                self.rebuild_reason = (
                    str(error) if isinstance(error, DamagedArrayFile) else f"{path.name} is unusable ({error!r})"
                )
                _log.warning("%s: rebuilding the index from the library.", self.rebuild_reason)
                continue
            stamped = loaded.stamp.get("generation", -1)
            if loaded.stamp != self._stamp(stamped, self._store.index_file(self._tool_id)) or stamped > generation:
                continue
            self._saved_rows, self._saved_generation = len(loaded), stamped
            return Snapshot([SegmentView(loaded)], stamped)
        return Snapshot([], 0)

    def _catch_up(self, old: Snapshot, generation: int) -> Snapshot:
        dead = self._store.removed_since(self._tool_id, old.generation)
        if dead is None:
            old, self._saved_rows = Snapshot([], 0), 0
            dead = []
        parts = [_without_documents(part, dead) for part in old.views]
        if self._saved_rows and parts and not parts[0].size():
            self._saved_rows = 0  # nothing of the file is true any more
        # What is wholly dead may have vectors of another size than those that come now.
        parts = [part for part in parts if part.size()]
        rows = self._store.changes_since(self._tool_id, old.generation)
        fresh: list[SegmentView] = []
        for batch in _batch_rows(rows):
            size = next((len(row.vector) for row in batch if row.vector is not None), 0)
            fresh.append(SegmentView(segments.build(batch, size, {})))
            if _count_rows(fresh) >= _MAX_ROWS_IN_MEMORY:
                parts.append(self._merge_to_temp_file(fresh))
                fresh = []
        parts += fresh
        if len(parts) > _MAX_VIEWS:
            # The first part is the mapped file and stays.
            first = 1 if self._saved_rows else 0
            rest = parts[first:]
            parts = [
                *parts[:first],
                _merge_views(rest) if _count_rows(rest) < _MAX_ROWS_IN_MEMORY else self._merge_to_temp_file(rest),
            ]
        return Snapshot(parts, generation)

    def _merge_to_temp_file(self, views: list[SegmentView]) -> SegmentView:
        """Join parts in a file that goes when nobody has it open any more; in memory where there is no room for one."""
        if self._folder is None:
            return _merge_views(views)
        path = self._folder / f"{self._prefix()}aside.segment.{secrets.token_hex(4)}.tmp"
        try:
            _merge_into(path, views, {}, durable=False)
            return SegmentView(segments.load(path))
        except (OSError, DamagedArrayFile):
            return _merge_views(views)
        finally:
            with suppress(OSError):  # where an open file cannot be removed, the next save does it
                path.unlink()


def _count_rows(views: list[SegmentView]) -> int:
    return sum(len(part.segment) for part in views)


def _merge_views(views: list[SegmentView]) -> SegmentView:
    views = _equalize_dimensions(views)
    return SegmentView(segments.merge([part.segment for part in views], [part.alive for part in views], {}))


def _merge_into(path: Path, views: list[SegmentView], stamp: dict[str, Any], *, durable: bool = True) -> None:
    views = _equalize_dimensions(views)
    segments.merge_into(path, [part.segment for part in views], [part.alive for part in views], stamp, durable=durable)


def _equalize_dimensions(views: list[SegmentView]) -> list[SegmentView]:
    sizes = {part.segment.vectors.shape[1] for part in views}
    return (
        views
        if len(sizes) == 1
        else [SegmentView(_pad_vectors(part.segment, max(sizes)), part.alive) for part in views]
    )


def _batch_rows(rows: Iterable[StoredChunk]) -> Iterator[list[StoredChunk]]:
    batch: list[StoredChunk] = []
    size = 0
    for row in rows:
        batch.append(row)
        size += len(row.text)
        if len(batch) >= _BATCH_ROWS or size >= _BATCH_CHARS:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _file_generation(path: Path) -> int:
    number = path.stem.rpartition("-")[2]
    return int(number) if number.isascii() and number.isdigit() else -1


def _without_documents(view: SegmentView, document_ids: list[int]) -> SegmentView:
    if not document_ids:
        return view
    gone = np.isin(view.segment.document_ids, np.array(document_ids, np.int64))
    if not gone.any():
        return view
    alive: npt.NDArray[np.bool_] = ~gone if view.alive is None else view.alive & ~gone
    return SegmentView(view.segment, alive)


def _pad_vectors(segment: Segment, dimension: int) -> Segment:
    """Give a segment without vectors rows of zeros, so that it can stand beside one that has some."""
    if segment.vectors.shape[1] == dimension:
        return segment
    return replace(segment, vectors=np.zeros((len(segment), dimension), np.float32))
