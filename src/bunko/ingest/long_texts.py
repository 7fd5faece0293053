"""Count the texts that are too long for a model."""

from __future__ import annotations

from bunko.embedders.names import display_name
from bunko.protocols import Embedder, EmbedderStats


class LongTextCounter:
    """Counts the texts that exceed the model's limit since this counter was created, if the embedder reports it."""

    def __init__(self, embedder: Embedder | None) -> None:
        self._name = display_name(embedder.label) if embedder else ""
        stats = getattr(embedder, "stats", None)
        self._stats = stats if isinstance(stats, EmbedderStats) else EmbedderStats()
        self._initial_count = self._stats.too_long

    def warnings(self) -> list[str]:
        """Return a warning if texts were too long."""
        count = self._stats.too_long - self._initial_count
        if not count:
            return []
        texts = "1 text is" if count == 1 else f"{count} texts are"
        return [f"{texts} too long for {self._name}; embedding.too_long sets how long texts are handled."]
