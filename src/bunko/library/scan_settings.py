"""Describe by plain values which files of a source are read, so that a tool can record it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Any

from bunko.readers import code, default_suffixes
from bunko.settings import Settings
from bunko.settings.folder_limits import FOLDER_LIMITS, INTERNAL_FOLDERS
from bunko.types import Fingerprint


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

    def limited(self, current: ScanSettings) -> ScanSettings:
        """Return these settings, which somebody else may have recorded, within the limits for documents folders."""

        def choose(name: str, recorded: Any, value: Any, *, is_default: bool = False) -> Any:
            return recorded if is_default or FOLDER_LIMITS[f"scanner.{name}"].accepts(recorded) else value

        return ScanSettings(
            choose("file_extensions", self.extensions, current.extensions, is_default=self.extensions is None),
            tuple(sorted({*self.exclude_dirs, *INTERNAL_FOLDERS})),
            choose("respect_gitignore", self.respect_gitignore, current.respect_gitignore),
            choose("max_file_bytes", self.max_file_bytes, current.max_file_bytes),
            current.max_memo_file_bytes,
        )

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
