"""Look up paths and URLs of any length: an index of PostgreSQL takes about 2,700 bytes."""

from __future__ import annotations

from hashlib import sha256

from bunko.stores.postgres.characters import ENCODING_CHARACTERS, encode_text

# A longer one has a key of its first characters and its hash. Filled up with blanks, that is longer than any text which
# is its own key, so no file can be named to take the place of another one.
_MAX_BYTES, _BEGINNING_CHARS = 1000, 200


def key_expression(column: str) -> str:
    """Return the SQL for the key of a path or URL; the indexes of the tables are built with it."""
    # A text becomes bytes by doubling its backslashes; functions that take the encoding are not allowed in an index.
    as_bytes = f"CAST(replace({column}, chr(92), chr(92) || chr(92)) AS bytea)"
    escapes = " || ".join(f"chr({ord(character)})" for character in ENCODING_CHARACTERS)
    beginning = f"translate(left({column}, {_BEGINNING_CHARS}), {escapes}, '')"
    long_key = f"rpad({beginning} || encode(sha256({as_bytes}), 'hex'), {_MAX_BYTES + 1})"
    return f"(CASE WHEN octet_length({column}) <= {_MAX_BYTES} THEN {column} ELSE {long_key} END)"


def key_value(text: str) -> str:
    """Return the key of a path or URL, as `key_expression` computes it from what `encode_text` makes of that."""
    stored = encode_text(text)
    stored_bytes = stored.encode()
    if len(stored_bytes) <= _MAX_BYTES:
        return text
    beginning = stored[:_BEGINNING_CHARS].translate(dict.fromkeys(map(ord, ENCODING_CHARACTERS)))
    return (beginning + sha256(stored_bytes).hexdigest()).ljust(_MAX_BYTES + 1)
