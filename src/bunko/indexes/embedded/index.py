"""Open the index of each tool at first use, and give views over several tools."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from bunko.indexes.embedded.tool_index import ToolIndex
from bunko.indexes.embedded.view import EmbeddedView
from bunko.indexes.options import EngineOptions
from bunko.protocols import Store
from bunko.runtime.observer import NO_OBSERVER, Observer
from bunko.types.records import IndexState


class EmbeddedIndex:
    """The in-process index of a store's tools; its files are stored in `folder`, or nowhere if that is None."""

    kind, location = "embedded", ""

    def __init__(self, store: Store, folder: Path | None) -> None:
        self._store, self._folder = store, folder
        self._by_tool_id: dict[int, ToolIndex] = {}
        # The tools and snapshots of the last view over several tools, the tools without vectors, and that view.
        self._last_view: tuple[tuple[list[tuple[int, EmbeddedView]], frozenset[int]], EmbeddedView] | None = None

    def view(self, tool_ids: Sequence[int], *, without_vectors: Sequence[int] = ()) -> EmbeddedView:
        """Return the state of some tools that matches the store; call it inside the store's `read_transaction`.

        The vectors of the tools `without_vectors`, which come from another embedder, are left out.
        """
        snapshots = {tool_id: self._index_of(tool_id).snapshot() for tool_id in tool_ids}
        if len(snapshots) == 1 and not without_vectors:
            return next(iter(snapshots.values()))
        # A new view has to count its rows and terms again: the last one serves until one of its snapshots changes.
        parts, last = (list(snapshots.items()), frozenset(without_vectors)), self._last_view
        if snapshots and last is not None and last[0] == parts:
            return last[1]
        views = [
            segment_view.without_vectors() if tool_id in without_vectors else segment_view
            for tool_id, snapshot in snapshots.items()
            for segment_view in snapshot.views
        ]
        view = EmbeddedView(views, self._store.generation(), self._store)
        self._last_view = parts, view
        return view

    def sync(self, tool_id: int, observer: Observer = NO_OBSERVER) -> EmbeddedView:
        """Bring a tool up to date with the store, write its file if that lacks enough rows, and return its state."""
        index = self._index_of(tool_id)
        with self._store.read_transaction():
            snapshot = index.snapshot(is_saved_next=True)
        index.save()
        return snapshot

    def unsaved_tools(self) -> list[int]:
        """Return the tools without a usable file, whose index this process has built."""
        return [tool_id for tool_id, index in list(self._by_tool_id.items()) if index.is_unsaved()]

    def state(self, tool_id: int) -> IndexState:
        """Return the state of the store: the rows that the file of a tool lacks are added when it is read."""
        return IndexState(self._store.generation())

    def storage_bytes(self, tool_id: int | None = None) -> int:
        """Return the size of the files of a tool, or of all files in the folder."""
        if self._folder is None:
            return 0
        # File names contain the library's id, because another library may keep its files in the same folder.
        pattern = "*.segment" if tool_id is None else f"{self._store.id[:12]}-tool{tool_id}-*.segment"
        total = 0
        for path in self._folder.glob(pattern):
            with suppress(OSError):  # another process may have replaced it
                total += path.stat().st_size if path.is_file() else 0
        return total

    def check(self, tool_id: int) -> str:
        """Return the problem of the file of a tool, or an empty string."""
        return self._index_of(tool_id).check_file()

    def repair(self, tool_id: int) -> bool:
        """Rebuild the index of a tool if its file is damaged; return whether it was."""
        return self._index_of(tool_id).repair()

    def drop(self, tool_id: int, *, copy_only: bool = False) -> None:
        """Delete the file of a tool and its index."""
        self._index_of(tool_id).discard()
        self._by_tool_id.pop(tool_id, None)
        self._last_view = None

    def close(self) -> None:
        """Forget the files, which are mapped and closed with the last view."""
        self._by_tool_id.clear()
        self._last_view = None

    def _index_of(self, tool_id: int) -> ToolIndex:
        index = self._by_tool_id.get(tool_id)
        # Of two threads that are first, both get the index of one: it has a lock and remembers what it has loaded.
        return index or self._by_tool_id.setdefault(tool_id, ToolIndex(self._store, tool_id, self._folder))


def build(store: Store, folder: Path | None, options: EngineOptions) -> EmbeddedIndex:
    """Return the embedded index of a store."""
    return EmbeddedIndex(store, folder)
