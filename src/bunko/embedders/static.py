"""Semantic search in Japanese and English, offline; the model is included in the package."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bunko.embedders.provider import Provider

if TYPE_CHECKING:
    from bunko.embedders.subword_table import Static


def build(size: int = 256) -> Static:
    """Return the embedder; vectors of size 128 take half the space and find nearly as much."""
    # Here, and not inside its methods: an import in `embed` would cost a tenth of the time of a query's vector.
    from bunko.embedders.subword_table import Static

    return Static(size)


PROVIDER = Provider(build)
