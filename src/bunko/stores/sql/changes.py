"""Track generations, and what was written and removed since one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bunko.errors import INCOMPLETE_HINT, LibraryDamaged
from bunko.stores.filters import tiebreak_order
from bunko.stores.sql.database import (
    BLOB,
    INTEGER,
    NULL,
    TEXT,
    ColumnType,
    Connection,
    Database,
    batches,
    decode_strings,
    placeholders,
    retried,
)
from bunko.stores.sql.totals import keep_counts, read_counts
from bunko.text.sentence_codec import decode_sentences
from bunko.text.term_codec import chunk_count, unpack_terms
from bunko.types import text_in_context, text_to_index
from bunko.types.records import IndexNote, StoredChunk

if TYPE_CHECKING:
    import numpy.typing as npt

    from bunko.types import SentenceSubwords


_SELECT_GENERATION = "SELECT value FROM meta WHERE key = 'generation'"
_ADVANCE_GENERATION = "UPDATE meta SET value = CAST(CAST(value AS BIGINT) + 1 AS TEXT) WHERE key = 'generation'"
_PUT_META = "INSERT INTO meta VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value"
_DOCUMENT_BATCH = 200  # documents whose texts are in memory at a time


class SqlChanges:
    """What changed since a generation, for indexes that follow the store."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def generation(self) -> int:
        """Return the generation of the current read transaction."""
        rows = self._database.rows(_SELECT_GENERATION, types=(TEXT,))
        with self._database.decode_values():
            return int(rows[0][0])

    def chunks_since(self, tool_id: int, since: int) -> Iterator[StoredChunk]:
        """Yield the chunks of all documents written after a generation, in the order they were written."""
        return self.chunks_of(self.documents_since(tool_id, since))

    def documents_since(self, tool_id: int, since: int) -> list[int]:
        """Return the ids of the documents written after a generation, in the order they were written."""
        rows = self._database.rows(
            "SELECT id FROM documents WHERE tool_id = ? AND generation > ? ORDER BY id",
            (tool_id, since),
            types=(INTEGER,),
        )
        return [row[0] for row in rows]

    def chunks_of(self, document_ids: Sequence[int]) -> Iterator[StoredChunk]:
        """Yield the chunks of documents, in the order they were written; a document that was removed has none."""
        for batch in batches(document_ids, _DOCUMENT_BATCH):
            documents = self._documents(batch)
            chunks = self._chunks(batch)
            if len(chunks) != sum(chunk_count(document[-1]) for document in documents.values()):
                # Without this, a search would leave out texts of which the user knows that they are there.
                raise LibraryDamaged(f"{self._database.location} lacks chunks of its documents", hint=INCOMPLETE_HINT)
            yield from self._stored_chunks(documents, chunks)

    def chunk_sentences(self, ids: Sequence[int]) -> dict[int, SentenceSubwords | str | None]:
        """Return the subwords of those of the chunks that still exist, or else their texts; None without a vector."""
        join, column = self._subwords_column()
        join = f" LEFT JOIN vectors ON vectors.key = vector_key{join}"
        columns, types = f"vectors.key, {column}", (BLOB | NULL, BLOB | NULL)
        found: dict[int, SentenceSubwords | str | None] = {}
        old = []
        for chunk_id, key, blob in self._rows_by_id(columns, ids, types, join):
            with self._database.decode_values():
                found[chunk_id] = None if blob is None else decode_sentences(blob)
            if key is not None and blob is None:
                old.append(chunk_id)
        texts = self._rows_by_id(
            'title, heading_path, start, "end", chunks.text, documents.text',
            old,
            (TEXT, TEXT, INTEGER, INTEGER, TEXT | NULL, TEXT),
        )
        for chunk_id, title, heading_path, start, end, text, document_text in texts:
            with self._database.decode_values():
                chunk_text = document_text[start:end] if text is None else text
                found[chunk_id] = text_in_context(title, decode_strings(heading_path), chunk_text)
        return found

    def _rows_by_id(
        self, columns: str, ids: Sequence[int], types: Sequence[ColumnType], join: str = ""
    ) -> Iterator[tuple[Any, ...]]:
        """Yield the id and columns of chunks."""
        for batch in batches(ids):
            yield from self._database.rows(
                f"SELECT chunks.id, {columns} FROM chunks"
                f" JOIN documents ON documents.id = document_id{join} WHERE chunks.id IN ({placeholders(batch)})",
                batch,
                types=(INTEGER, *types),
            )

    def _documents(self, ids: Sequence[int]) -> dict[int, tuple[Any, ...]]:
        """Return URI, title, text and terms of documents by id."""
        rows = self._database.rows(
            f"SELECT id, uri, title, text, terms FROM documents WHERE id IN ({placeholders(ids)})",
            ids,
            types=(INTEGER, TEXT, TEXT, TEXT, BLOB),
        )
        return {row[0]: row[1:] for row in rows}

    def _chunks(self, document_ids: Sequence[int]) -> list[tuple[Any, ...]]:
        join, column = self._subwords_column()
        return self._database.rows(
            'SELECT chunks.id, document_id, ordinal, start, "end", heading_path, chunks.text, vector,'
            f" {column} FROM chunks LEFT JOIN vectors ON vectors.key = vector_key{join}"
            f" WHERE document_id IN ({placeholders(document_ids)}) ORDER BY document_id, ordinal",
            document_ids,
            types=(INTEGER, INTEGER, INTEGER, INTEGER, INTEGER, TEXT, TEXT | NULL, BLOB | NULL, BLOB | NULL),
        )

    def _subwords_column(self) -> tuple[str, str]:
        """Return the SQL that joins the subwords of chunks, and their column; not every library has the table."""
        if not self._database.has_table("subwords"):
            return "", "NULL"
        return " LEFT JOIN subwords ON subwords.key = vector_key", "sentences"

    def _stored_chunks(
        self, documents: Mapping[int, tuple[Any, ...]], chunks: Sequence[tuple[Any, ...]]
    ) -> Iterator[StoredChunk]:
        current_id = 0
        terms: list[tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint16]]] = []
        with self._database.decode_values():
            for chunk_id, document_id, ordinal, start, end, heading_path, text, vector, sentences in chunks:
                uri, title, document_text, packed_terms = documents[document_id]
                if document_id != current_id:
                    current_id, terms = document_id, unpack_terms(packed_terms)
                term_keys, term_counts = terms[ordinal]
                chunk_text = document_text[start:end] if text is None else text
                yield StoredChunk(
                    chunk_id,
                    document_id,
                    tiebreak_order(uri, ordinal),
                    text_to_index(title, decode_strings(heading_path), chunk_text),
                    term_keys,
                    term_counts,
                    None if vector is None else np.frombuffer(vector, np.float32),
                    None if sentences is None else decode_sentences(sentences),
                )

    def chunk_ids(self, tool_id: int) -> list[int]:
        """Return the ids of all chunks of a tool."""
        query = "SELECT chunks.id FROM chunks JOIN documents ON documents.id = document_id WHERE tool_id = ?"
        return [row[0] for row in self._database.rows(query, (tool_id,), types=(INTEGER,))]

    def removed_since(self, tool_id: int, since: int) -> list[int] | None:
        """Return the ids of the documents removed after a generation, or None if those records were pruned."""
        pruned = self._meta_value(f"forgotten {tool_id}")
        with self._database.decode_values():
            if pruned and since < int(pruned):
                return None
        rows = self._database.rows(
            "SELECT document_id FROM removed WHERE tool_id = ? AND generation > ?", (tool_id, since), types=(INTEGER,)
        )
        return [row[0] for row in rows]

    def redated_since(self, tool_id: int, since: int) -> list[int]:
        """Return the ids of documents whose date, that of their file, became another day after a generation."""
        if not self._database.has_table("redated"):
            return []
        rows = self._database.rows(
            "SELECT document_id FROM redated JOIN documents ON documents.id = document_id"
            " WHERE tool_id = ? AND redated.generation > ? ORDER BY document_id",
            (tool_id, since),
            types=(INTEGER,),
        )
        return [row[0] for row in rows]

    def last_generation(self, tool_id: int) -> int:
        """Return a generation after which nothing of a tool was written or removed; it never goes back."""
        queries = [
            "SELECT COALESCE(MAX(generation), 0) FROM documents WHERE tool_id = ?",
            "SELECT COALESCE(MAX(generation), 0) FROM removed WHERE tool_id = ?",
        ]
        if self._database.has_table("redated"):
            queries.append(
                "SELECT COALESCE(MAX(redated.generation), 0) FROM redated JOIN documents ON documents.id = document_id"
                " WHERE tool_id = ?"
            )
        generations: list[int] = [self._database.rows(query, (tool_id,), types=(INTEGER,))[0][0] for query in queries]
        with self._database.decode_values():
            return max(*generations, int(self._meta_value(f"forgotten {tool_id}") or 0))

    @retried
    def prune_removals(self, tool_id: int, before: int) -> None:
        """Delete the records of removals up to a generation."""
        with self._database.transaction() as connection:
            counts = read_counts(connection, tool_id)
            connection.execute("DELETE FROM removed WHERE tool_id = ? AND generation <= ?", (tool_id, before))
            put_meta(connection, f"forgotten {tool_id}", str(before))
            if counts is not None:  # they describe the present still
                keep_counts(connection, tool_id, generation_in_transaction(connection), counts)

    @retried
    def set_index_file(self, tool_id: int, name: str) -> None:
        """Store the name of the tool's current index file."""
        with self._database.transaction() as connection:
            put_meta(connection, self.index_file_key(tool_id), name)

    def index_file(self, tool_id: int) -> str:
        """Return the name of the tool's current index file, or an empty string."""
        return self._meta_value(self.index_file_key(tool_id))

    def index_file_key(self, tool_id: int) -> str:
        """Return the key under which the name of a tool's index file is stored."""
        return f"derived {tool_id}"

    @retried
    def set_index_note(self, tool_id: int, index: str, note: str) -> None:
        """Store the note of an index outside the library about its copy of a tool; an empty one deletes it."""
        with self._database.transaction() as connection:
            if note:
                put_meta(connection, _note_key(tool_id, index), note)
            else:
                connection.execute("DELETE FROM meta WHERE key = ?", (_note_key(tool_id, index),))

    def index_note(self, tool_id: int, index: str) -> str:
        """Return the note of an index about its copy of a tool, or an empty string."""
        return self._meta_value(_note_key(tool_id, index))

    def _meta_value(self, key: str) -> str:
        rows = self._database.rows("SELECT value FROM meta WHERE key = ?", (key,), types=(TEXT,))
        return str(rows[0][0]) if rows else ""


def generation_in_transaction(connection: Connection) -> int:
    """Return the generation inside a write transaction."""
    return int(connection.execute(_SELECT_GENERATION).fetchone()[0])


def advance_generation(connection: Connection) -> int:
    """Start a new generation and return it."""
    connection.execute(_ADVANCE_GENERATION)
    return generation_in_transaction(connection)


def put_meta(connection: Connection, key: str, value: str) -> None:
    """Store a value of the library by its key."""
    connection.execute(_PUT_META, (key, value))


def replace_note(connection: Connection, tool_id: int, note: IndexNote) -> bool:
    """Replace the note of an index about its copy of a tool; return False if it is another one now."""
    key = _note_key(tool_id, note.name)
    row = connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    if row is None or row[0] != note.old:
        return False
    put_meta(connection, key, note.new)
    return True


def _note_key(tool_id: int, index: str) -> str:
    return f"index {index} {tool_id}"
