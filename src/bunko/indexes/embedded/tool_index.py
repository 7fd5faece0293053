"""Keep the index of a tool up to date with its store, and cache it in a file for a fast start."""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from bunko.errors import LibraryDamaged, LibraryError, rebuild_hint
from bunko.indexes.embedded import segment as segments
from bunko.indexes.embedded.codes import no_codes
from bunko.indexes.embedded.segment import DamagedArrayFile, Segment
from bunko.indexes.embedded.snapshot import SegmentView
from bunko.indexes.embedded.view import EmbeddedView
from bunko.protocols import Store
from bunko.runtime.array_file import OtherArrayFormat
from bunko.text import analyzer, ngrams
from bunko.types.records import StoredChunk

_log = logging.getLogger("bunko.index")

# Rows indexed at a time, and characters of their texts: sorting more at once costs memory and gains nothing, and
# a character takes up to sixty bytes while its grams are extracted.
BATCH_ROWS, _BATCH_CHARS = 4096, 1_500_000
# Rows held in memory while an index is built, about 2 kB each; beyond that they move to a temporary file.
MAX_ROWS_IN_MEMORY = 32_768
# With more segments than this, a query spends its time on bookkeeping.
_MAX_VIEWS = 4
# Opening an index replays the rows its file lacks, at about 50 µs each; more than this or 2 % justify a new file.
_MIN_UNSAVED_ROWS = 256
# A half-written file this old was left behind by a killed process.
_ABANDONED_SECONDS = 3600
# Removals recorded in the store before a new file makes them unnecessary.
_MAX_REMOVALS = 10_000
# States kept for threads whose read transaction began before a change. One that is not kept is built from the file.
_MAX_OLDER_SNAPSHOTS = 2


