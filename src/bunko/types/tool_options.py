"""Hold the options of a tool: which files it indexes, how they are chunked, and how it is searched."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

from bunko.errors import SettingsError

# How much text a hit returns.
Extract = Literal["chunk", "snippet", "entry", "section", "full"]
MIN_CHUNK_TOKENS, MAX_CHUNK_TOKENS = 512, 4096

_TYPES: dict[str, type] = {
    "include": list, "exclude": list, "extract": str, "embedder": str,
    "chunker": str, "chunk_size": int, "chunk_overlap": int, "alias": str, "search": dict, "crawls": dict,
}  # fmt: skip
_EXTRACTS = get_args(Extract)


@dataclass(frozen=True, slots=True)
class ToolOptions:
    """What the user chose for one tool; the settings decide where an option is None or empty."""

    include: tuple[str, ...] = ()  # which files of the folder
    exclude: tuple[str, ...] = ()
    extract: Extract | None = None
    embedder: str | None = None  # "none": the tool has no vectors
    chunker: str | None = None
    chunk_size: int | None = None  # in tokens
    chunk_overlap: int | None = None
    alias: str | None = None  # the name that assistants see, if the tool's own does not suit them
    search: Mapping[str, Any] = field(default_factory=dict)  # the tool's own search settings
    crawls: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # rules of unfinished crawls, by URL
    other: Mapping[str, Any] = field(default_factory=dict)  # written by a newer version; kept as they are

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> ToolOptions:
        """Read stored options; what this version does not understand has no effect and is kept."""
        values: dict[str, Any] = {}
        other: dict[str, Any] = {}
        for name, value in stored.items():
            if name not in _TYPES or not is_valid_option(name, value) or (name == "extract" and value not in _EXTRACTS):
                other[name] = value
            else:
                values[name] = tuple(value) if isinstance(value, list) else value
        return cls(**values, other=other)

    def to_json(self) -> dict[str, Any]:
        """Return the options as they are stored, sorted by name; an option that was not chosen is left out."""
        values: dict[str, Any] = {name: getattr(self, name) for name in _TYPES}
        options = {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in values.items()
            if value is not None and value != () and value != {}
        }
        return dict(sorted((options | dict(self.other)).items()))

    def with_chunker(self, kind: str, size: int, overlap: int) -> ToolOptions:
        """Return the options with another chunker; size and overlap are in tokens and only used by `tokens`."""
        if kind != "tokens":
            return replace(self, chunker=kind, chunk_size=None, chunk_overlap=None)
        if not (MIN_CHUNK_TOKENS <= size <= MAX_CHUNK_TOKENS and 0 <= overlap < size):
            raise SettingsError(
                f"Chunks of {size} tokens with an overlap of {overlap} are not possible",
                hint=f"Choose a size from {MIN_CHUNK_TOKENS} to {MAX_CHUNK_TOKENS} and an overlap smaller than it.",
            )
        return replace(self, chunker=kind, chunk_size=size, chunk_overlap=overlap)


NO_OPTIONS = ToolOptions()


def is_valid_option(name: str, value: object) -> bool:
    """Return whether a stored option has the right type; one that this version does not know is a text, number or list.

    The search settings of a tool are checked where they are applied.
    """
    if name in _TYPES and type(value) is not _TYPES[name]:
        return False
    if isinstance(value, list):
        return all(isinstance(item, str) for item in value)
    return name in _TYPES or isinstance(value, str | int | float)
