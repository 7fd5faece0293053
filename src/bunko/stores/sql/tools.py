"""Add, change and delete tools."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from typing import Any

from bunko.errors import name_taken_error
from bunko.runtime.failpoints import reach_failpoint
from bunko.stores.sql.changes import advance_generation, put_meta
from bunko.stores.sql.database import INTEGER, TEXT, Connection, Database, retried, retried_until_commit
from bunko.stores.sql.facts import FactsFile
from bunko.stores.sql.scans import advance_version, delete_scans
from bunko.stores.sql.totals import TOTALS_PREFIX, keep_counts, read_counts
from bunko.stores.sql.unused_vectors import release_vectors
from bunko.types import Tool
from bunko.types.build_info import BuildInfo
from bunko.types.tool_options import ToolOptions

_COLUMNS = "id, name, kind, description, source, active, created_at, imported_at, checked_at, built, options"
_COLUMN_TYPES = (INTEGER, TEXT, TEXT, TEXT, TEXT, INTEGER, TEXT, TEXT, TEXT, TEXT, TEXT)
_INSERT = (
    "INSERT INTO tools (name, kind, description, source, active, created_at, imported_at, checked_at, built, options)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)

MACHINE_PREFIX = "machine of "  # of the keys in `meta` that hold the machine of a tool


class SqlTools:
    """The tools of a library; on a server, each belongs to the machine that imports it."""

    def __init__(self, database: Database, machine: str = "", facts_file: FactsFile | None = None) -> None:
        self._database, self._machine, self._facts_file = database, machine, facts_file
        self._last_read: tuple[list[tuple[Any, ...]], list[Tool]] = ([], [])  # every search reads them several times

    def all(self) -> list[Tool]:
        """Return all tools, sorted by name; those that have not changed may be the same objects as before."""
        rows = self._database.rows(f"SELECT {_COLUMNS} FROM tools ORDER BY name", types=_COLUMN_TYPES)
        last_rows, tools = self._last_read
        if rows != last_rows:
            with self._database.decode_values():
                tools = [_tool_from_row(row) for row in rows]
            self._last_read = (rows, tools)
        return list(tools)

    @retried
    def put(self, tool: Tool) -> Tool:
        """Add a tool or replace the tool of the same name; return it with its id."""
        with self._database.transaction() as connection:
            tool = _put_tool(connection, tool)
            self._claim_new(connection, tool.name)
            return tool

    @retried
    def ensure(self, tool: Tool) -> None:
        """Add a tool unless one of that name exists."""
        with self._database.transaction() as connection:
            connection.execute(f"{_INSERT} ON CONFLICT (name) DO NOTHING", _insert_values(tool))
            self._claim_new(connection, tool.name)

    @retried
    def update_build_info(self, tool_id: int, *, built: BuildInfo | None = None, imported_at: str = "") -> None:
        """Record how or when a tool's index was built, without overwriting concurrent changes to its other fields."""
        with self._database.transaction() as connection:
            if built is not None:
                set_built(connection, tool_id, built)
            if imported_at:
                connection.execute(
                    "UPDATE tools SET imported_at = ?, checked_at = ? WHERE id = ?", (imported_at, imported_at, tool_id)
                )

    @retried
    def rename(self, *tools: Tool) -> None:
        """Store the names and options of existing tools atomically; raise SettingsError if another has such a name."""
        with self._database.transaction() as connection:
            for tool in tools:
                query = "SELECT 1 FROM tools WHERE name = ? AND id <> ?"
                if connection.execute(query, (tool.name, tool.id)).fetchone():
                    raise name_taken_error(tool.name)
                connection.execute(
                    "UPDATE tools SET name = ?, options = ? WHERE id = ?",
                    (tool.name, _to_json(tool.options.to_json()), tool.id),
                )

    @retried
    def claim(self, tool_id: int) -> None:
        """Record that this machine imports a tool, which else the one does that added it."""
        if not self.is_local(tool_id):
            with self._database.transaction() as connection:
                put_meta(connection, f"{MACHINE_PREFIX}{tool_id}", self._machine)

    def is_local(self, tool_id: int) -> bool:
        """Return whether this machine imports a tool: on others, the path of its folder may be another folder."""
        if not self._machine:
            return True
        query = "SELECT value FROM meta WHERE key = ?"
        rows = self._database.rows(query, (f"{MACHINE_PREFIX}{tool_id}",), types=(TEXT,))
        return not rows or rows[0][0] == self._machine

    def _claim_new(self, connection: Connection, name: str) -> None:
        if self._machine:
            connection.execute(
                "INSERT INTO meta SELECT ? || CAST(id AS TEXT), ? FROM tools WHERE name = ?"
                " ON CONFLICT (key) DO NOTHING",
                (MACHINE_PREFIX, self._machine, name),
            )

    @retried
    def drop(self, tool_id: int) -> None:
        """Delete a tool with its documents, pages and pinned vectors."""
        with self._database.transaction() as connection:
            _remove_documents(connection, tool_id)
            connection.execute("DELETE FROM removed WHERE tool_id = ?", (tool_id,))
            _delete_tool(connection, tool_id)
        if self._facts_file is not None:
            with suppress(OSError):  # on some systems an open file cannot be removed
                self._facts_file(tool_id).unlink()

    @retried_until_commit  # the shadow tool exists only once
    def swap(self, tool: Tool, shadow: Tool) -> int:
        """Replace a tool's documents by those of the shadow tool that a rebuild wrote, and delete that, atomically."""
        with self._database.transaction() as connection:
            generation = _move_documents(connection, tool, shadow)
            connection.execute(
                "UPDATE tools SET imported_at = ?, checked_at = ?, built = ?, options = ? WHERE id = ?",
                (
                    tool.imported_at,
                    tool.checked_at,
                    _to_json(tool.built.to_json()),
                    _to_json(tool.options.to_json()),
                    tool.id,
                ),
            )
            return generation

    @retried_until_commit
    def adopt_documents(self, tool: Tool, shadow: Tool) -> Tool:
        """Store a tool, or replace the one of its name, with the documents of the shadow tool that an import wrote."""
        with self._database.transaction() as connection:
            tool = _put_tool(connection, tool)
            self._claim_new(connection, tool.name)
            _move_documents(connection, tool, shadow)
            return tool


