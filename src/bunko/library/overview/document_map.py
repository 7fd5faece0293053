"""Lay out the documents of some tools by their vectors, once for each state of these tools, and keep the result."""

from __future__ import annotations

import hashlib
import json
import threading
from collections import OrderedDict, defaultdict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bunko.library.overview.layout import Layout, align_layout, lay_out
from bunko.runtime.array_file import DamagedArrayFile, load_arrays, save_arrays
from bunko.types import Tool
from bunko.types.records import NO_FILTER

if TYPE_CHECKING:
    import numpy.typing as npt

    from bunko.library.overview.layout import LayoutName
    from bunko.protocols import Store
    from bunko.types.records import ListedDocument

_FORMAT_VERSION = 1
_MAX_IN_MEMORY = 4  # a map of 20,000 documents takes a few megabytes
_MAX_FILES = 8  # tokens with other rights have other maps


@dataclass(frozen=True, slots=True)
class DocumentMap:
    """Where each document of some tools is; those without vectors of the same embedder are nowhere."""

    layout: Layout
    names: list[tuple[int, str]]  # tool id and URI of each row of the layout
    embedder: str
    stamp: list[list[int]]  # tool ids and their generations

    def positions(self) -> dict[tuple[int, str], tuple[float, float]]:
        """Return the position of each document by the id of its tool and its URI."""
        return {name: (x, y) for name, (x, y) in zip(self.names, self.layout.positions.tolist(), strict=True)}


@dataclass(frozen=True, slots=True)
class MapPoint:
    """A document on a map."""

    tool: Tool
    document: ListedDocument
    x: float
    y: float


