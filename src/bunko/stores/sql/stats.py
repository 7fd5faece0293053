"""Count, measure and list the documents of a tool in SQL, without loading their texts."""

from __future__ import annotations

from bunko.stores.filters import BEGINNING_CHARS, count_tags, document_matcher, effective_date, newest_first
from bunko.stores.sql.database import BLOB, INTEGER, TEXT, Database, decode_strings
from bunko.stores.sql.totals import KeptCounts
from bunko.text.term_codec import chunk_count
from bunko.types import LineSpan
from bunko.types.records import NO_FILTER, DatedDocument, DocumentSummary, Filter, StorageSize, Totals

_FLOAT_BYTES = 4
_FROM_CHUNKS = "FROM chunks JOIN documents ON documents.id = document_id WHERE tool_id = ?"


class SqlStats:
    """Counts, sizes and lists of a tool's documents, without their texts."""

    def __init__(self, database: Database) -> None:
        self._database, self._counts = database, KeptCounts(database)

    def totals(self, tool_id: int) -> Totals:
        """Return how many documents, chunks, vectors and characters a tool has."""
        counts = self._counts.get(tool_id)
        return Totals(counts.documents, counts.chunks, counts.vectors, counts.characters)

    def count_incomplete(self) -> int:
        """Return how many documents of all tools lack some of their chunks, as after damage to the file."""
        rows = self._database.rows(
            "SELECT substr(terms, 1, 4), (SELECT count(*) FROM chunks WHERE document_id = documents.id) FROM documents",
            types=(BLOB, INTEGER),
        )
        return sum(chunk_count(terms) != count for terms, count in rows)

    def storage_size(self, tool_id: int) -> StorageSize:
        """Return how many bytes a tool's rows take."""
        counts, dimension = self._counts.get(tool_id), self.dimension(tool_id)
        vector_count = 0
        if counts.vectors:
            query = f"SELECT count(DISTINCT vector_key) {_FROM_CHUNKS}"
            vector_count = self._database.rows(query, (tool_id,), types=(INTEGER,))[0][0]
        return StorageSize(counts.text_bytes, counts.index_bytes, vector_count * dimension * _FLOAT_BYTES, dimension)

    def dimension(self, tool_id: int) -> int:
        """Return the dimension of a tool's vectors, 0 if there are none."""
        # All vectors of a tool come from one embedder and have the same size, so measuring one is enough.
        lengths = self._database.rows(
            "SELECT length(vector) FROM vectors"
            f" WHERE key = (SELECT vector_key {_FROM_CHUNKS} AND vector_key IS NOT NULL LIMIT 1)",
            (tool_id,),
            types=(INTEGER,),
        )
        return int(lengths[0][0]) // _FLOAT_BYTES if lengths else 0

    def chunk_lengths(self, tool_id: int) -> list[tuple[int, int]]:
        """Return pairs of chunk length in characters and number of chunks, shortest first."""
        return [
            (length, count)
            for length, count in self._database.rows(
                f'SELECT coalesce(length(chunks.text), "end" - start) AS characters, count(*) {_FROM_CHUNKS}'
                " GROUP BY characters ORDER BY characters",
                (tool_id,),
                types=(INTEGER, INTEGER),
            )
        ]

    def list_documents(self, tool_id: int, *, skip: int = 0, limit: int = 20) -> list[DocumentSummary]:
        """Return a page of documents, sorted by URI."""
        rows = self._database.rows(
            "SELECT uri, title, (SELECT count(*) FROM chunks WHERE document_id = documents.id), length(text),"
            " substr(text, body + 1, CAST(? AS INTEGER)) FROM documents WHERE tool_id = ?"
            f" ORDER BY {self._database.uri_key('uri')} LIMIT ? OFFSET ?",
            (BEGINNING_CHARS, tool_id, limit, skip),
            types=(TEXT, TEXT, INTEGER, INTEGER, TEXT),
        )
        return [DocumentSummary(*row) for row in rows]

    def beginnings(self, tool_id: int, *, limit: int) -> list[str]:
        """Return the beginnings of at most `limit` documents that are spread evenly over all."""
        rows = self._database.rows(
            "SELECT substr(text, body + 1, CAST(? AS INTEGER)) FROM documents WHERE id IN (SELECT id FROM"
            " (SELECT id, row_number() OVER (ORDER BY id) - 1 AS position FROM documents WHERE tool_id = ?) AS numbered"
            " WHERE position % (((SELECT count(*) FROM documents WHERE tool_id = ?) + ? - 1) / ?) = 0) ORDER BY id",
            (BEGINNING_CHARS, tool_id, tool_id, limit, limit),
            types=(TEXT,),
        )
        return [row[0] for row in rows]

    def tags(self, tool_id: int) -> list[tuple[str, int]]:
        """Return each tag with its number of documents, most used first."""
        rows = self._database.rows(
            "SELECT tags FROM documents WHERE tool_id = ? AND tags <> '[]'", (tool_id,), types=(TEXT,)
        )
        with self._database.decode_values():
            return count_tags(decode_strings(row[0]) for row in rows)

    def recent_documents(self, tool_id: int, *, limit: int = 10, where: Filter = NO_FILTER) -> list[DatedDocument]:
        """Return the most recent documents, newest first; documents without a date come last."""
        rows = self._database.rows(
            "SELECT uri, date, modified_ns, last_line, tags FROM documents WHERE tool_id = ?",
            (tool_id,),
            types=(TEXT, TEXT, INTEGER, INTEGER, TEXT),
        )
        dated = [(row[0], effective_date(*row[1:4]), row[4]) for row in rows]
        if where:
            matches = document_matcher(where, tool_id)
            with self._database.decode_values():
                dated = [row for row in dated if matches(row[0], row[1], frozenset(decode_strings(row[2])))]
        documents = []
        for uri, date in newest_first((uri, date) for uri, date, _ in dated)[:limit]:
            for title, tags_json, beginning, first_line, last_line in self._database.rows(
                "SELECT title, tags, substr(text, body + 1, CAST(? AS INTEGER)), first_line, last_line FROM documents"
                f" WHERE tool_id = ? AND {self._database.uri_key('uri')} = ?",
                (BEGINNING_CHARS, tool_id, self._database.key_of(uri)),
                types=(TEXT, TEXT, TEXT, INTEGER, INTEGER),
            ):
                with self._database.decode_values():
                    document_tags, lines = decode_strings(tags_json), LineSpan(first_line, last_line)
                documents.append(DatedDocument(uri, title, date, document_tags, beginning, lines))
        return documents