def set_built(connection: Connection, tool_id: int, built: BuildInfo) -> None:
    """Record the parts that built a tool's index."""
    connection.execute("UPDATE tools SET built = ? WHERE id = ?", (_to_json(built.to_json()), tool_id))


def _put_tool(connection: Connection, tool: Tool) -> Tool:
    connection.execute(
        f"{_INSERT} ON CONFLICT (name) DO UPDATE SET"
        " kind = excluded.kind, description = excluded.description, source = excluded.source,"
        " active = excluded.active, imported_at = excluded.imported_at, checked_at = excluded.checked_at,"
        " built = excluded.built, options = excluded.options",
        _insert_values(tool),
    )
    row = connection.execute("SELECT id FROM tools WHERE name = ?", (tool.name,)).fetchone()
    return replace(tool, id=row[0])


def _move_documents(connection: Connection, tool: Tool, shadow: Tool) -> int:
    counts = read_counts(connection, shadow.id)
    release_vectors(connection, "tool_id = ?", (tool.id,))
    generation = _remove_documents(connection, tool.id)
    # Their ids may be below those that an index has copied meanwhile: as after embedding again, it copies all of them.
    connection.execute(
        "INSERT INTO removed SELECT ?, id, ? FROM documents WHERE tool_id = ?", (tool.id, generation, shadow.id)
    )
    connection.execute(
        "UPDATE documents SET tool_id = ?, generation = ? WHERE tool_id = ?", (tool.id, generation, shadow.id)
    )
    connection.execute("UPDATE failures SET tool_id = ? WHERE tool_id = ?", (tool.id, shadow.id))
    if counts is not None:
        keep_counts(connection, tool.id, generation, counts)
    reach_failpoint("store.swapped")
    _delete_tool(connection, shadow.id)
    return generation


def _delete_tool(connection: Connection, tool_id: int) -> None:
    connection.execute("DELETE FROM tools WHERE id = ?", (tool_id,))
    keys = (f"{MACHINE_PREFIX}{tool_id}", f"{TOTALS_PREFIX}{tool_id}")
    connection.execute("DELETE FROM meta WHERE key IN (?, ?)", keys)
    delete_scans(connection, tool_id)


def _remove_documents(connection: Connection, tool_id: int) -> int:
    generation = advance_generation(connection)
    advance_version(connection, tool_id)
    connection.execute(
        "INSERT INTO removed SELECT tool_id, id, ? FROM documents WHERE tool_id = ?", (generation, tool_id)
    )
    connection.execute("DELETE FROM documents WHERE tool_id = ?", (tool_id,))
    connection.execute("DELETE FROM failures WHERE tool_id = ?", (tool_id,))
    return generation


def _tool_from_row(row: tuple[Any, ...]) -> Tool:
    return Tool(
        id=row[0], name=row[1], kind=row[2], description=row[3], source=row[4], active=bool(row[5]),
        created_at=row[6], imported_at=row[7], checked_at=row[8], built=_parse_build_info(row[9]),
        options=_parse_options(row[10]),
    )  # fmt: skip


@lru_cache(maxsize=256)
def _parse_build_info(text: str) -> BuildInfo:
    return BuildInfo.from_json(json.loads(text))


@lru_cache(maxsize=256)
def _parse_options(text: str) -> ToolOptions:
    return ToolOptions.from_json(json.loads(text))


def _insert_values(tool: Tool) -> tuple[Any, ...]:
    return (
        tool.name, tool.kind, tool.description, tool.source, int(tool.active), tool.created_at,
        tool.imported_at, tool.checked_at, _to_json(tool.built.to_json()), _to_json(tool.options.to_json()),
    )  # fmt: skip


def _to_json(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)
