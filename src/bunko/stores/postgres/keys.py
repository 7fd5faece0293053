"""Look up paths and URLs of any length: an index of PostgreSQL takes about 2,700 bytes."""

from __future__ import annotations

from hashlib import sha256

# A longer one has a key of its first characters and its hash. Filled up with blanks, that is longer than any text which
# is its own key, so nobody can name a file that takes the place of another one.
_MAX_BYTES, _BEGINNING_CHARS = 1000, 200


def key_expression(column: str) -> str:
    """Return the SQL for the key of a path or URL; the indexes of the tables are built with it."""
    # A text becomes bytes by doubling its backslashes; functions that take the encoding are not allowed in an index.
    as_bytes = f"CAST(replace({column}, chr(92), chr(92) || chr(92)) AS bytea)"
    long_key = f"rpad(left({column}, {_BEGINNING_CHARS}) || encode(sha256({as_bytes}), 'hex'), {_MAX_BYTES + 1})"
    return f"(CASE WHEN octet_length({column}) <= {_MAX_BYTES} THEN {column} ELSE {long_key} END)"


def key_value(text: str) -> str:
    """Return the key of a path or URL, as `key_expression` computes it."""
    encoded = text.encode()
    if len(encoded) <= _MAX_BYTES:
        return text
    return (text[:_BEGINNING_CHARS] + sha256(encoded).hexdigest()).ljust(_MAX_BYTES + 1)
