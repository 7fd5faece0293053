"""Read and write documents and their chunks."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bunko.runtime.failpoints import reach_failpoint
from bunko.stores.filters import document_matcher, effective_date, is_redated, separate_chunk_text
from bunko.stores.sql.changes import advance_generation, generation_in_transaction
from bunko.stores.sql.database import (
    BLOB,
    INTEGER,
    NULL,
    TEXT,
    Connection,
    Database,
    batches,
    decode_strings,
    placeholders,
    retried,
)
from bunko.stores.sql.facts import FactCache, FactsFile
from bunko.stores.sql.scans import advance_version
from bunko.stores.sql.totals import Counts, count_documents, keep_counts, read_counts
from bunko.stores.sql.unused_vectors import release_vectors
from bunko.stores.sql.vectors import store_vectors
from bunko.types import RACY_NS, WHOLE_FILE, Chunk, Document, Fingerprint, LineSpan, Problem, SourceEntry, Text
from bunko.types.records import (
    ChunkRow,
    EmbeddingUsage,
    FailedDocument,
    Filter,
    ListedDocument,
    PreparedDocument,
    StoredDocument,
)

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from bunko.types import SentenceSubwords

_SELECT_LISTED = "SELECT uri, title, date, modified_ns, tags, media_type, size, first_line, last_line FROM documents"
_LISTED_TYPES = (TEXT, TEXT, TEXT, INTEGER, TEXT, TEXT, *(INTEGER,) * 3)
_INSERT_DOCUMENT = (
    "INSERT INTO documents (tool_id, uri, generation, content_hash, size, modified_ns, seen_ns, first_line,"
    " last_line, media_type, encoding, title, date, tags, body, text, terms)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_INSERT_CHUNK = (
    'INSERT INTO chunks (document_id, ordinal, start, "end", first_line, last_line, heading, heading_path, text,'
    " vector_key) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
# Created once: json.dumps creates an encoder for every list, which takes longer than encoding it.
_encode_json = json.JSONEncoder(ensure_ascii=False).encode

_CHUNK_TYPES = (
    *(INTEGER,) * 7, TEXT, TEXT, TEXT | NULL, TEXT, TEXT, TEXT, INTEGER, TEXT, TEXT, TEXT | NULL, INTEGER, INTEGER,
    INTEGER, TEXT, INTEGER,
)  # fmt: skip
_EXPORT_TYPES = (
    INTEGER, TEXT, INTEGER, INTEGER, INTEGER, *(TEXT,) * 6, INTEGER, TEXT, BLOB, INTEGER, INTEGER,
)  # fmt: skip


class SqlDocuments:
    """The documents of all tools, with their chunks."""

    def __init__(self, database: Database, facts_file: FactsFile | None = None) -> None:
        self._database = database
        self._facts = FactCache(database, facts_file)

    def fingerprints(self, tool_id: int) -> dict[str, Fingerprint]:
        """Return the fingerprint of each document and of each failed entry, by URI."""
        # The columns of a fingerprint, in its order: a library may have hundreds of thousands of documents.
        columns = f"uri, content_hash, size, CASE WHEN seen_ns - {RACY_NS} > modified_ns THEN modified_ns ELSE 0 END"
        rows = self._database.rows(
            f"SELECT {columns}, first_line FROM documents WHERE tool_id = ?"
            f" UNION ALL SELECT {columns}, 1 FROM failures WHERE tool_id = ?",
            (tool_id, tool_id),
            types=(TEXT, TEXT, INTEGER, INTEGER, INTEGER),
        )
        return {uri: Fingerprint(*values) for uri, *values in rows}

    def failures(self, tool_id: int) -> list[Problem]:
        """Return the entries that could not be imported."""
        rows = self._database.rows(
            "SELECT uri, reason FROM failures WHERE tool_id = ? ORDER BY uri", (tool_id,), types=(TEXT, TEXT)
        )
        return [Problem(*row) for row in rows]

    @retried
    def write(
        self,
        tool_id: int,
        *,
        upsert: Sequence[PreparedDocument] = (),
        fail: Sequence[FailedDocument] = (),
        remove: Sequence[str] = (),
        touch: Sequence[SourceEntry] = (),
        vectors: Mapping[bytes, npt.NDArray[np.float32]] | None = None,
        sentences: Mapping[bytes, SentenceSubwords] | None = None,
        usage: Mapping[str, EmbeddingUsage] | None = None,
    ) -> int:
        """Write documents atomically and return the new generation; a failed entry replaces its document."""
        with self._database.transaction() as connection:
            advance_version(connection, tool_id, is_touch=bool(touch))
            redated = _find_redated(connection, tool_id, touch)
            has_changes = upsert or fail or remove or redated
            generation = advance_generation(connection) if has_changes else generation_in_transaction(connection)
            replaced = (*(prepared.document.uri for prepared in upsert), *(failure.entry.uri for failure in fail))
            counts = read_counts(connection, tool_id) if has_changes else None
            removed = _remove_documents(connection, tool_id, generation, [*remove, *replaced])
            _insert_failures(connection, tool_id, fail)
            reach_failpoint("store.removed")
            store_vectors(connection, vectors or {}, sentences or {}, usage or {})
            reach_failpoint("store.vectors")
            _insert_documents(connection, tool_id, generation, upsert)
            if counts is not None:
                added = count_documents(connection, "tool_id = ? AND generation = ?", (tool_id, generation))
                keep_counts(connection, tool_id, generation, counts.plus(removed, -1).plus(added))
            if redated:
                connection.ensure_table("redated")
                connection.executemany(
                    "INSERT INTO redated VALUES (?, ?)"
                    " ON CONFLICT (document_id) DO UPDATE SET generation = excluded.generation",
                    [(document_id, generation) for document_id in redated],
                )
            for entries in batches(touch):
                _touch_documents(connection, tool_id, entries)
            return generation

    def get(self, tool_id: int, uri: str) -> StoredDocument | None:
        """Return the document with this URI, or None."""
        return self.get_all(tool_id, (uri,)).get(uri)

    def get_all(self, tool_id: int, uris: Sequence[str]) -> dict[str, StoredDocument]:
        """Return the documents with these URIs that exist, by URI."""
        uri_by_key = {self._database.key_of(uri): uri for uri in uris}
        key = self._database.uri_key("uri")
        rows = self._database.rows(
            f"SELECT {key}, title, date, modified_ns, last_line, tags, content_hash, media_type, text, body, first_line"
            f" FROM documents WHERE tool_id = ? AND {key} IN ({placeholders(uri_by_key)})",
            (tool_id, *uri_by_key),
            types=(TEXT, TEXT, TEXT, INTEGER, INTEGER, TEXT, TEXT, TEXT, TEXT, INTEGER, INTEGER),
        )
        documents = {}
        with self._database.decode_values():
            for (
                key,
                title,
                date,
                modified_ns,
                last_line,
                tags,
                content_hash,
                media_type,
                text,
                body,
                first_line,
            ) in rows:
                date, lines = effective_date(date, modified_ns, last_line), _lines(first_line, last_line)
                facts = (title, date, decode_strings(tags), content_hash, media_type, text, body, lines)
                documents[uri_by_key[key]] = StoredDocument(uri_by_key[key], *facts)
        return documents

    def chunks(self, ids: Sequence[int], *, read_documents: bool = False) -> dict[int, ChunkRow]:
        """Return the chunks with these ids that still exist, and with `read_documents` what they were cut from."""
        rows = self._database.rows(
            'SELECT chunks.id, document_id, ordinal, start, "end", chunks.first_line, chunks.last_line, heading,'
            " heading_path, chunks.text, uri, title, date, modified_ns, tags, content_hash,"
            " CASE WHEN chunks.text IS NULL THEN documents.text END, tool_id,"
            " documents.first_line, documents.last_line, media_type, body"
            f" FROM chunks JOIN documents ON documents.id = document_id WHERE chunks.id IN ({placeholders(ids)})",
            ids,
            types=_CHUNK_TYPES,
        )
        chunk_rows: dict[int, ChunkRow] = {}
        documents: dict[int, StoredDocument] = {}
        with self._database.decode_values():
            for (
                chunk_id, document_id, index, start, end, first, last, heading, heading_path, chunk_text, uri, title,
                date, modified_ns, tags, content_hash, text, tool_id, first_line, last_line, media_type, body,
            ) in rows:  # fmt: skip
                chunk_text = text[start:end] if chunk_text is None else chunk_text
                chunk = Chunk(index, start, end, first, last, chunk_text, heading, decode_strings(heading_path))
                date = effective_date(date, modified_ns, last_line)
                facts = (uri, title, date, decode_strings(tags), content_hash)
                document = documents.get(document_id)
                if document is None and read_documents and text is not None:
                    document = StoredDocument(*facts, media_type, text, body, _lines(first_line, last_line))
                    documents[document_id] = document
                chunk_rows[chunk_id] = ChunkRow(tool_id, document_id, *facts, chunk, document)
        return chunk_rows

    def select(self, tool_id: int, where: Filter) -> list[int]:
        """Return the ids of the documents that match a filter."""
        return self._facts.select(tool_id, where)

    def find(self, tool_id: int, where: Filter) -> list[ListedDocument]:
        """Return the documents that match a filter, without their texts, in any order."""
        matches = document_matcher(where, tool_id)
        rows = self._database.rows(f"{_SELECT_LISTED} WHERE tool_id = ?", (tool_id,), types=_LISTED_TYPES)
        with self._database.decode_values():
            documents = [_listed_document(*row) for row in rows]
        return [document for document in documents if matches(document.uri, document.date, frozenset(document.tags))]

    def page(self, tool_id: int, *, after: str = "", limit: int = 100) -> list[ListedDocument]:
        """Return the documents whose URIs come after a given one, sorted by URI, without their texts."""
        key = self._database.uri_key("uri")
        rows = self._database.rows(
            f"{_SELECT_LISTED} WHERE tool_id = ? AND {key} > ? ORDER BY {key} LIMIT ?",
            (tool_id, self._database.key_of(after), limit),
            types=_LISTED_TYPES,
        )
        with self._database.decode_values():
            return [_listed_document(*row) for row in rows]

    def uris(self, tool_id: int, *, after: str = "", limit: int = 100) -> list[str]:
        """Return the URIs after a given one, sorted."""
        key = self._database.uri_key("uri")
        rows = self._database.rows(
            f"SELECT uri FROM documents WHERE tool_id = ? AND {key} > ? ORDER BY {key} LIMIT ?",
            (tool_id, self._database.key_of(after), limit),
            types=(TEXT,),
        )
        return [row[0] for row in rows]

    def uris_with_hash(self, tool_id: int, prefix: str) -> list[str]:
        """Return the URIs of documents whose content hash starts with a prefix."""
        rows = self._database.rows(
            "SELECT uri FROM documents WHERE tool_id = ? AND substr(content_hash, 1, CAST(? AS INTEGER)) = ?"
            " ORDER BY uri",
            (tool_id, len(prefix), prefix),
            types=(TEXT,),
        )
        return [row[0] for row in rows]

    def export(self, tool_id: int, uris: Sequence[str]) -> list[PreparedDocument]:
        """Return the documents as they were written, sorted by URI."""
        documents = []
        for batch in batches(uris):
            rows = self._database.rows(
                "SELECT id, uri, size, modified_ns, seen_ns, text, media_type, encoding, title, date, tags, body,"
                " content_hash, terms, first_line, last_line FROM documents"
                f" WHERE tool_id = ? AND {self._database.uri_key('uri')} IN ({placeholders(batch)})",
                [tool_id, *map(self._database.key_of, batch)],
                types=_EXPORT_TYPES,
            )
            chunks_by_document = self._chunks_by_document({row[0]: row[5] for row in rows})
            for row in rows:
                with self._database.decode_values():
                    tags = decode_strings(row[10])
                text = Text(row[5], row[6], row[7], row[8], row[9], tags, row[11])
                chunks, chunk_keys = chunks_by_document[row[0]]
                keys = [key for key in chunk_keys if key is not None]
                document = Document(SourceEntry(*row[1:5], lines=LineSpan(*row[14:])), text, row[12])
                documents.append(
                    PreparedDocument(document, chunks, row[13], keys if len(keys) == len(chunk_keys) else [])
                )
        return sorted(documents, key=lambda prepared: prepared.document.uri)

    def _chunks_by_document(self, texts: dict[int, str]) -> dict[int, tuple[list[Chunk], list[bytes | None]]]:
        """Return the chunks and the vector keys of each document, by document id."""
        by_document: dict[int, tuple[list[Chunk], list[bytes | None]]] = {
            document_id: ([], []) for document_id in texts
        }
        ids = list(texts)
        for row in self._database.rows(
            'SELECT document_id, ordinal, start, "end", first_line, last_line, text, heading, heading_path, vector_key'
            f" FROM chunks WHERE document_id IN ({placeholders(ids)}) ORDER BY document_id, ordinal",
            ids,
            types=(INTEGER, INTEGER, INTEGER, INTEGER, INTEGER, INTEGER, TEXT | NULL, TEXT, TEXT, BLOB | NULL),
        ):
            text = texts[row[0]][row[2] : row[3]] if row[6] is None else row[6]
            chunks, keys = by_document[row[0]]
            with self._database.decode_values():
                heading_path = decode_strings(row[8])
            chunks.append(Chunk(row[1], row[2], row[3], row[4], row[5], text, row[7], heading_path))
            keys.append(row[9])
        return by_document


def _lines(first: int, last: int) -> LineSpan:
    return WHOLE_FILE if first == 1 and not last else LineSpan(first, last)


def _listed_document(
    uri: str, title: str, date: str, modified_ns: int, tags: str, media_type: str, size: int, first: int, last: int
) -> ListedDocument:
    shown_date = effective_date(date, modified_ns, last)
    return ListedDocument(
        uri, title, shown_date, decode_strings(tags), media_type, size, modified_ns, LineSpan(first, last),
        is_dated_by_file=shown_date != date,
    )  # fmt: skip


def _remove_documents(connection: Connection, tool_id: int, generation: int, uris: Sequence[str]) -> Counts:
    """Remove documents and failures; return what was removed."""
    removed = Counts()
    for batch in batches(uris):
        condition = f"tool_id = ? AND {connection.uri_key('uri')} IN ({placeholders(batch)})"
        values = (tool_id, *map(connection.key_of, batch))
        if connection.execute(f"SELECT 1 FROM documents WHERE {condition} LIMIT 1", values).fetchone():
            removed = removed.plus(count_documents(connection, condition, values))
            release_vectors(connection, condition, values)
            connection.execute(
                f"INSERT INTO removed SELECT tool_id, id, ? FROM documents WHERE {condition}", (generation, *values)
            )
            connection.execute(f"DELETE FROM documents WHERE {condition}", values)
        connection.execute(f"DELETE FROM failures WHERE {condition}", values)
    return removed


def _insert_failures(connection: Connection, tool_id: int, failures: Sequence[FailedDocument]) -> None:
    connection.executemany(
        "INSERT INTO failures VALUES (?, ?, ?, ?, ?, ?, ?)",
        [
            (tool_id, entry.uri, failure.content_hash, entry.size, entry.modified_ns, entry.seen_ns, failure.reason)
            for failure in failures
            for entry in (failure.entry,)
        ],
    )


def _find_redated(connection: Connection, tool_id: int, entries: Sequence[SourceEntry]) -> list[int]:
    """Return the ids of the documents that get another day from their files."""
    ids = []
    for batch in batches(entries):
        by_uri = {entry.uri: entry for entry in batch}
        rows = connection.execute(
            "SELECT id, uri, modified_ns FROM documents WHERE tool_id = ? AND date = '' AND last_line = 0"
            f" AND uri IN ({placeholders(by_uri)})",
            (tool_id, *by_uri),
        ).fetchall()
        ids += [row[0] for row in rows if is_redated("", SourceEntry(row[1], 0, row[2], 0), by_uri[row[1]])]
    return ids


def _touch_documents(connection: Connection, tool_id: int, entries: Sequence[SourceEntry]) -> None:
    is_entry = f"tool_id = ? AND {connection.uri_key('uri')} = ?"
    keys = [connection.key_of(entry.uri) for entry in entries]
    connection.executemany(
        "UPDATE chunks SET (first_line, last_line) = (SELECT chunks.first_line + ? - documents.first_line,"
        " chunks.last_line + ? - documents.first_line FROM documents WHERE documents.id = document_id)"
        f" WHERE document_id = (SELECT id FROM documents WHERE {is_entry} AND first_line <> ?)",
        [
            (entry.lines.first, entry.lines.first, tool_id, key, entry.lines.first)
            for entry, key in zip(entries, keys, strict=True)
        ],
    )
    connection.executemany(
        f"UPDATE documents SET size = ?, modified_ns = ?, seen_ns = ?, first_line = ?, last_line = ? WHERE {is_entry}",
        [
            (entry.size, entry.modified_ns, entry.seen_ns, entry.lines.first, entry.lines.last, tool_id, key)
            for entry, key in zip(entries, keys, strict=True)
        ],
    )
    connection.executemany(
        f"UPDATE failures SET size = ?, modified_ns = ?, seen_ns = ? WHERE {is_entry}",
        [
            (entry.size, entry.modified_ns, entry.seen_ns, tool_id, key)
            for entry, key in zip(entries, keys, strict=True)
        ],
    )


def _insert_documents(
    connection: Connection, tool_id: int, generation: int, documents: Sequence[PreparedDocument]
) -> None:
    """Insert documents, then their chunks: a database on a server gets all of them in one message each."""
    ids = connection.insert_many(
        _INSERT_DOCUMENT, [_document_values(tool_id, generation, prepared) for prepared in documents]
    )
    connection.executemany(_INSERT_CHUNK, _chunk_values(ids, documents))


def _document_values(tool_id: int, generation: int, prepared: PreparedDocument) -> tuple[Any, ...]:
    document, text = prepared.document, prepared.document.text
    entry = document.entry
    return (
        tool_id, entry.uri, generation, document.content_hash, entry.size, entry.modified_ns, entry.seen_ns,
        entry.lines.first, entry.lines.last, text.media_type, text.encoding, text.title, text.date,
        _encode_json(text.tags), text.body_start, text.text, prepared.packed_terms,
    )  # fmt: skip


def _chunk_values(ids: Sequence[int], documents: Sequence[PreparedDocument]) -> Iterator[tuple[Any, ...]]:
    for document_id, prepared in zip(ids, documents, strict=True):
        text = prepared.document.text.text
        keys: Sequence[bytes | None] = prepared.vector_keys or [None] * len(prepared.chunks)
        for chunk, key in zip(prepared.chunks, keys, strict=True):
            yield (
                document_id, chunk.index, chunk.start, chunk.end, chunk.first_line, chunk.last_line, chunk.heading,
                _encode_json(chunk.heading_path), separate_chunk_text(chunk, text), key,
            )  # fmt: skip
        reach_failpoint("store.document")
