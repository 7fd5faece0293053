"""Describe a chunker by plain values; it is loaded when it is built."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bunko.protocols import Chunker


@dataclass(frozen=True, slots=True)
class ChunkerSettings:
    """How documents are chunked; plain values, so that they can be sent to workers and stored in the library."""

    kind: str = "auto"
    max_chars: int = 3000
    min_chars: int = 50
    heading_levels: tuple[int, ...] = (1, 2, 3)
    size: int = 200
    overlap: int = 30
    row_context: int = 1

    @classmethod
    def from_json(cls, recorded: Mapping[str, Any]) -> ChunkerSettings | None:
        """Read what a tool recorded; None if a value is missing or of the wrong type."""
        kind, levels = recorded.get("kind"), recorded.get("heading_levels")
        numbers = [recorded.get(name) for name in ("max_chars", "min_chars", "size", "overlap", "row_context")]
        if (
            not isinstance(kind, str)
            or not isinstance(levels, list)
            or any(type(number) is not int or number < 0 for number in [*levels, *numbers])
        ):
            return None
        max_chars, min_chars, *rest = (int(number) for number in numbers if number is not None)
        return cls(kind, max_chars, min_chars, tuple(levels), *rest)

    def to_json(self) -> dict[str, Any]:
        """Return the settings as a tool records them."""
        return {
            "kind": self.kind,
            "max_chars": self.max_chars,
            "min_chars": self.min_chars,
            "heading_levels": list(self.heading_levels),
            "size": self.size,
            "overlap": self.overlap,
            "row_context": self.row_context,
        }

    def build(self) -> Chunker:
        """Return the chunker these settings describe."""
        from bunko import chunkers

        return chunkers.build(
            self.kind,
            max_chars=self.max_chars,
            min_chars=self.min_chars,
            heading_levels=self.heading_levels,
            size=self.size,
            overlap=self.overlap,
            row_context=self.row_context,
        )
