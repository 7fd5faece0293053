"""Remember the state of each tool's source in which a scan found nothing new."""

from __future__ import annotations

from bunko.stores.sql.database import TEXT, Connection, Database
from bunko.types.records import ScanRecord

# Keys in `meta`, each with the id of a tool: how often its fingerprints were written, that number when a document last
# got another time of its file, and the last record.
VERSION_PREFIX, TOUCHED_PREFIX, RECORD_PREFIX = "written ", "touched ", "unchanged "
# A key of the same kind: the nonce of the file with the facts of its documents, which a copy of an older library lacks.
FACTS_PREFIX = "facts "
PUT_VALUE = "INSERT INTO meta VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value"
_ADVANCE = (
    "INSERT INTO meta VALUES (?, '1')"
    " ON CONFLICT (key) DO UPDATE SET value = CAST(CAST(meta.value AS BIGINT) + 1 AS TEXT)"
)
_MARK_TOUCHED = (
    "INSERT INTO meta SELECT ?, value FROM meta WHERE key = ? ON CONFLICT (key) DO UPDATE SET value = excluded.value"
)


class SqlScans:
    """What scans of the sources found: data that may be lost."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def get(self, tool_id: int) -> ScanRecord:
        """Return the version of a tool's fingerprints, and the state of its source if nothing was written since."""
        version_key, record_key = f"{VERSION_PREFIX}{tool_id}", f"{RECORD_PREFIX}{tool_id}"
        rows = self._database.rows(
            "SELECT key, value FROM meta WHERE key IN (?, ?)", (version_key, record_key), types=(TEXT, TEXT)
        )
        values = dict(rows)
        version = values.get(version_key, "0")
        recorded_version, *rest = values.get(record_key, "").split(" ", 2)
        with self._database.decode_values():
            if recorded_version != version or len(rest) != 2 or not rest[0].isdecimal():
                return ScanRecord(int(version))
            return ScanRecord(int(version), rest[1], int(rest[0]))

    def put(self, tool_id: int, record: ScanRecord) -> bool:
        """Record the state of a tool's source; return False if another process is writing."""
        value = f"{record.version} {record.unchanged} {record.state}"
        return self._database.try_transaction([(PUT_VALUE, (f"{RECORD_PREFIX}{tool_id}", value))])


def advance_version(connection: Connection, tool_id: int, *, is_touch: bool = False) -> None:
    """Record that the fingerprints of a tool are written in this transaction, with `is_touch` also times of files."""
    connection.execute(_ADVANCE, (f"{VERSION_PREFIX}{tool_id}",))
    if is_touch:
        connection.execute(_MARK_TOUCHED, (f"{TOUCHED_PREFIX}{tool_id}", f"{VERSION_PREFIX}{tool_id}"))


def delete_scans(connection: Connection, tool_id: int) -> None:
    """Delete the records of a tool's source."""
    keys = [f"{prefix}{tool_id}" for prefix in (VERSION_PREFIX, TOUCHED_PREFIX, RECORD_PREFIX, FACTS_PREFIX)]
    connection.execute("DELETE FROM meta WHERE key IN (?, ?, ?, ?)", keys)
