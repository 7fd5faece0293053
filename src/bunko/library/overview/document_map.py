"""Map the documents of some tools by their vectors and name its areas, once for each state of these tools; keep it."""

from __future__ import annotations

import hashlib
import json
import threading
import zlib
from collections import OrderedDict, defaultdict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bunko.library.overview.areas import LANGUAGES, Area, Text, find_areas
from bunko.library.overview.layout import Layout, lay_out
from bunko.runtime.array_file import DamagedArrayFile, load_arrays, save_arrays
from bunko.text.language import detect_language
from bunko.types import Tool
from bunko.types.records import NO_FILTER

if TYPE_CHECKING:
    import numpy.typing as npt

    from bunko.protocols import Store
    from bunko.types.records import ListedDocument

_FORMAT_VERSION = 2
_MAX_IN_MEMORY = 4  # a map of 20,000 documents takes a few megabytes
_MAX_FILES = 8  # tokens with other rights have other maps
_ALL = 10**9  # documents
_NOTHING = np.zeros((0, 0), np.float32)


@dataclass(frozen=True, slots=True)
class DocumentMap:
    """Where each document of some tools is; those without vectors of the same embedder are nowhere."""

    layout: Layout
    names: list[tuple[int, str]]  # tool id and URI of each row of the layout
    embedder: str
    stamp: list[list[int]]  # tool ids and their generations
    hashes: npt.NDArray[np.uint32]  # of the vector of each row, to know which have changed
    languages: npt.NDArray[np.uint8]  # of each row, by its place in `LANGUAGES`
    areas: list[Area]
    area_of: npt.NDArray[np.int32]  # the coarsest area of each row, or -1

    def rows(self) -> dict[tuple[int, str], int]:
        """Return the row of each document by the id of its tool and its URI."""
        return {name: row for row, name in enumerate(self.names)}


@dataclass(frozen=True, slots=True)
class MapPoint:
    """A document on a map."""

    tool: Tool
    document: ListedDocument
    x: float
    y: float
    language: str = ""
    area: int = -1