class DocumentMaps:
    """The maps of one library: in memory, and in files from which another process goes on."""

    def __init__(self, store: Store, folder: Path | None) -> None:
        self._store, self._folder = store, folder
        self._maps: OrderedDict[str, DocumentMap] = OrderedDict()
        self._lock = threading.Lock()

    def build(self, tools: Sequence[Tool], layout: LayoutName) -> DocumentMap:
        """Return the map of some tools, computed only if their documents have changed since the last time.

        It depends on nothing else, so that it tells nothing of other tools.
        """
        with self._lock, self._store.read_transaction():
            embedder, mapped = self._same_embedder(tools)
            stamp = [[tool.id, self._store.changes.last_generation(tool.id)] for tool in mapped]
            key = _key(layout, embedder, [tool.id for tool in mapped])
            last = self._maps.get(key) or self._load(key, embedder)
            if last is None or last.stamp != stamp:
                last = self._compute(layout, embedder, mapped, stamp, last)
                self._save(key, last)
            self._maps[key] = last
            self._maps.move_to_end(key)
            while len(self._maps) > _MAX_IN_MEMORY:
                self._maps.popitem(last=False)
            return last

    def points(self, tools: Sequence[Tool], layout: LayoutName) -> tuple[list[MapPoint], int]:
        """Return the documents of some tools with their positions, and how many have none."""
        positions = self.build(tools, layout).positions()
        points, count = [], 0
        for tool in tools:
            for document in self._store.documents.find(tool.id, NO_FILTER):
                count += 1
                if position := positions.get((tool.id, document.uri)):
                    points.append(MapPoint(tool, document, *position))
        return points, count - len(points)

    def _same_embedder(self, tools: Sequence[Tool]) -> tuple[str, list[Tool]]:
        """Return the embedder with the most vectors and its tools: others give numbers of another meaning."""
        by_embedder: defaultdict[str, list[Tool]] = defaultdict(list)
        for tool in tools:
            if tool.built.embedder not in (None, "none"):
                by_embedder[str(tool.built.embedder)].append(tool)
        counts = {
            name: sum(self._store.stats.totals(tool.id).vectors for tool in owners)
            for name, owners in by_embedder.items()
        }
        if not any(counts.values()):
            return "", []
        name = max(sorted(counts), key=counts.__getitem__)
        return name, sorted(by_embedder[name], key=lambda tool: tool.id)

    def _compute(
        self, layout: LayoutName, embedder: str, tools: Sequence[Tool], stamp: list[list[int]], last: DocumentMap | None
    ) -> DocumentMap:
        names: list[tuple[int, str]] = []
        parts: list[npt.NDArray[np.float32]] = []
        for tool in tools:
            uris, means = self._store.vectors.document_means(tool.id)
            if not uris or (parts and means.shape[1] != parts[0].shape[1]):
                continue
            names += [(tool.id, uri) for uri in uris]
            parts.append(means)
        computed = lay_out(np.concatenate(parts) if parts else np.zeros((0, 0), np.float32), layout)
        if last is not None:
            computed = align_layout(computed, names, last.layout, last.names)
        return DocumentMap(computed, names, embedder, stamp)

    def _path(self, key: str) -> Path:
        assert self._folder is not None
        # Another library may keep its files in the same folder.
        return self._folder / f"{self._store.id[:12]}-map-{key}.arrays"

    def _save(self, key: str, computed: DocumentMap) -> None:
        """Keep a map for other processes, if the folder can be written."""
        if self._folder is None or not computed.names:
            return
        layout = computed.layout
        arrays: dict[str, Any] = {
            "positions": layout.positions, "mean": layout.mean, "axes": layout.axes,
            "names": np.frombuffer(json.dumps(computed.names).encode(), np.uint8),
        }  # fmt: skip
        with suppress(OSError):
            save_arrays(
                self._path(key), arrays, format_version=_FORMAT_VERSION, stamp={"tools": computed.stamp}, durable=False,
                mode=self._store.files.mode(),
            )  # fmt: skip
            self._delete_old_files(self._folder)

    def _delete_old_files(self, folder: Path) -> None:
        """Delete all files but the newest, and those that name documents of a tool that was deleted."""
        tool_ids = {tool.id for tool in self._store.tools.all()}
        files = sorted(folder.glob(f"{self._store.id[:12]}-map-*.arrays"), key=_modified, reverse=True)
        for position, path in enumerate(files):
            if position >= _MAX_FILES or not _tool_ids(path) <= tool_ids:
                path.unlink(missing_ok=True)

    def _load(self, key: str, embedder: str) -> DocumentMap | None:
        """Return a map that was kept, or None; a damaged one is computed again."""
        if self._folder is None:
            return None
        try:
            arrays, stamp = load_arrays(self._path(key), format_version=_FORMAT_VERSION, verify_checksum=True)
            return _read_map(arrays, stamp, embedder)
        except (OSError, DamagedArrayFile, ValueError, KeyError, TypeError, RecursionError):
            return None


def _read_map(arrays: dict[str, npt.NDArray[Any]], stamp: dict[str, Any], embedder: str) -> DocumentMap:
    """Return the map that a file holds; raise an error if it holds anything else."""
    # Copies: the file may be replaced while the map is in use.
    positions, mean, axes = (np.array(arrays[name], np.float32) for name in ("positions", "mean", "axes"))
    names = [(int(tool_id), str(uri)) for tool_id, uri in json.loads(arrays["names"].astype(np.uint8).tobytes())]
    fits_axes = mean.ndim == 1 and (axes.shape == (len(mean), 2) or len(mean) == len(axes) == 0)
    if positions.shape != (len(names), 2) or not fits_axes or not all(np.isfinite(a).all() for a in (positions, axes)):
        raise ValueError(positions.shape)
    return DocumentMap(Layout(positions, mean, axes), names, embedder, [[int(a), int(b)] for a, b in stamp["tools"]])


def _tool_ids(path: Path) -> set[int]:
    """Return the tools of a file; none if it is damaged."""
    try:
        _, stamp = load_arrays(path, format_version=_FORMAT_VERSION, verify_checksum=False)
        return {int(tool_id) for tool_id, _ in stamp["tools"]}
    except (DamagedArrayFile, ValueError, KeyError, TypeError):
        return set()


def _key(layout: str, embedder: str, tool_ids: list[int]) -> str:
    return hashlib.sha256(json.dumps([layout, embedder, tool_ids]).encode()).hexdigest()[:16]


def _modified(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
