"""Hold the parts that built the index of a tool: they stand until it is rebuilt, even if the settings change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

_TYPES: dict[str, type] = {
    "words": int, "grams": int, "chunker": dict, "tokenizer": str, "embedder": str,
    "scanner": dict, "embedding": dict, "lacks_vectors": bool, "plugin_suffixes": list,
}  # fmt: skip
# The parts that another build may have made differently; the others follow from these or change by themselves.
_COMPARED = ("words", "grams", "chunker", "tokenizer", "embedder", "scanner")


@dataclass(frozen=True, slots=True)
class BuildInfo:
    """The parts that built an index; None where a part was not recorded or not used."""

    words: int | None = None  # version of the analyzer
    grams: int | None = None  # version of the n-grams
    chunker: Mapping[str, Any] | None = None  # its kind and settings
    tokenizer: str | None = None  # of the chunker `tokens`
    embedder: str | None = None  # "none": no vectors
    scanner: Mapping[str, Any] | None = None  # which files are read
    embedding: Mapping[str, Any] | None = None  # the provider and the settings of the embedder
    lacks_vectors: bool | None = None  # documents were imported while the embedder was away
    plugin_suffixes: list[str] | None = None  # of files that readers of other packages read without being asked
    other: Mapping[str, Any] = field(default_factory=dict)  # recorded by a newer version; kept as it is

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> BuildInfo:
        """Read a stored record; what this version does not understand is kept."""
        values: dict[str, Any] = {}
        other: dict[str, Any] = {}
        for name, value in stored.items():
            (values if type(value) is _TYPES.get(name) else other)[name] = value
        return cls(**values, other=other)

    def to_json(self) -> dict[str, Any]:
        """Return the record as it is stored, sorted by name."""
        values: dict[str, Any] = {name: getattr(self, name) for name in _TYPES}
        recorded = {name: value for name, value in values.items() if value is not None}
        return dict(sorted((recorded | dict(self.other)).items()))

    def differences(self, current: BuildInfo) -> set[str]:
        """Return the names of the parts of `current` that this index was not built with."""
        return {
            name for name in _COMPARED if (value := getattr(current, name)) is not None and value != getattr(self, name)
        }


NOT_BUILT = BuildInfo()
