"""Keeps a library in one SQLite file: many processes read it, one at a time writes, a kill loses nothing."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bunko.failpoints import reach
from bunko.index.terms import unpack
from bunko.protocols import (
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
from bunko.stores import measures, pages, paid, schema, whole
from bunko.stores.facts import dated, known, order, own_text, passes
from bunko.stores.file import File
from bunko.types import WHOLE_FILE, Chunk, Entry, Known, Lines, Problem, Tool, in_context

if TYPE_CHECKING:
    import numpy.typing as npt

_TOOL = "id, name, kind, description, source, active, created_at, imported_at, checked_at, built, options"
_INSERT_TOOL = (
    "INSERT INTO tools (name, kind, description, source, active, created_at, imported_at, checked_at, built, options)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)


# Made once: json.dumps makes another for every list, which takes longer than writing it.
_written = json.JSONEncoder(ensure_ascii=False).encode


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
        return [_tool(row) for row in self._file.rows(f"SELECT {_TOOL} FROM tools ORDER BY name")]

    def put_tool(self, tool: Tool) -> Tool:
        """Add a tool, or replace the one of the same name; return it as stored."""
        with self._file.transaction() as connection:
            return _put_tool(connection, tool)

    def ensure_tool(self, tool: Tool) -> None:
        """Add a tool unless there is one of its name, which stays as it is."""
        with self._file.transaction() as connection:
            connection.execute(f"{_INSERT_TOOL} ON CONFLICT (name) DO NOTHING", _tool_values(tool))

    def mark(self, tool_id: int, *, built: dict[str, Any] | None = None, imported_at: str = "") -> None:
        """Note how a tool's index was made or when; what somebody else says of the tool meanwhile stays."""
        with self._file.transaction() as connection:
            if built is not None:
                connection.execute("UPDATE tools SET built = ? WHERE id = ?", (_json(built), tool_id))
            if imported_at:
                connection.execute(
                    "UPDATE tools SET imported_at = ?, checked_at = ? WHERE id = ?", (imported_at, imported_at, tool_id)
                )

    def drop_tool(self, tool_id: int) -> None:
        """Remove a tool and all it holds."""
        with self._file.transaction() as connection:
            self._remove_all(connection, tool_id)
            connection.execute("DELETE FROM removed WHERE tool_id = ?", (tool_id,))
            connection.execute("DELETE FROM tools WHERE id = ?", (tool_id,))

    def swap(self, tool: Tool, shadow: Tool) -> int:
        """Let a tool hold what its shadow holds instead, in one step, and remove the shadow."""
        with self._file.transaction() as connection:
            generation = self._take(connection, tool, shadow)
            connection.execute(
                "UPDATE tools SET imported_at = ?, checked_at = ?, built = ?, options = ? WHERE id = ?",
                (tool.imported_at, tool.checked_at, _json(tool.built), _json(tool.options), tool.id),
            )
        return generation

    def adopt(self, tool: Tool, shadow: Tool) -> Tool:
        """Let a tool be as given and hold what a shadow holds, in one step; one of that name is replaced."""
        with self._file.transaction() as connection:
            tool = _put_tool(connection, tool)
            self._take(connection, tool, shadow)
        return tool

    def _take(self, connection: sqlite3.Connection, tool: Tool, shadow: Tool) -> int:
        generation = self._remove_all(connection, tool.id)
        connection.execute(
            "UPDATE documents SET tool_id = ?, generation = ? WHERE tool_id = ?", (tool.id, generation, shadow.id)
        )
        connection.execute("UPDATE failures SET tool_id = ? WHERE tool_id = ?", (tool.id, shadow.id))
        reach("store.swapped")
        connection.execute("DELETE FROM tools WHERE id = ?", (shadow.id,))
        return generation

    def _remove_all(self, connection: sqlite3.Connection, tool_id: int) -> int:
        generation = self._next_generation(connection)
        connection.execute(
            "INSERT INTO removed SELECT tool_id, id, ? FROM documents WHERE tool_id = ?", (generation, tool_id)
        )
        connection.execute("DELETE FROM documents WHERE tool_id = ?", (tool_id,))
        connection.execute("DELETE FROM failures WHERE tool_id = ?", (tool_id,))
        return generation

    def _next_generation(self, connection: sqlite3.Connection) -> int:
        connection.execute("UPDATE meta SET value = value + 1 WHERE key = 'generation'")
        return _generation(connection)

    def known(self, tool_id: int) -> dict[str, Known]:
        """Return what is remembered of each document, and of what failed, by uri."""
        rows = self._file.rows(
            "SELECT uri, content_hash, size, modified_ns, seen_ns, first_line FROM documents WHERE tool_id = :tool"
            " UNION ALL SELECT uri, content_hash, size, modified_ns, seen_ns, 1 FROM failures WHERE tool_id = :tool",
            {"tool": tool_id},
        )
        return {
            row[0]: known(row[1], Entry(row[0], *row[2:5], lines=WHOLE_FILE if row[5] == 1 else Lines(row[5])))
            for row in rows
        }

    def failures(self, tool_id: int) -> list[Problem]:
        """Return what could not be used when it was last read."""
        rows = self._file.rows("SELECT uri, reason FROM failures WHERE tool_id = ? ORDER BY uri", (tool_id,))
        return [Problem(*row) for row in rows]

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
            changes = bool(put or fail or remove)
            generation = self._next_generation(connection) if changes else _generation(connection)
            replaced = (*(one.document.uri for one in put), *(one.entry.uri for one in fail))
            gone = [(tool_id, uri) for uri in (*remove, *replaced)]
            connection.executemany(
                "INSERT INTO removed SELECT tool_id, id, ? FROM documents WHERE tool_id = ? AND uri = ?",
                [(generation, *one) for one in gone],
            )
            connection.executemany("DELETE FROM documents WHERE tool_id = ? AND uri = ?", gone)
            connection.executemany("DELETE FROM failures WHERE tool_id = ? AND uri = ?", gone)
            connection.executemany(
                "INSERT INTO failures VALUES (?, ?, ?, ?, ?, ?, ?)",
                [
                    (tool_id, e.uri, one.content_hash, e.size, e.modified_ns, e.seen_ns, one.reason)
                    for one in fail
                    for e in (one.entry,)
                ],
            )
            reach("store.removed")
            paid.put(connection, vectors or {}, spent or {})
            reach("store.vectors")
            for prepared in put:
                self._put(connection, tool_id, generation, prepared)
                reach("store.document")
            self._touch(connection, tool_id, touch)
        return generation

    def _touch(self, connection: sqlite3.Connection, tool_id: int, entries: Sequence[Entry]) -> None:
        connection.executemany(
            "UPDATE chunks SET (first_line, last_line) = (SELECT chunks.first_line + ?1 - documents.first_line,"
            " chunks.last_line + ?1 - documents.first_line FROM documents WHERE id = document_id) WHERE document_id ="
            " (SELECT id FROM documents WHERE tool_id = ?2 AND uri = ?3 AND first_line <> ?1)",
            [(one.lines.first, tool_id, one.uri) for one in entries],
        )
        connection.executemany(
            "UPDATE documents SET size = ?, modified_ns = ?, seen_ns = ?, first_line = ?, last_line = ?"
            " WHERE tool_id = ? AND uri = ?",
            [(e.size, e.modified_ns, e.seen_ns, e.lines.first, e.lines.last, tool_id, e.uri) for e in entries],
        )
        connection.executemany(
            "UPDATE failures SET size = ?, modified_ns = ?, seen_ns = ? WHERE tool_id = ? AND uri = ?",
            [(one.size, one.modified_ns, one.seen_ns, tool_id, one.uri) for one in entries],
        )

    def _put(self, connection: sqlite3.Connection, tool_id: int, generation: int, prepared: Prepared) -> None:
        document, text = prepared.document, prepared.document.text
        entry = document.entry
        document_id = connection.execute(
            "INSERT INTO documents (tool_id, uri, generation, content_hash, size, modified_ns, seen_ns, first_line,"
            " last_line, media_type, encoding, title, date, tags, body, text, terms)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                tool_id, entry.uri, generation, document.content_hash, entry.size, entry.modified_ns, entry.seen_ns,
                entry.lines.first, entry.lines.last, text.media_type, text.encoding, text.title, text.date,
                _written(text.tags), text.body, text.text, prepared.terms,
            ),
        ).lastrowid  # fmt: skip
        names: Sequence[bytes | None] = prepared.vector_keys or [None] * len(prepared.chunks)
        connection.executemany(
            "INSERT INTO chunks (document_id, ordinal, start, end, first_line, last_line, heading, heading_path, text,"
            " vector_key) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [
                (
                    document_id, chunk.index, chunk.start, chunk.end, chunk.first_line, chunk.last_line, chunk.heading,
                    _written(chunk.heading_path), own_text(chunk, text.text), name,
                )
                for chunk, name in zip(prepared.chunks, names, strict=True)
            ],
        )  # fmt: skip

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
            paid.put(connection, vectors, spent or {})
            paid.keep(connection, tool_id, embedder, vectors)

    def release(self, tool_id: int, embedder: str | None = None) -> None:
        """Let a sweep forget what was kept for a tool and no chunk has, of one embedder or of all."""
        if paid.are_kept(self._file):
            with self._file.transaction() as connection:
                connection.execute(
                    "DELETE FROM kept WHERE tool_id = ? AND embedder = ifnull(?, embedder)", (tool_id, embedder)
                )

    def rekey(self, tool_id: int, keys: Mapping[str, Sequence[bytes]], built: dict[str, Any]) -> int:
        """Give all chunks of a tool other vectors, in one step; return the new generation."""
        with self._file.transaction() as connection:
            generation = self._next_generation(connection)
            paid.rekey(connection, tool_id, generation, keys)
            reach("reembed.rekeyed")
            connection.execute("UPDATE tools SET built = ? WHERE id = ?", (_json(built), tool_id))
        return generation

    def spent(self) -> dict[str, Spent]:
        """Return what imports had of each embedder, by its name."""
        return paid.spent(self._file)

    def missing(self, keys: Iterable[bytes]) -> set[bytes]:
        """Return those vector names that are not stored."""
        wanted = list(set(keys))
        found: set[bytes] = set()
        for at in range(0, len(wanted), 500):
            some = wanted[at : at + 500]
            found |= {row[0] for row in self._file.rows(f"SELECT key FROM vectors WHERE key IN ({_marks(some)})", some)}
        return set(wanted) - found

    def generation(self) -> int:
        """Return a number that grows with every change of what a search could see."""
        return int(self._file.rows("SELECT value FROM meta WHERE key = 'generation'")[0][0])

    def fresh(self, tool_id: int, since: int) -> Iterator[StoredChunk]:
        """Return the chunks of all documents written after a generation, in the order they were written."""
        documents = self._file.rows(
            "SELECT id FROM documents WHERE tool_id = ? AND generation > ? ORDER BY id", (tool_id, since)
        )
        for at in range(0, len(documents), 200):
            some = [row[0] for row in documents[at : at + 200]]
            rows = {
                row[0]: row[1:]
                for row in self._file.rows(
                    f"SELECT id, uri, title, text, terms FROM documents WHERE id IN ({_marks(some)})", some
                )
            }
            current, number = 0, 0
            terms: list[tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint16]]] = []
            for chunk_id, document_id, ordinal, start, end, path, text, vector in self._file.rows(
                "SELECT chunks.id, document_id, ordinal, start, end, heading_path, chunks.text, vector FROM chunks"
                f" LEFT JOIN vectors ON key = vector_key WHERE document_id IN ({_marks(some)})"
                " ORDER BY document_id, ordinal",
                some,
            ):
                uri, title, whole, blob = rows[document_id]
                if document_id != current:
                    current, number = document_id, 0
                    terms = unpack(blob)
                yield StoredChunk(
                    chunk_id,
                    document_id,
                    order(uri, ordinal),
                    in_context(title, json.loads(path), whole[start:end] if text is None else text),
                    *terms[number],
                    None if vector is None else np.frombuffer(vector, np.float32),
                )
                number += 1

    def dead(self, tool_id: int, since: int) -> list[int] | None:
        """Return the documents removed after a generation; None if that is too long ago to tell."""
        forgotten = self._file.rows("SELECT value FROM meta WHERE key = ?", (f"forgotten {tool_id}",))
        if forgotten and since < int(forgotten[0][0]):
            return None
        rows = self._file.rows("SELECT document_id FROM removed WHERE tool_id = ? AND generation > ?", (tool_id, since))
        return [row[0] for row in rows]

    def forget(self, tool_id: int, before: int) -> None:
        """Stop remembering what was removed up to a generation."""
        with self._file.transaction() as connection:
            connection.execute("DELETE FROM removed WHERE tool_id = ? AND generation <= ?", (tool_id, before))
            connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (f"forgotten {tool_id}", str(before)))

    def name_derived(self, tool_id: int, name: str) -> None:
        """Remember which derived file is true to this library."""
        with self._file.transaction() as connection:
            connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (f"derived {tool_id}", name))

    def derived_name(self, tool_id: int) -> str:
        """Return which derived file is true to this library, if one is."""
        rows = self._file.rows("SELECT value FROM meta WHERE key = ?", (f"derived {tool_id}",))
        return str(rows[0][0]) if rows else ""

    def sweep(self) -> None:
        """Forget vectors that no chunk has any more, and that are not kept."""
        with self._file.transaction() as connection:
            paid.sweep(connection)

    def chunks(self, ids: Sequence[int]) -> dict[int, Found]:
        """Return the chunks with these ids that still exist."""
        rows = self._file.rows(
            "SELECT chunks.id, document_id, ordinal, start, end, chunks.first_line, chunks.last_line, heading,"
            " heading_path, chunks.text, uri, title, date, modified_ns, tags, content_hash,"
            " CASE WHEN chunks.text IS NULL THEN documents.text END, tool_id, documents.last_line"
            f" FROM chunks JOIN documents ON documents.id = document_id WHERE chunks.id IN ({_marks(ids)})",
            ids,
        )
        found = {}
        for row in rows:
            text = row[16][row[3] : row[4]] if row[9] is None else row[9]
            chunk = Chunk(row[2], row[3], row[4], row[5], row[6], text, row[7], tuple(json.loads(row[8])))
            found[row[0]] = Found(
                row[17],
                row[1],
                row[10],
                row[11],
                dated(row[12], row[13], row[18]),
                tuple(json.loads(row[14])),
                row[15],
                chunk,
            )
        return found

    def document(self, tool_id: int, uri: str) -> StoredDocument | None:
        """Return one document."""
        rows = self._file.rows(
            "SELECT title, date, modified_ns, last_line, tags, content_hash, media_type, text, body, first_line"
            " FROM documents WHERE tool_id = ? AND uri = ?",
            (tool_id, uri),
        )
        for title, date, modified_ns, last, tags, content_hash, media_type, text, body, first in rows:
            date, own = dated(date, modified_ns, last), tuple(json.loads(tags))
            return StoredDocument(uri, title, date, own, content_hash, media_type, text, body, Lines(first, last))
        return None

    def whole(self, tool_id: int, uris: Sequence[str]) -> list[Prepared]:
        """Return documents as they were put, in the order of their uris."""
        return whole.documents(self._file, tool_id, uris)

    def vectors(self, keys: Iterable[bytes]) -> dict[bytes, npt.NDArray[np.float32]]:
        """Return the vectors of these names that are stored."""
        return whole.vectors(self._file, keys)

    def uris(self, tool_id: int, *, after: str = "", limit: int = 100) -> list[str]:
        """Return the uris that follow one, in order."""
        rows = self._file.rows(
            "SELECT uri FROM documents WHERE tool_id = ? AND uri > ? ORDER BY uri LIMIT ?", (tool_id, after, limit)
        )
        return [row[0] for row in rows]

    def with_hash(self, tool_id: int, beginning: str) -> list[str]:
        """Return the uris of the documents whose content hash begins so."""
        rows = self._file.rows(
            "SELECT uri FROM documents WHERE tool_id = ? AND substr(content_hash, 1, ?) = ? ORDER BY uri",
            (tool_id, len(beginning), beginning),
        )
        return [row[0] for row in rows]

    def select(self, tool_id: int, where: Filter) -> list[int]:
        """Return the ids of the documents that pass a filter."""
        test = passes(where)
        rows = self._file.rows(
            "SELECT id, uri, date, modified_ns, last_line, tags FROM documents WHERE tool_id = ?", (tool_id,)
        )
        return [row[0] for row in rows if test(row[1], dated(*row[2:5]), frozenset(json.loads(row[5])))]

    def totals(self, tool_id: int) -> Totals:
        """Return how much a tool holds."""
        return measures.totals(self._file, tool_id)

    def room(self, tool_id: int) -> Room:
        """Return how many bytes a tool's rows take."""
        return measures.room(self._file, tool_id)

    def lengths(self, tool_id: int) -> list[tuple[int, int]]:
        """Return how many chunks there are of each length in characters, the shortest first."""
        return measures.lengths(self._file, tool_id)

    def listed(self, tool_id: int, *, skip: int = 0, limit: int = 20) -> list[Listed]:
        """Return some documents in the order of their uris."""
        return measures.listed(self._file, tool_id, skip=skip, limit=limit)

    def tags(self, tool_id: int) -> list[tuple[str, int]]:
        """Return each tag and how many documents have it, the most used first."""
        return measures.tags(self._file, tool_id)

    def recent(self, tool_id: int, *, limit: int = 10) -> list[Dated]:
        """Return the documents of the latest dates, the latest first; those without a date come last."""
        return measures.recent(self._file, tool_id, limit=limit)

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
        return self._file.attempt(
            [
                (schema.ASKED, ()),
                (
                    "INSERT INTO asked VALUES (?, ?, 1, ?)"
                    " ON CONFLICT (query, tool) DO UPDATE SET count = count + 1, last = excluded.last",
                    (query, tool, at),
                ),
                (
                    "DELETE FROM asked WHERE (query, tool) IN"
                    " (SELECT query, tool FROM asked ORDER BY last DESC, count DESC, query, tool LIMIT -1 OFFSET ?)",
                    (most,),
                ),
            ]
        )

    def kept_searches(self) -> list[Kept]:
        """Return the searches that are remembered, the most frequent first."""
        if not self._keeps():
            return []
        rows = self._file.rows("SELECT query, tool, count, last FROM asked ORDER BY count DESC, query, tool")
        return [Kept(*row) for row in rows]

    def clear_searches(self) -> int:
        """Forget all searches; return how many there were."""
        number = len(self.kept_searches())
        if self._keeps():
            with self._file.transaction() as connection:
                # What is forgotten should not stay readable in the file's free pages.
                connection.execute("PRAGMA secure_delete = ON")
                connection.execute("DROP TABLE IF EXISTS asked")
                connection.execute("PRAGMA secure_delete = OFF")
        return number

    def _keeps(self) -> bool:
        return bool(self._file.rows("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'asked'"))

    def answer(self, kind: str, key: bytes, at: float) -> str | None:
        """Return what a remote model answered, unless it is out of date by then, in seconds since 1970."""
        rows = self._file.rows("SELECT value FROM answers WHERE kind = ? AND key = ? AND until > ?", (kind, key, at))
        return str(rows[0][0]) if rows else None

    def put_answer(self, kind: str, key: bytes, value: str, *, at: float, until: float, most: int) -> bool:
        """Keep an answer until then, and at most so many of a kind; say no instead of waiting for whoever writes."""
        return self._file.attempt(
            [
                ("INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?)", (kind, key, value, until)),
                ("DELETE FROM answers WHERE until <= ?", (at,)),
                (
                    "DELETE FROM answers WHERE kind = ?1 AND key IN"
                    " (SELECT key FROM answers WHERE kind = ?1 ORDER BY until DESC, key LIMIT -1 OFFSET ?2)",
                    (kind, most),
                ),
            ]
        )

    def check(self) -> str:
        """Return what is wrong with what is stored, or nothing."""
        found = [str(row[0]) for row in self._file.rows("PRAGMA integrity_check(5)") if row[0] != "ok"]
        found += [f"{row[0]} refers to what is not there" for row in self._file.rows("PRAGMA foreign_key_check")]
        return "; ".join(found)

    def close(self) -> None:
        """Let go of files."""
        self._file.close()