class DocumentMaps:
    """The maps of one library: in memory, and in files from which another process goes on."""

    def __init__(self, store: Store, folder: Path | None) -> None:
        self._store, self._folder = store, folder
        self._maps: OrderedDict[str, DocumentMap] = OrderedDict()
        self._lock = threading.Lock()

    def build(self, tools: Sequence[Tool]) -> DocumentMap:
        """Return the map of some tools, computed only if their documents have changed since the last time.

        It depends on nothing else, so that it tells nothing of other tools.
        """
        with self._lock:
            with self._store.read_transaction():  # for as long as documents are read, not while they are placed
                embedder, mapped = self._same_embedder(tools)
                stamp = [[tool.id, self._store.changes.last_generation(tool.id)] for tool in mapped]
                key = _key(embedder, [tool.id for tool in mapped])
                last = self._maps.get(key) or self._load(key, embedder)
                is_current = last is not None and last.stamp == stamp
                names, vectors, texts = ([], _NOTHING, []) if is_current else self._read(mapped)
            if last is None or not is_current:
                last = _compute(embedder, stamp, names, vectors, texts, last or self._part(embedder, stamp))
                self._save(key, last)
            self._maps[key] = last
            self._maps.move_to_end(key)
            while len(self._maps) > _MAX_IN_MEMORY:
                self._maps.popitem(last=False)
            return last

    def points(self, tools: Sequence[Tool]) -> tuple[list[MapPoint], list[Area], int]:
        """Return the documents of some tools with their positions, the areas, and how many have no position."""
        computed = self.build(tools)
        rows = computed.rows()
        positions, area_of = computed.layout.positions.tolist(), computed.area_of.tolist()
        points, count = [], 0
        for tool in tools:
            for document in self._store.documents.find(tool.id, NO_FILTER):
                count += 1
                if (row := rows.get((tool.id, document.uri))) is not None:
                    language = LANGUAGES[computed.languages[row]]
                    x, y = positions[row]
                    points.append(MapPoint(tool, document, x, y, language, area_of[row]))
        return points, computed.areas, count - len(points)

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

    def _read(self, tools: Sequence[Tool]) -> tuple[list[tuple[int, str]], npt.NDArray[np.float32], list[Text]]:
        """Return the documents that have vectors, their mean vectors, and what tells their subjects and languages."""
        names: list[tuple[int, str]] = []
        parts: list[npt.NDArray[np.float32]] = []
        texts: list[Text] = []
        for tool in tools:
            uris, means = self._store.vectors.document_means(tool.id)
            if not uris or (parts and means.shape[1] != parts[0].shape[1]):
                continue
            summaries = {document.uri: document for document in self._store.stats.list_documents(tool.id, limit=_ALL)}
            names += [(tool.id, uri) for uri in uris]
            parts.append(means)
            for uri in uris:
                title, beginning = summaries[uri].title, summaries[uri].beginning
                texts.append(Text(title, beginning, detect_language(f"{title}\n{beginning}")))
        return names, np.concatenate(parts) if parts else _NOTHING, texts

    def _part(self, embedder: str, stamp: list[list[int]]) -> DocumentMap | None:
        """Return the map of the most of these tools, as it was before one was added: its documents stay where they are.

        None of a tool that is not among them: it would show where documents of others were.
        """
        tool_ids = {tool_id for tool_id, _ in stamp}
        parts = [
            part for part in self._maps.values()
            if part.embedder == embedder and tool_ids.issuperset(tool_id for tool_id, _ in part.stamp)
        ]  # fmt: skip
        return max(parts, key=lambda part: len(part.names), default=None)

    def _path(self, key: str) -> Path:
        assert self._folder is not None
        # Another library may keep its files in the same folder.
        return self._folder / f"{self._store.id[:12]}-map-{key}.arrays"

    def _save(self, key: str, computed: DocumentMap) -> None:
        """Keep a map for other processes, if the folder can be written."""
        if self._folder is None or not computed.names:
            return
        texts = [computed.names, [astuple(area) for area in computed.areas]]
        arrays: dict[str, Any] = {
            **computed.layout._asdict(),
            "hashes": computed.hashes, "languages": computed.languages, "area_of": computed.area_of,
            "texts": np.frombuffer(json.dumps(texts).encode(), np.uint8),
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
        except (OSError, DamagedArrayFile, ValueError, KeyError, TypeError, IndexError, RecursionError):
            return None


def _compute(
    embedder: str,
    stamp: list[list[int]],
    names: list[tuple[int, str]],
    vectors: npt.NDArray[np.float32],
    texts: Sequence[Text],
    last: DocumentMap | None,
) -> DocumentMap:
    """Return a map on which documents stay where they were on the last one, unless their vectors have changed."""
    hashes = np.array([zlib.crc32(vector.tobytes()) for vector in vectors], np.uint32)
    earlier = None
    if last is not None and last.names:
        rows = last.rows()
        earlier = np.full((len(names), 2), np.nan, np.float32)
        for row, name in enumerate(names):
            last_row = rows.get(name)
            if last_row is not None and last.hashes[last_row] == hashes[row]:
                earlier[row] = last.layout.positions[last_row]
    layout = lay_out(vectors, earlier)
    areas, area_of = find_areas(layout.positions, texts)
    languages = np.array([LANGUAGES.index(text.language) for text in texts], np.uint8)
    return DocumentMap(layout, names, embedder, stamp, hashes, languages, areas, area_of.astype(np.int32))


def _read_map(arrays: dict[str, npt.NDArray[Any]], stamp: dict[str, Any], embedder: str) -> DocumentMap:
    """Return the map that a file holds; raise an error if it holds anything else."""
    # Copies: the file may be replaced while the map is in use.
    layout = Layout(**{name: np.array(arrays[name]) for name in Layout._fields})
    hashes, languages, area_of = (np.array(arrays[name]) for name in ("hashes", "languages", "area_of"))
    names, areas = json.loads(arrays["texts"].astype(np.uint8).tobytes())
    count, columns = len(names), layout.axes.shape[1]
    shapes = [array.shape for array in (*layout, hashes, languages, area_of)]
    expected = [(count, 2), layout.mean.shape, (len(layout.mean), columns), (count, columns), *[(count,)] * 3]
    if shapes != expected or not all(np.isfinite(array).all() for array in layout):
        raise ValueError(shapes)
    if languages.max(initial=0) >= len(LANGUAGES) or area_of.max(initial=-1) >= len(areas):
        raise ValueError(len(areas))
    return DocumentMap(
        layout, [(int(tool_id), str(uri)) for tool_id, uri in names], embedder,
        [[int(tool_id), int(generation)] for tool_id, generation in stamp["tools"]],
        hashes, languages, [Area(*area) for area in areas], area_of,
    )  # fmt: skip


def _tool_ids(path: Path) -> set[int]:
    """Return the tools of a file; none if it is damaged."""
    try:
        _, stamp = load_arrays(path, format_version=_FORMAT_VERSION, verify_checksum=False)
        return {int(tool_id) for tool_id, _ in stamp["tools"]}
    except (DamagedArrayFile, ValueError, KeyError, TypeError):
        return set()


def _key(embedder: str, tool_ids: list[int]) -> str:
    return hashlib.sha256(json.dumps([embedder, tool_ids]).encode()).hexdigest()[:16]


def _modified(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
