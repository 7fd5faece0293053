"""Describe by plain values which files of a source are read, so that a tool can record it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Any

from bunko.readers import code, default_suffixes
from bunko.settings import Settings
from bunko.settings.folder_files import FOLDER_LIMITS, INTERNAL_FOLDERS
from bunko.types import Fingerprint

# What the values are called here, by the keys of their settings.
_NAMES = {
    "scanner.file_extensions": "extensions",
    "scanner.exclude_dirs": "exclude_dirs",
    "scanner.respect_gitignore": "respect_gitignore",
    "scanner.max_file_bytes": "max_file_bytes",
    "memos.max_file_bytes": "max_memo_file_bytes",
}


@dataclass(frozen=True, slots=True)
class ScanSettings:
    """Which files of a source are read."""

    extensions: tuple[str, ...] | None  # None: all that this version can read
    exclude_dirs: tuple[str, ...]
    respect_gitignore: bool
    max_file_bytes: int
    max_memo_file_bytes: int

    @classmethod
    def from_settings(cls, settings: Settings) -> ScanSettings:
        """Return what the current settings say."""
        scanner = settings.scanner
        code_suffixes = code.suffixes() if scanner.source_code else ()
        extensions = _normalize((*scanner.file_extensions, *code_suffixes))
        return cls(
            None if extensions == _normalize(default_suffixes()) else extensions,
            tuple(sorted(set(scanner.exclude_dirs))),
            scanner.respect_gitignore,
            scanner.max_file_bytes,
            settings.memos.max_file_bytes,
        )

    @classmethod
    def from_json(cls, recorded: Mapping[str, Any]) -> ScanSettings | None:
        """Read what a tool recorded; None if a value is missing or of the wrong type."""
        extensions, exclude_dirs = recorded.get("extensions"), recorded.get("exclude_dirs")
        respect_gitignore = recorded.get("respect_gitignore")
        limits = [recorded.get(name) for name in ("max_file_bytes", "max_memo_file_bytes")]
        if (
            not (extensions is None or _is_name_list(extensions))
            or not _is_name_list(exclude_dirs)
            or not isinstance(respect_gitignore, bool)
            or any(type(limit) is not int or limit < 1 for limit in limits)
        ):
            return None
        names = None if extensions is None else tuple(extensions)
        return cls(names, tuple(exclude_dirs), respect_gitignore, *limits)  # type: ignore[arg-type]

    def to_json(self) -> dict[str, Any]:
        """Return the settings as a tool records them."""
        return {
            "extensions": None if self.extensions is None else list(self.extensions),
            "exclude_dirs": list(self.exclude_dirs),
            "respect_gitignore": self.respect_gitignore,
            "max_file_bytes": self.max_file_bytes,
            "max_memo_file_bytes": self.max_memo_file_bytes,
        }

    def file_extensions(self) -> tuple[str, ...]:
        """Return the extensions of the files that are read."""
        return default_suffixes() if self.extensions is None else self.extensions

    def limited(self, current: ScanSettings, users_own: ScanSettings | None = None) -> ScanSettings:
        """Return these settings, which somebody else may have recorded, within the limits for documents folders.

        A value beyond them stands if the user chose the same in `users_own`.
        """

        def is_trusted(key: str, name: str) -> bool:
            value = getattr(self, name)
            is_users_own = users_own is not None and value == getattr(users_own, name)
            return is_users_own or value is None or FOLDER_LIMITS[key].accepts(value)

        # Folders that its user excludes stay excluded.
        safe = replace(current, exclude_dirs=tuple(sorted({*self.exclude_dirs, *INTERNAL_FOLDERS})))
        return replace(safe, **{name: getattr(self, name) for key, name in _NAMES.items() if is_trusted(key, name)})

    def differences(self, other: ScanSettings) -> list[str]:
        """Return the keys of the settings that differ."""
        return [key for key, name in _NAMES.items() if getattr(self, name) != getattr(other, name)]

    def endings(self) -> tuple[str, ...]:
        """Return how the names of the files that are read end, in lower case."""
        return tuple(f".{name}" for name in _normalize(self.file_extensions()))

    def widened(self, fingerprints: Mapping[str, Fingerprint]) -> ScanSettings:
        """Return settings that also read these files; for tools that did not record which files they read."""
        extensions = set(_normalize(self.file_extensions()))
        endings = self.endings()
        paths = [PurePosixPath(uri.lower()) for uri in fingerprints]
        added = {path.suffix.removeprefix(".") for path in paths if not path.name.endswith(endings)}
        folders = {name for uri in fingerprints for name in PurePosixPath(uri).parts[:-1]}
        return replace(
            self,
            extensions=tuple(sorted(extensions | added)) if added else self.extensions,
            exclude_dirs=tuple(name for name in self.exclude_dirs if name.rstrip("/") not in folders),
            max_file_bytes=max([self.max_file_bytes, *(one.size for one in fingerprints.values())]),
        )


def _normalize(extensions: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted({name.lower().removeprefix(".") for name in extensions}))


def _is_name_list(value: object) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(name, str) for name in value)
