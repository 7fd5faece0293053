"""The tables of a library, declared once and created by each database."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from bunko.stores.postgres import schema as postgres
from bunko.stores.sql.database import BLOB, INTEGER, NULL, REAL, TEXT
from bunko.stores.sql.tables import TABLES, VECTOR_INDEX
from bunko.stores.sqlite import schema as sqlite

STORED = Path(__file__).parents[1] / "fixtures" / "libraries"
TYPES = {"TEXT": TEXT, "INTEGER": INTEGER, "REAL": REAL, "BLOB": BLOB}
IN_A_FILE = [*sqlite.SCRIPTS, *sqlite.OPTIONAL_SCRIPTS.values()]
ON_A_SERVER = [*map(postgres.table_statements, TABLES), VECTOR_INDEX]


@pytest.mark.parametrize(
    ("name", "scripts"),
    [(f"sqlite-{sqlite.VERSION}.sql", IN_A_FILE), (f"postgres-{postgres.VERSION}.sql", ON_A_SERVER)],
    ids=["sqlite", "postgres"],
)
def test_the_tables_of_a_version_never_change(name: str, scripts: list[str]) -> None:
    """Libraries of this version exist; what changes needs a new VERSION, a migration and a file here."""
    assert "\n\n".join(f"{script};" for script in scripts) + "\n" == (STORED / name).read_text(encoding="utf-8")


def test_every_column_of_a_file_is_declared_with_its_type() -> None:
    """Else it would be lost when a library moves."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(";".join(IN_A_FILE))
        for name, table in TABLES.items():
            columns = connection.execute(f"PRAGMA table_info({name})").fetchall()
            assert {column.strip('"'): types for column, types in table.columns.items()} == {
                column: TYPES[kind] if is_filled or in_key else TYPES[kind] | NULL
                for _, column, kind, is_filled, _, in_key in columns
            }
            assert table.columns.keys() >= {*table.key, *table.large}
        created = {row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    assert created == {*TABLES, "sqlite_sequence"}


def test_a_table_refers_only_to_tables_that_are_copied_before_it() -> None:
    order = list(TABLES)
    references = [
        (other, name) for name, table in TABLES.items() for other in re.findall(r"REFERENCES (\w+)", table.definition)
    ]
    assert len(references) > 5
    assert all(order.index(other) < order.index(name) for other, name in references)
