"""Read and write all rows of a library as they are, to move it to another store."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import blake2b

from bunko.protocols.store import Digest, Key, Row, RowPage
from bunko.stores.sql import database
from bunko.stores.sql.changes import SqlChanges, advance_generation, put_meta
from bunko.stores.sql.database import INTEGER, TEXT, Connection, Database, placeholders, retried, retried_until_commit
from bunko.stores.sql.scans import FACTS_PREFIX, RECORD_PREFIX
from bunko.stores.sql.tables import MOVING_TABLES, TABLES, TABLES_WITH_IDS, Table
from bunko.stores.sql.tools import MACHINE_PREFIX
from bunko.stores.sql.totals import TOTALS_PREFIX

# Rows and bytes in memory at a time, and in one transaction.
PAGE_ROWS, PAGE_BYTES = 500, 4_000_000
# Values that belong to a place and not to the library: the version of its tables, and marks.
_LOCAL_VALUES = ("schema", database.MOVED, database.COPYING, database.ARRIVED)


class SqlRows:
    """All rows of a library; `machine` names this machine if several use the store."""

    tables: Sequence[str] = MOVING_TABLES

    def __init__(self, database: Database, changes: SqlChanges, machine: str = "") -> None:
        self._database, self._changes, self._machine = database, changes, machine

    def count(self, table: str) -> int:
        """Return how many rows a table has."""
        if not self._database.has_table(table):
            return 0
        return int(self._database.rows(f"SELECT count(*) FROM {table}", types=(INTEGER,))[0][0])

    def pages(self, table: str) -> Iterator[RowPage]:
        """Yield a table in pages of a limited number of rows and bytes; the last one reaches to the end."""
        after: Key = ()
        while True:
            until = self._page_end(table, after)
            yield RowPage(after, until, self._select(table, after, until))
            if not until:
                return
            after = until

    def digests(self, table: str, page: RowPage) -> dict[int, Digest]:
        """Return the digest of the rows of a page, by the id of their tool, which is their first value."""
        digests: dict[int, Digest] = {}
        for row in page.rows:
            texts = repr([len(value) if type(value) is bytes else value for value in row])
            digest = blake2b(texts.encode("utf-8", "surrogatepass"), digest_size=16)
            for value in row:
                if type(value) is bytes:
                    digest.update(value)
            digests[row[0]] = digests.get(row[0], Digest()) + Digest(1, int.from_bytes(digest.digest(), "big"))
        return digests

    def last_key(self, table: str) -> Key:
        """Return the key of the last row of a table, an empty one if it has no rows."""
        if not self._database.has_table(table):
            return ()
        key = TABLES[table].key
        order = ", ".join(f"{column} DESC" for column in key)
        rows = self._database.rows(
            f"SELECT {', '.join(key)} FROM {table} ORDER BY {order} LIMIT 1", types=_key_types(table)
        )
        return tuple(rows[0]) if rows else ()

    @retried_until_commit  # new rows can be inserted once
    def put_page(self, table: str, page: RowPage, *, is_new: bool) -> bool:
        """Replace the rows between two keys with those of a page; return whether that changed anything."""
        if not is_new and self._select(table, page.after, page.until, limit=len(page.rows) + 1) == page.rows:
            return False
        with self._database.transaction(is_move=True) as connection:
            if not connection.has_table(table):
                if not page.rows:
                    return False
                connection.ensure_table(table)
            if table == "tools":
                _put_tools(connection, page)
                return True
            if not is_new:
                where, values = _between(TABLES[table], page.after, page.until)
                connection.execute(f"DELETE FROM {table}{where}", values)
            # The first value of a row is the id of its tool, which is not a column.
            connection.executemany(_insert_statement(table), [row[1:] for row in page.rows])
        return True

    def last_ids(self) -> dict[str, int]:
        """Return the highest id that each table with ids has ever given."""
        return {table: self._database.last_id(table) for table in TABLES_WITH_IDS}

    @retried
    def put_last_ids(self, ids: Mapping[str, int]) -> None:
        """Give only higher ids from now on."""
        with self._database.transaction(is_move=True) as connection:
            for table, last_id in ids.items():
                connection.put_last_id(table, last_id)

    def values(self) -> dict[str, str]:
        """Return the values that describe the library as a whole."""
        rows = self._database.rows("SELECT key, value FROM meta", types=(TEXT, TEXT))
        # What the scans of this machine found, the files of facts and kept counts may change without a lock, and are of
        # no use elsewhere or made again.
        prefixes = (RECORD_PREFIX, FACTS_PREFIX, TOTALS_PREFIX)
        return {key: value for key, value in rows if key not in _LOCAL_VALUES and not key.startswith(prefixes)}

    @retried
    def put_values(self, values: Mapping[str, str], index_files: Mapping[int, str], *, is_finished: bool) -> None:
        """Store the values of another library, and the index files of this machine by tool."""
        values = {key: value for key, value in values.items() if self._is_valid_here(key)}
        values |= {self._changes.index_file_key(tool_id): name for tool_id, name in index_files.items() if name}
        values[database.ARRIVED if is_finished else database.COPYING] = values["id"]
        with self._database.transaction(is_move=True) as connection:
            connection.execute("DELETE FROM meta WHERE key <> 'schema'")
            connection.executemany("INSERT INTO meta VALUES (?, ?)", list(values.items()))
            if self._machine:
                connection.execute(
                    "INSERT INTO meta SELECT ? || CAST(id AS TEXT), ? FROM tools WHERE 1 = 1"
                    " ON CONFLICT (key) DO NOTHING",
                    (MACHINE_PREFIX, self._machine),
                )

    def copy_of(self) -> str:
        """Return the id of the library that this one is a copy of and nothing else, or an empty string."""
        stored = database.read_marks(self._database)
        return stored.get(database.COPYING) or stored.get(database.ARRIVED, "")

    def is_unfinished(self) -> bool:
        """Return whether this library is a copy that is not complete."""
        return database.COPYING in database.read_marks(self._database)

    @retried
    def begin_use(self) -> None:
        """Make this library more than a copy."""
        with self._database.transaction():
            pass

    @retried
    def begin_copy(self, library_id: str) -> None:
        """Mark this library as an unfinished copy, so that no other command uses it."""
        with self._database.transaction(is_move=True) as connection:
            connection.execute("DELETE FROM meta WHERE key IN (?, ?)", (database.MOVED, database.ARRIVED))
            put_meta(connection, database.COPYING, library_id)

    @contextmanager
    def leave(self, place: str) -> Iterator[None]:
        """Run the block while writers wait, and then mark this library as moved; if it fails, as nothing."""
        with self._database.transaction(is_move=True) as connection:
            yield
            put_meta(connection, database.MOVED, place)
            advance_generation(connection)  # its followers notice

    @retried
    def stay(self) -> None:
        """Remove the mark that this library has moved."""
        with self._database.transaction(is_move=True) as connection:
            connection.execute("DELETE FROM meta WHERE key = ?", (database.MOVED,))

    def _is_valid_here(self, key: str) -> bool:
        """Return whether a value is not the name of an index file, or that of another machine with this server."""
        first, *rest = key.split(" ")
        return first != "derived" or (bool(self._machine) and len(rest) == 2)

    def _page_end(self, name: str, after: Key) -> Key:
        """Return the key of the last row of the page after a key, an empty one if no rows follow that page."""
        if not self._database.has_table(name):
            return ()
        table = TABLES[name]
        key = ", ".join(table.key)
        sizes = " + ".join(f"coalesce({self._database.byte_length(column)}, 0)" for column in table.large) or "0"
        where, values = _between(table, after, ())
        rows = self._database.rows(
            f"SELECT {key}, CAST({sizes} AS BIGINT) FROM {name}{where} ORDER BY {key} LIMIT ?",
            (*values, PAGE_ROWS + 1),
            types=(*_key_types(name), INTEGER),
        )
        total = 0
        for number, (*row_key, size) in enumerate(rows[:-1], 1):  # a row follows each of these
            total += size
            if total >= PAGE_BYTES or number == PAGE_ROWS:
                return tuple(row_key)
        return ()

    def _select(self, name: str, after: Key, until: Key, *, limit: int | None = None) -> list[Row]:
        """Return the rows after one key and up to another, each once, with the id of their tool before their values."""
        if not self._database.has_table(name):
            return []
        table = TABLES[name]
        where, values = _between(table, after, until)
        rows = self._database.rows(
            f"SELECT {table.tool}, {', '.join(table.columns)} FROM {name}{where} ORDER BY {', '.join(table.key)}"
            + ("" if limit is None else " LIMIT ?"),
            values if limit is None else (*values, limit),
            types=(INTEGER, *table.columns.values()),
        )
        return list(dict.fromkeys(rows))


def _between(table: Table, after: Key, until: Key) -> tuple[str, Key]:
    """Return an SQL condition for the rows after one key and up to another, and its values."""
    columns = f"({', '.join(table.key)})"
    bounds = [(operator, key) for operator, key in ((">", after), ("<=", until)) if key]
    conditions = [f"{columns} {operator} ({placeholders(key)})" for operator, key in bounds]
    return (f" WHERE {' AND '.join(conditions)}" if conditions else ""), (*after, *until)


def _key_types(name: str) -> list[frozenset[type]]:
    return [TABLES[name].columns[column] for column in TABLES[name].key]


def _insert_statement(name: str) -> str:
    columns = TABLES[name].columns
    return f"INSERT INTO {name} ({', '.join(columns)}) VALUES ({placeholders(list(columns))})"


def _put_tools(connection: Connection, page: RowPage) -> None:
    """Write tools without deleting those that stay: their documents would go with them."""
    where, bounds = _between(TABLES["tools"], page.after, page.until)
    ids = [row[0] for row in page.rows] or [0]
    gone = f"{where or ' WHERE 1 = 1'} AND id NOT IN ({placeholders(ids)})"
    connection.execute(f"DELETE FROM tools{gone}", (*bounds, *ids))
    # Two tools may have exchanged their names.
    connection.execute(f"UPDATE tools SET name = '~moving ' || CAST(id AS TEXT){where}", bounds)
    changes = ", ".join(f"{column} = excluded.{column}" for column in TABLES["tools"].columns)
    connection.executemany(
        f"{_insert_statement('tools')} ON CONFLICT (id) DO UPDATE SET {changes}", [row[1:] for row in page.rows]
    )
