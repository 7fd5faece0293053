"""Delete the vectors that nothing refers to any more, in small transactions between which others write.

What a document used is released when the document changes or goes, and not deleted: until the import ends, another
document may have the same text. The table `kept` holds it until then, with no embedder, as it holds pinned vectors.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bunko.stores.sql.database import BLOB, INTEGER, Connection, Database, batches, placeholders
from bunko.stores.sql.scans import PUT_VALUE
from bunko.types.records import VectorRoom

RELEASED = ""  # in place of an embedder in `kept`: a vector that may be deleted once no chunk uses it

# A key in `meta`: every vector that no chunk uses is in `kept`. Older libraries do not have it.
_SWEPT = "swept"
BATCH = 500  # vectors in one transaction: some milliseconds
_IS_UNUSED = "NOT EXISTS (SELECT 1 FROM chunks WHERE vector_key = vectors.key)"
# By tool, because the primary key of `kept` begins with it.
_IS_UNPINNED = (
    "NOT EXISTS (SELECT 1 FROM tools JOIN kept ON kept.tool_id = tools.id AND kept.key = vectors.key WHERE {})"
)


def release_vectors(connection: Connection, condition: str, values: Sequence[Any]) -> None:
    """Record that the documents which fulfil a condition do not use their vectors any more."""
    documents = f"FROM chunks JOIN documents ON documents.id = document_id WHERE {condition} AND vector_key IS NOT NULL"
    if connection.execute(f"SELECT 1 {documents} LIMIT 1", values).fetchone():
        connection.ensure_table("kept")
        connection.execute(
            f"INSERT INTO kept SELECT DISTINCT tool_id, vector_key, '{RELEASED}' {documents}"
            " ON CONFLICT (tool_id, key) DO NOTHING",
            values,
        )


def delete_released(database: Database, tool_id: int) -> None:
    """Delete the vectors that a tool released and that nothing uses; in an older library, all unused ones."""
    if not database.rows("SELECT 1 FROM meta WHERE key = ?", (_SWEPT,), types=(INTEGER,)):
        delete_unused(database)
    query = f"SELECT key FROM kept WHERE tool_id = ? AND embedder = '{RELEASED}' ORDER BY key LIMIT ?"
    while database.has_table("kept") and (keys := _keys(database, query, (tool_id, BATCH))):
        # Another tool may have released the same vector and still have use for it.
        if not _delete(database, keys, _IS_UNPINNED.format("tool_id <> ?"), (tool_id,), released_by=tool_id):
            return


def delete_unused(database: Database) -> None:
    """Delete all vectors that no chunk uses and that are not pinned."""
    with database.transaction() as connection:
        connection.execute("DELETE FROM meta WHERE key = ?", (_SWEPT,))  # if this ends early, the next import goes on
        if not connection.exclude_imports():
            return
        connection.ensure_table("chunks_by_vector")
        connection.ensure_table("kept")
    condition = _IS_UNPINNED.format("embedder <> ?")
    query = f"SELECT key FROM vectors WHERE key > ? AND {_IS_UNUSED} AND {condition} ORDER BY key LIMIT ?"
    last = b""
    while keys := _keys(database, query, (last, RELEASED, BATCH)):
        if not _delete(database, keys, condition, (RELEASED,)):
            return
        last = keys[-1]
    with database.transaction() as connection:
        connection.execute(
            "DELETE FROM kept WHERE embedder = ? AND NOT EXISTS"
            f" (SELECT 1 FROM vectors WHERE vectors.key = kept.key AND {_IS_UNUSED})",
            (RELEASED,),
        )
        connection.execute(PUT_VALUE, (_SWEPT, "1"))


def unused_room(database: Database) -> VectorRoom:
    """Return how many vectors no chunk uses, and how many bytes they and the subwords of their texts take."""
    unused = "WHERE key IN (SELECT key FROM vectors EXCEPT SELECT vector_key FROM chunks)"
    query = f"SELECT count(*), coalesce(sum(length(vector)), 0) FROM vectors {unused}"
    count, size = database.rows(query, types=(INTEGER, INTEGER))[0]
    if count and database.has_table("subwords"):
        query = f"SELECT coalesce(sum(length(sentences)), 0) FROM subwords {unused}"
        size += database.rows(query, types=(INTEGER,))[0][0]
    return VectorRoom(count, size)


def _keys(database: Database, query: str, values: Sequence[Any]) -> list[bytes]:
    return [row[0] for row in database.rows(query, values, types=(BLOB,))]


def _delete(
    database: Database, keys: Sequence[bytes], condition: str, values: Sequence[Any], *, released_by: int | None = None
) -> bool:
    """Delete those of some vectors that nothing uses now; return False while another import may count on them."""
    with database.transaction() as connection:
        # It may have found a vector that no chunk uses yet; the end of the next import deletes it.
        if not connection.exclude_imports():
            return False
        connection.ensure_table("chunks_by_vector")
        for batch in batches(keys):
            connection.execute(
                f"DELETE FROM vectors WHERE key IN ({placeholders(batch)}) AND {_IS_UNUSED} AND {condition}",
                (*batch, *values),
            )
            if connection.has_table("subwords"):
                connection.execute(
                    f"DELETE FROM subwords WHERE key IN ({placeholders(batch)})"
                    " AND NOT EXISTS (SELECT 1 FROM vectors WHERE vectors.key = subwords.key)",
                    batch,
                )
            if released_by is not None:
                connection.execute(
                    f"DELETE FROM kept WHERE tool_id = ? AND embedder = ? AND key IN ({placeholders(batch)})",
                    (released_by, RELEASED, *batch),
                )
    return True
