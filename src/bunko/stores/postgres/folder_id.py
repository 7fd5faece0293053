"""Name the folder in which a machine keeps its index files of a library on a server."""

from __future__ import annotations

import secrets
from contextlib import suppress
from pathlib import Path

from bunko.runtime.temporary_files import write_text_file

_ID_CHARS = 32


def folder_id_file(location: Path) -> Path:
    """Return the file with the name of this machine's folder of index files."""
    return location.with_name(f"{location.name}.folder-id")


def read_folder_id(location: Path, *, read_only: bool) -> str:
    """Return the name of this machine's folder, and create it unless the folder cannot be written."""
    path = folder_id_file(location)
    for _ in range(2):
        with suppress(OSError, UnicodeDecodeError):
            text = path.read_text(encoding="ascii").strip()
            if len(text) == _ID_CHARS and text.isalnum():
                return text
        if read_only:
            break
        # Of two processes that write it at the same time, the one that is read afterwards counts.
        with suppress(OSError):
            write_text_file(path, secrets.token_hex(_ID_CHARS // 2), mode=0o600)
    return secrets.token_hex(_ID_CHARS // 2)
