"""Keeps a library in one SQLite file: many processes read it, one at a time writes, a kill loses nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bunko.failpoints import reach
from bunko.records import (
    Dated,
    Failed,
    Filter,
    Found,
    Kept,
    Listed,
    Prepared,
    Room,
    Spent,
    StoredChunk,
    StoredDocument,
    Totals,
    WebPage,
)
from bunko.stores.sqlite import cache, embeddings, export, generations, pages, reading, stats, tools, writing
from bunko.stores.sqlite.connection import File
from bunko.types import Entry, Known, Problem, Tool

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


class Sqlite:
    """A library in a file."""

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        self._file = File(path, read_only=read_only)
        self.id = str(self._file.rows("SELECT value FROM meta WHERE key = 'id'")[0][0])

    def reading(self) -> AbstractContextManager[None]:
        """Let everything that is read inside come from one state, whatever is written meanwhile."""
        return self._file.reading()

    def tools(self) -> list[Tool]:
        """Return all tools, by name."""
        return tools.tools(self._file)

    def put_tool(self, tool: Tool) -> Tool:
        """Add a tool, or replace the one of the same name; return it as stored."""
        with self._file.transaction() as connection:
            return tools.put(connection, tool)

    def ensure_tool(self, tool: Tool) -> None:
        """Add a tool unless there is one of its name, which stays as it is."""
        with self._file.transaction() as connection:
            tools.ensure(connection, tool)

    def mark(self, tool_id: int, *, built: dict[str, Any] | None = None, imported_at: str = "") -> None:
        """Note how a tool's index was made or when; what somebody else says of the tool meanwhile stays."""
        with self._file.transaction() as connection:
            tools.mark(connection, tool_id, built=built, imported_at=imported_at)

    def drop_tool(self, tool_id: int) -> None:
        """Remove a tool and all it holds."""
        with self._file.transaction() as connection:
            tools.drop(connection, tool_id)

    def swap(self, tool: Tool, shadow: Tool) -> int:
        """Let a tool hold what its shadow holds instead, in one step, and remove the shadow."""
        with self._file.transaction() as connection:
            return tools.swap(connection, tool, shadow)

    def adopt(self, tool: Tool, shadow: Tool) -> Tool:
        """Let a tool be as given and hold what a shadow holds, in one step; one of that name is replaced."""
        with self._file.transaction() as connection:
            return tools.adopt(connection, tool, shadow)

    def known(self, tool_id: int) -> dict[str, Known]:
        """Return what is remembered of each document, and of what failed, by uri."""
        return reading.known(self._file, tool_id)

    def failures(self, tool_id: int) -> list[Problem]:
        """Return what could not be used when it was last read."""
        return reading.failures(self._file, tool_id)

    def write(
        self,
        tool_id: int,
        *,
        put: Sequence[Prepared] = (),
        fail: Sequence[Failed] = (),
        remove: Sequence[str] = (),
        touch: Sequence[Entry] = (),
        vectors: Mapping[bytes, npt.NDArray[np.float32]] | None = None,
        spent: Mapping[str, Spent] | None = None,
    ) -> int:
        """Change documents, all of them or none; return the new generation. A failure replaces its document."""
        with self._file.transaction() as connection:
            return writing.write(
                connection,
                tool_id,
                put=put,
                fail=fail,
                remove=remove,
                touch=touch,
                vectors=vectors or {},
                spent=spent or {},
            )

    def keep(
        self,
        tool_id: int,
        embedder: str,
        vectors: Mapping[bytes, npt.NDArray[np.float32]],
        *,
        spent: Mapping[str, Spent] | None = None,
    ) -> None:
        """Store vectors that no chunk has yet, for a tool that will: no sweep forgets them until it is released."""
        with self._file.transaction() as connection:
            embeddings.put(connection, vectors, spent or {})
            embeddings.keep(connection, tool_id, embedder, vectors)

    def release(self, tool_id: int, embedder: str | None = None) -> None:
        """Let a sweep forget what was kept for a tool and no chunk has, of one embedder or of all."""
        if embeddings.are_kept(self._file):
            with self._file.transaction() as connection:
                embeddings.release(connection, tool_id, embedder)

    def rekey(self, tool_id: int, keys: Mapping[str, Sequence[bytes]], built: dict[str, Any]) -> int:
        """Give all chunks of a tool other vectors, in one step; return the new generation."""
        with self._file.transaction() as connection:
            generation = generations.grow(connection)
            embeddings.rekey(connection, tool_id, generation, keys)
            reach("reembed.rekeyed")
            tools.mark(connection, tool_id, built=built)
            return generation

    def spent(self) -> dict[str, Spent]:
        """Return what imports had of each embedder, by its name."""
        return embeddings.spent(self._file)

    def missing(self, keys: Iterable[bytes]) -> set[bytes]:
        """Return those vector names that are not stored."""
        return export.missing(self._file, keys)

    def generation(self) -> int:
        """Return a number that grows with every change of what a search could see."""
        return generations.number(self._file)

    def fresh(self, tool_id: int, since: int) -> Iterator[StoredChunk]:
        """Return the chunks of all documents written after a generation, in the order they were written."""
        return reading.fresh(self._file, tool_id, since)

    def dead(self, tool_id: int, since: int) -> list[int] | None:
        """Return the documents removed after a generation; None if that is too long ago to tell."""
        return generations.dead(self._file, tool_id, since)

    def forget(self, tool_id: int, before: int) -> None:
        """Stop remembering what was removed up to a generation."""
        with self._file.transaction() as connection:
            generations.forget(connection, tool_id, before)

    def name_derived(self, tool_id: int, name: str) -> None:
        """Remember which derived file is true to this library."""
        with self._file.transaction() as connection:
            generations.name_derived(connection, tool_id, name)

    def derived_name(self, tool_id: int) -> str:
        """Return which derived file is true to this library, if one is."""
        return generations.derived_name(self._file, tool_id)

    def sweep(self) -> None:
        """Forget vectors that no chunk has any more, and that are not kept."""
        with self._file.transaction() as connection:
            embeddings.sweep(connection)

    def chunks(self, ids: Sequence[int]) -> dict[int, Found]:
        """Return the chunks with these ids that still exist."""
        return reading.chunks(self._file, ids)

    def document(self, tool_id: int, uri: str) -> StoredDocument | None:
        """Return one document."""
        return reading.document(self._file, tool_id, uri)

    def whole(self, tool_id: int, uris: Sequence[str]) -> list[Prepared]:
        """Return documents as they were put, in the order of their uris."""
        return export.documents(self._file, tool_id, uris)

    def vectors(self, keys: Iterable[bytes]) -> dict[bytes, npt.NDArray[np.float32]]:
        """Return the vectors of these names that are stored."""
        return export.vectors(self._file, keys)

    def uris(self, tool_id: int, *, after: str = "", limit: int = 100) -> list[str]:
        """Return the uris that follow one, in order."""
        return reading.uris(self._file, tool_id, after=after, limit=limit)

    def with_hash(self, tool_id: int, beginning: str) -> list[str]:
        """Return the uris of the documents whose content hash begins so."""
        return reading.with_hash(self._file, tool_id, beginning)

    def select(self, tool_id: int, where: Filter) -> list[int]:
        """Return the ids of the documents that pass a filter."""
        return reading.select(self._file, tool_id, where)

    def totals(self, tool_id: int) -> Totals:
        """Return how much a tool holds."""
        return stats.totals(self._file, tool_id)

    def room(self, tool_id: int) -> Room:
        """Return how many bytes a tool's rows take."""
        return stats.room(self._file, tool_id)

    def lengths(self, tool_id: int) -> list[tuple[int, int]]:
        """Return how many chunks there are of each length in characters, the shortest first."""
        return stats.lengths(self._file, tool_id)

    def listed(self, tool_id: int, *, skip: int = 0, limit: int = 20) -> list[Listed]:
        """Return some documents in the order of their uris."""
        return stats.listed(self._file, tool_id, skip=skip, limit=limit)

    def tags(self, tool_id: int) -> list[tuple[str, int]]:
        """Return each tag and how many documents have it, the most used first."""
        return stats.tags(self._file, tool_id)

    def recent(self, tool_id: int, *, limit: int = 10) -> list[Dated]:
        """Return the documents of the latest dates, the latest first; those without a date come last."""
        return stats.recent(self._file, tool_id, limit=limit)

    def pages(self, tool_id: int, urls: Sequence[str] | None = None) -> list[WebPage]:
        """Return what is known of a tool's web pages, or of some of them, by URL."""
        return pages.known(self._file, tool_id, urls)

    def page_content(self, tool_id: int, url: str) -> bytes | None:
        """Return a page as it came; None where none ever did."""
        return pages.content(self._file, tool_id, url)

    def write_pages(
        self,
        tool_id: int,
        *,
        put: Sequence[WebPage] = (),
        contents: Mapping[str, bytes] | None = None,
        remove: Sequence[str] = (),
    ) -> None:
        """Change pages, all of them or none; one that is put without new content keeps what it has."""
        with self._file.transaction() as connection:
            pages.write(connection, tool_id, put, contents or {}, remove)

    def keep_search(self, query: str, tool: str, at: str, *, most: int) -> bool:
        """Remember that a search was made, and at most so many; say no instead of waiting for whoever writes."""
        return cache.keep(self._file, query, tool, at, most=most)

    def kept_searches(self) -> list[Kept]:
        """Return the searches that are remembered, the most frequent first."""
        return cache.kept(self._file)

    def clear_searches(self) -> int:
        """Forget all searches; return how many there were."""
        return cache.clear(self._file)

    def answer(self, kind: str, key: bytes, at: float) -> str | None:
        """Return what a remote model answered, unless it is out of date by then, in seconds since 1970."""
        return cache.answer(self._file, kind, key, at)

    def put_answer(self, kind: str, key: bytes, value: str, *, at: float, until: float, most: int) -> bool:
        """Keep an answer until then, and at most so many of a kind; say no instead of waiting for whoever writes."""
        return cache.put_answer(self._file, kind, key, value, at=at, until=until, most=most)

    def check(self) -> str:
        """Return what is wrong with what is stored, or nothing."""
        found = [str(row[0]) for row in self._file.rows("PRAGMA integrity_check(5)") if row[0] != "ok"]
        found += [f"{row[0]} refers to what is not there" for row in self._file.rows("PRAGMA foreign_key_check")]
        return "; ".join(found)

    def close(self) -> None:
        """Let go of files."""
        self._file.close()
