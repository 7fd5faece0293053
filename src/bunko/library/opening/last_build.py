"""Remember in the user's data folder which library was built last, for a search that names none."""

from __future__ import annotations

import json
import shlex
from contextlib import suppress
from pathlib import Path

from bunko.library.opening.paths import LibraryPaths, user_data_folder

_FILE = "last-build.json"


def remember_build(paths: LibraryPaths) -> None:
    """Record the library of a build, unless a command finds it without a flag."""
    if not paths.from_flag:
        return
    path = user_data_folder() / _FILE
    with suppress(OSError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        record = {"database": str(paths.database), "arguments": paths.cli_arguments()}
        path.write_text(json.dumps(record, ensure_ascii=False), encoding="utf-8")


def last_build_command(query: str = "QUERY") -> str:
    """Return the command that searches the library that was built last; empty if there is none."""
    try:
        record = json.loads((user_data_folder() / _FILE).read_text(encoding="utf-8"))
        if Path(record["database"]).is_file():
            return shlex.join(["bunko", "search", query, *record["arguments"]])
    except (OSError, ValueError, KeyError, TypeError):
        pass
    return ""