def build(path: Path, *, read_only: bool = False) -> Sqlite:
    """Keep everything in one SQLite file."""
    return Sqlite(path, read_only=read_only)


def _tool(row: tuple[Any, ...]) -> Tool:
    return Tool(
        id=row[0], name=row[1], kind=row[2], description=row[3], source=row[4], active=bool(row[5]),
        created_at=row[6], imported_at=row[7], checked_at=row[8], built=json.loads(row[9]),
        options=json.loads(row[10]),
    )  # fmt: skip


def _put_tool(connection: sqlite3.Connection, tool: Tool) -> Tool:
    connection.execute(
        f"{_INSERT_TOOL} ON CONFLICT (name) DO UPDATE SET"
        " kind = excluded.kind, description = excluded.description, source = excluded.source,"
        " active = excluded.active, imported_at = excluded.imported_at, checked_at = excluded.checked_at,"
        " built = excluded.built, options = excluded.options",
        _tool_values(tool),
    )
    row = connection.execute("SELECT id FROM tools WHERE name = ?", (tool.name,)).fetchone()
    return replace(tool, id=row[0])


def _generation(connection: sqlite3.Connection) -> int:
    return int(connection.execute("SELECT value FROM meta WHERE key = 'generation'").fetchone()[0])


def _tool_values(tool: Tool) -> tuple[Any, ...]:
    return (
        tool.name, tool.kind, tool.description, tool.source, tool.active, tool.created_at,
        tool.imported_at, tool.checked_at, _json(tool.built), _json(tool.options),
    )  # fmt: skip


def _json(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def _marks(values: Sequence[Any]) -> str:
    return ",".join("?" * len(values))
