"""Keep track of documents that were imported while their embedder was away, and embed them later."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from bunko import ingest
from bunko.errors import EmbedderError
from bunko.library.importing.outages import Outages
from bunko.library.tools.build_config import ToolConfig, has_vectors
from bunko.library.tools.suggested_commands import update_command, vector_command
from bunko.protocols import Embedder, Store
from bunko.runtime.observer import Observer
from bunko.types import Report, Tool
from bunko.types.build_info import BuildInfo

# How long searches wait before they try an embedder on this machine again.
_PAUSE_SECONDS = 30.0


class MissingVectors:
    """The documents of one library that lack vectors."""

    def __init__(self, store: Store, tool_config: ToolConfig, outages: Outages) -> None:
        self._store, self._tool_config, self._outages = store, tool_config, outages
        self._local_failure: EmbedderError | None = None  # of an embedder on this machine
        self._retry_at = 0.0  # on the monotonic clock

    def can_embed(self, tool: Tool) -> bool:
        """Return whether documents of a tool lack vectors, and its embedder did not fail a moment ago."""
        stored = next((one for one in self._store.tools.all() if one.id == tool.id), tool)
        if not stored.built.lacks_vectors:
            return False
        embedder = self._tool_config.embedder_of(stored)
        if embedder is None or self._outages.reason(embedder):
            return False
        return embedder.is_remote or time.monotonic() >= self._retry_at

    def embed(self, tool: Tool, embedder: Embedder, report: Report, observer: Observer) -> list[EmbedderError]:
        """Compute the vectors that a tool lacks, and return the error of the embedder, if any."""
        try:
            count, is_complete = ingest.embed_missing(self._store, tool, embedder, observer)
        except EmbedderError as error:
            if not observer.is_cancelled():  # otherwise it was cancelled here, and did not fail
                self._outages.begin(embedder, error.message)
                if not embedder.is_remote:
                    self._local_failure, self._retry_at = error, time.monotonic() + _PAUSE_SECONDS
            return [error]
        self._outages.end(embedder)
        self._local_failure = None
        report.embedded += count
        if is_complete:
            self.record_build(tool, replace(tool.built, lacks_vectors=None))
        return []

    def search_notices(self, tools: Sequence[Tool], embedder: Embedder) -> list[str]:
        """Return a notice if documents of these tools, as they were before the search, still lack vectors."""
        lacked = self._local_failure is not None or any(tool.built.lacks_vectors for tool in tools)
        if not (embedder.is_remote or lacked):
            return []
        ids = {tool.id for tool in tools}
        lacking = [tool for tool in self._store.tools.all() if tool.id in ids and tool.built.lacks_vectors]
        if not lacking:
            return []
        names = ", ".join(tool.name for tool in lacking)
        if self._local_failure is not None:
            error = self._local_failure
            return [
                f"Some documents of {names} have no vectors yet and are found by their words only:"
                f" {error.message}. {error.hint}"
            ]
        return [
            f"Some documents of {names} have no vectors yet and are found by their words only."
            f" To compute them now: {update_command(self._tool_config.paths, lacking[0])}"
        ]

    def record_build(self, tool: Tool, built: BuildInfo) -> Tool:
        """Record what a tool is built with, and return the tool."""
        if built != tool.built:
            self._store.tools.update_build_info(tool.id, built=built)
        return replace(tool, built=built)

    def notices(self, tool: Tool, failures: list[EmbedderError]) -> list[str]:
        """Return a notice if documents of a tool lack vectors."""
        found_by_words = f"{tool.name} has documents without vectors, which are found by their words"
        if failures and tool.built.lacks_vectors:
            error = failures[0]
            return [f"{found_by_words}: {error.message}. {error.hint} A later import or search computes the vectors."]
        if tool.built.lacks_vectors and (problem := self._tool_config.embedder_problem(tool)):
            return [f"{found_by_words}: {problem}. {self._tool_config.embedder_remedy(tool)}"]
        if self._tool_config.is_lexical(tool) and has_vectors(tool) and self._tool_config.uses_vectors():
            return [f"{tool.name} has no vectors. To compute them: {vector_command(self._tool_config.paths, tool)}"]
        return []
