"""What only SQLite understands stands in few files, so that another database can run the same queries."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import bunko
from bunko import stores
from bunko.stores.sql.database import placeholders

PACKAGE = Path(bunko.__file__).parent
ONLY_SQLITE = re.compile(
    r"\bPRAGMA\b|\bINSERT OR\b|\bREPLACE INTO\b|\bifnull\(|sqlite_master|\browid\b|lastrowid|\bimport sqlite3\b"
    r"|LIMIT -1|\?[0-9]|[ (=]:[a-z]+\b|\bAS BLOB\b|\bGLOB\b|\bstrftime\(|\bgroup_concat\(|json_each|RETURNING",
)
SHARED_TABLES = re.compile(r"(?:FROM|INTO|UPDATE|JOIN) (?:documents|chunks|vectors|pages|answers|failures|removed)\b")
FILES_OF_SQLITE = re.compile(r"\bsqlite3\b|\bPRAGMA\b|-wal\b|-shm\b|stores\.sqlite|stores\.memory")


def test_queries_use_only_what_other_databases_understand_too() -> None:
    files = list((PACKAGE / "stores" / "sql").glob("*.py"))
    assert {"documents.py", "vectors.py", "tools.py"} <= {path.name for path in files}
    matches = {path.name: ONLY_SQLITE.findall(path.read_text(encoding="utf-8")) for path in files}
    assert {name: words for name, words in matches.items() if words} == {}


def test_only_the_shared_files_query_the_tables_of_a_library() -> None:
    files = [path for kind in ("sqlite", "postgres") for path in (PACKAGE / "stores" / kind).glob("*.py")]
    assert len(files) > 5
    matches = {path.name: SHARED_TABLES.findall(path.read_text(encoding="utf-8")) for path in files}
    assert {name: words for name, words in matches.items() if words and name != "schema.py"} == {}


def test_nothing_outside_the_stores_knows_the_files_of_sqlite() -> None:
    files = [path for path in PACKAGE.rglob("*.py") if not path.is_relative_to(PACKAGE / "stores")]
    assert len(files) > 100
    matches = {str(path): FILES_OF_SQLITE.findall(path.read_text(encoding="utf-8")) for path in files}
    of_chroma = str(PACKAGE / "indexes" / "chroma" / "local.py")  # which looks into Chroma's own database
    assert {name: words for name, words in matches.items() if words and name != of_chroma} == {}


def test_an_empty_list_of_values_is_valid_sql_that_matches_nothing(tmp_path: Path) -> None:
    store = stores.build("sqlite", tmp_path / "library.db")
    assert placeholders([]) == "NULL"  # PostgreSQL refuses IN ()
    assert store.documents.chunks([]) == {}
    store.close()


def test_every_query_says_which_types_it_expects() -> None:
    """A column of SQLite holds values of any type, and a damaged file uses that."""
    unchecked = []
    for path in (PACKAGE / "stores" / "sql").glob("*.py"):
        nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        for call in (node for node in nodes if isinstance(node, ast.Call)):
            is_query = isinstance(call.func, ast.Attribute) and call.func.attr == "rows"
            if is_query and "types" not in {keyword.arg for keyword in call.keywords}:
                unchecked.append(f"{path.name}:{call.lineno}")
    assert unchecked == []
