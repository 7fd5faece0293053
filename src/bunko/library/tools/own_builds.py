"""Remember in the user's data folder what the user chose for an index among documents.

Such an index may come from somebody else: what it says about itself counts only within the limits for documents
folders. What the user chose beyond them is kept here, so that it stands as in any other library.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bunko.library.opening.paths import LibraryPaths, user_data_folder


@dataclass(frozen=True, slots=True)
class OwnBuild:
    """What the user chose for an index; None where that is within the limits, or not known."""

    chunker: Mapping[str, Any] | None = None
    scanner: Mapping[str, Any] | None = None
    include: tuple[str, ...] | None = None


def load_own_build(paths: LibraryPaths) -> OwnBuild:
    """Return what the user chose for the index of a folder."""
    try:
        stored = json.loads(_path(paths).read_text(encoding="utf-8"))
        return OwnBuild(stored["chunker"], stored["scanner"], stored["include"] and tuple(stored["include"]))
    except (OSError, ValueError, KeyError, TypeError):
        return OwnBuild()


def save_own_build(paths: LibraryPaths, build: OwnBuild) -> None:
    """Replace what the user chose for the index of a folder."""
    path = _path(paths)
    # Without this record nothing is lost: files beyond the limits stay as they were indexed.
    with suppress(OSError):
        if build == OwnBuild():
            path.unlink(missing_ok=True)
            return
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.write_text(json.dumps(asdict(build), ensure_ascii=False), encoding="utf-8")


def _path(paths: LibraryPaths) -> Path:
    return user_data_folder() / "builds" / f"{paths.digest()[:16]}.json"