class ToolIndex:
    """The index of one tool, brought up to date with its store whenever a snapshot is taken."""

    def __init__(self, store: Store, tool_id: int, folder: Path | None) -> None:
        self._store, self._tool_id, self._folder = store, tool_id, folder
        self._lock = threading.Lock()
        self._snapshot: EmbeddedView | None = None
        self._saved_rows = 0
        self._older_snapshots: deque[EmbeddedView] = deque(maxlen=_MAX_OLDER_SNAPSHOTS)
        self.rebuild_reason = ""  # why an existing index file could not be used

    def snapshot(self, *, is_saved_next: bool = False) -> EmbeddedView:
        """Return the state of the store's current `read_transaction`; outside of one, reads may not match it.

        Before a `save`, which merges all segments, they are not merged for the searches meanwhile.
        """
        generation, snapshot = self._store.generation(), self._snapshot
        if snapshot is not None and snapshot.generation == generation:
            return snapshot  # also while another thread, which reads a newer state, catches up with it
        with self._lock:
            snapshot, saved_rows = self._snapshot, self._saved_rows
            if snapshot is None:
                snapshot, saved_rows = self._load(generation)
            elif snapshot.generation > generation:
                return self._older_snapshot(generation)
            if snapshot.generation != generation:
                if self._snapshot is not None:
                    self._older_snapshots.append(snapshot)
                snapshot, saved_rows = self._catch_up(snapshot, saved_rows, generation, is_saved_next=is_saved_next)
            self._snapshot, self._saved_rows = snapshot, saved_rows
            return snapshot

    def _older_snapshot(self, generation: int) -> EmbeddedView:
        """Return the state of a thread whose transaction began before the newest snapshot was taken."""
        older = next((older for older in reversed(self._older_snapshots) if older.generation <= generation), None)
        snapshot, saved_rows = (older, self._saved_rows) if older is not None else self._load(generation)
        if snapshot.generation != generation:
            snapshot, _ = self._catch_up(snapshot, saved_rows, generation)
        return snapshot

    def is_unsaved(self) -> bool:
        """Return whether the whole index was built by this process, because no file of it could be used."""
        return bool(self._folder and self._snapshot and self._snapshot.size and not self._saved_rows)

    def save(self) -> None:
        """Write the index file if it lacks enough rows; a failure is only logged, as the file can be rebuilt."""
        snapshot = self._snapshot
        if snapshot is None or not self._is_worth_saving(snapshot.views, self._saved_rows):
            return
        if self._saved_rows and self._discard_if_wrong():  # a wrong file must not become part of the next one
            with self._store.read_transaction():
                snapshot = self.snapshot()
        assert self._folder is not None
        # The library records the nonce of its index file: a copy of an older library must not use a newer file.
        nonce = secrets.token_hex(8)
        path = self._folder / f"{self._prefix()}{snapshot.generation}.segment"
        try:
            self._merge_into(path, snapshot.views, self._stamp(snapshot.generation, nonce))
            loaded = segments.load(path)
            self._store.changes.set_index_file(self._tool_id, nonce)
        except (OSError, DamagedArrayFile, LibraryError) as error:
            _log.warning("Cannot write the index file (%s); searches continue without it.", error)
            return
        with self._lock:
            if self._snapshot is snapshot:
                self._snapshot = EmbeddedView([SegmentView(loaded)], snapshot.generation, self._store)
            self._saved_rows = len(loaded)
            self._older_snapshots.clear()
        for old_path in self._files():
            if _file_generation(old_path) < snapshot.generation:
                with suppress(OSError):  # on some systems an open file cannot be removed
                    old_path.unlink()
        for temp_path in self._folder.glob(f"{self._prefix()}*.segment.*.tmp"):
            with suppress(OSError):
                if time.time() - temp_path.stat().st_mtime > _ABANDONED_SECONDS:
                    temp_path.unlink()
        if len(self._store.changes.removed_since(self._tool_id, 0) or ()) > _MAX_REMOVALS:
            self._store.changes.prune_removals(self._tool_id, snapshot.generation)

    def discard(self) -> None:
        """Remove the index file."""
        for path in self._files():
            with suppress(OSError):
                path.unlink()

    def repair(self) -> bool:
        """Remove the index file if it is wrong, and rebuild the index; return whether it was wrong.

        Raise an error if the library itself is damaged: then no index can be right.
        """
        was_wrong = self._discard_if_wrong()
        if problem := self._store.check():
            raise LibraryDamaged(
                f"{self._store.location} is damaged: {problem}", hint=rebuild_hint(self._store.location)
            )
        return was_wrong

    def _discard_if_wrong(self) -> bool:
        if not self.check_file():
            return False
        self.discard()
        with self._lock:
            self._snapshot, self._saved_rows = None, 0
            self._older_snapshots.clear()
        return True

    def check_file(self) -> str:
        """Return the problem of the index file, or an empty string."""
        for path in self._files():
            try:
                segments.load(path, check=True)
            except (DamagedArrayFile, OSError) as error:
                return str(error)
        with self._store.read_transaction():
            view = self.snapshot()
            listed_ids = view.chunk_ids(view.rows())
            if sorted(listed_ids) != sorted(self._store.changes.chunk_ids(self._tool_id)):
                return "The index file lists other chunks than the library has"
        return ""

    def _is_worth_saving(self, views: Sequence[SegmentView], saved_rows: int) -> bool:
        if self._folder is None:
            return False
        if not saved_rows:
            return any(view.size() for view in views)
        unsaved_rows = sum(len(view.segment) for view in views[1:])
        removed_rows = sum(len(view.segment) - view.size() for view in views)
        return unsaved_rows + removed_rows > max(_MIN_UNSAVED_ROWS, saved_rows // 50)

    def _prefix(self) -> str:
        return f"{self._store.id[:12]}-tool{self._tool_id}-"

    def _files(self) -> list[Path]:
        if self._folder is None:
            return []
        # Programs that synchronise folders create copies with longer names; ignore them.
        paths = [path for path in self._folder.glob(f"{self._prefix()}*.segment") if _file_generation(path) >= 0]
        return sorted(paths, key=_file_generation, reverse=True)

    def _stamp(self, generation: int, nonce: str) -> dict[str, Any]:
        return {
            "library": self._store.id,
            "nonce": nonce,
            "tool": self._tool_id,
            "generation": generation,
            "words": analyzer.VERSION,
            "grams": ngrams.VERSION,
        }

    def _load(self, generation: int) -> tuple[EmbeddedView, int]:
        """Return the state of the newest file that is not newer than a generation, and how many rows it has."""
        for path in self._files():
            try:
                loaded = segments.load(path)
            except FileNotFoundError:
                continue
            except (DamagedArrayFile, OSError) as error:
                self.rebuild_reason = str(error)
                level = logging.DEBUG if isinstance(error, OtherArrayFormat) else logging.WARNING
                _log.log(level, "%s; rebuilding the index from the library.", self.rebuild_reason)
                continue
            file_generation = loaded.stamp.get("generation", -1)
            if (
                type(file_generation) is not int
                or loaded.stamp != self._stamp(file_generation, self._store.changes.index_file(self._tool_id))
                or file_generation > generation
            ):
                continue
            return EmbeddedView([SegmentView(loaded)], file_generation, self._store), len(loaded)
        return EmbeddedView([], 0), 0

    def _catch_up(
        self, old: EmbeddedView, saved_rows: int, generation: int, *, is_saved_next: bool = False
    ) -> tuple[EmbeddedView, int]:
        """Return the state of a later generation, and how many rows of its first segment are those of the file."""
        removed_ids = self._store.changes.removed_since(self._tool_id, old.generation)
        if removed_ids is None:
            old, saved_rows = EmbeddedView([], 0), 0
            removed_ids = []
        views = [_without_documents(view, removed_ids) for view in old.views]
        if saved_rows and views and not views[0].size():
            saved_rows = 0  # no row of the file is alive any more
        # Segments without live rows may have vectors of another dimension than the new rows.
        views = [view for view in views if view.size()]
        rows = self._store.changes.chunks_since(self._tool_id, old.generation)
        new_views: list[SegmentView] = []
        for batch in _batch_rows(rows):
            dimension = next((len(row.vector) for row in batch if row.vector is not None), 0)
            new_views.append(SegmentView(segments.build(batch, dimension, {})))
            if _count_rows(new_views) >= MAX_ROWS_IN_MEMORY:
                views.append(self._merge_to_temp_file(new_views))
                new_views = []
        views += new_views
        if len(views) > _MAX_VIEWS and not (is_saved_next and self._is_worth_saving(views, saved_rows)):
            # The first segment is the mapped file and stays.
            first = 1 if saved_rows else 0
            mergeable = views[first:]
            views = [
                *views[:first],
                _merge_views(mergeable)
                if _count_rows(mergeable) < MAX_ROWS_IN_MEMORY
                else self._merge_to_temp_file(mergeable),
            ]
        return EmbeddedView(views, generation, self._store), saved_rows

    def _merge_to_temp_file(self, views: list[SegmentView]) -> SegmentView:
        """Merge segments into a file that is deleted once it is closed; in memory if no file can be written."""
        if self._folder is None:
            return _merge_views(views)
        path = self._folder / f"{self._prefix()}aside.segment.{secrets.token_hex(4)}.tmp"
        try:
            self._merge_into(path, views, {}, durable=False)
            return SegmentView(segments.load(path))
        except (OSError, DamagedArrayFile):
            return _merge_views(views)
        finally:
            with suppress(OSError):  # if an open file cannot be removed, the next save removes it
                path.unlink()

    def _merge_into(self, path: Path, views: list[SegmentView], stamp: dict[str, Any], *, durable: bool = True) -> None:
        views, mode = _equalize_dimensions(views), self._store.files.mode()
        parts, alive = [view.segment for view in views], [view.alive for view in views]
        segments.merge_into(path, parts, alive, stamp, durable=durable, mode=mode)


def _count_rows(views: list[SegmentView]) -> int:
    return sum(len(view.segment) for view in views)


def _merge_views(views: list[SegmentView]) -> SegmentView:
    views = _equalize_dimensions(views)
    return SegmentView(segments.merge([view.segment for view in views], [view.alive for view in views], {}))


def _equalize_dimensions(views: list[SegmentView]) -> list[SegmentView]:
    dimensions = {view.segment.vectors.shape[1] for view in views}
    return (
        views
        if len(dimensions) == 1
        else [SegmentView(_pad_vectors(view.segment, max(dimensions)), view.alive) for view in views]
    )


def _batch_rows(rows: Iterable[StoredChunk]) -> Iterator[list[StoredChunk]]:
    batch: list[StoredChunk] = []
    chars = 0
    for row in rows:
        batch.append(row)
        chars += len(row.text)
        if len(batch) >= BATCH_ROWS or chars >= _BATCH_CHARS:
            yield batch
            batch, chars = [], 0
    if batch:
        yield batch


def _file_generation(path: Path) -> int:
    generation = path.stem.rpartition("-")[2]
    return int(generation) if generation.isascii() and generation.isdigit() else -1


def _without_documents(view: SegmentView, document_ids: list[int]) -> SegmentView:
    if not document_ids:
        return view
    is_removed = np.isin(view.segment.document_ids, np.array(document_ids, np.int64))
    return view.without_rows(is_removed) if is_removed.any() else view


def _pad_vectors(segment: Segment, dimension: int) -> Segment:
    """Return a segment with zero vectors if it has none, so that it can be merged with one that has vectors."""
    if segment.vectors.shape[1] == dimension:
        return segment
    return replace(
        segment,
        vectors=np.zeros((len(segment), dimension), np.float32),
        codes=no_codes(dimension),
    )
