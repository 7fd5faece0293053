"""When an engine that is away is asked again."""

from __future__ import annotations

import time

from bunko.errors import IndexFailure

# How long searches leave an engine alone after it failed; an import tries it at once.
SECONDS = 30.0


class Pause:
    """The failure of an engine that is away: nobody waits for it again at once, and a run over many tools only once."""

    def __init__(self) -> None:
        self._failure: IndexFailure | None = None
        self._until = 0.0
        self._synced: set[int] = set()  # tools whose sync met the failure

    def check(self) -> None:
        """Raise the failure while it is to be left alone."""
        failure = self._failure
        if failure is not None and time.monotonic() < self._until:
            raise failure

    def check_sync(self, tool_id: int) -> None:
        """Raise the failure if the sync of another tool has just met it; a tool that comes again tries again."""
        if self._synced and tool_id not in self._synced:
            self.check()
        self._synced.clear()
        self._failure = None

    def note(self, failure: IndexFailure, *, synced_tool: int | None = None) -> None:
        """Begin a pause if an engine is away."""
        if not failure.is_away:
            return
        if self._failure is None or time.monotonic() >= self._until:
            self._failure, self._until = failure, time.monotonic() + SECONDS
        if synced_tool is not None:
            self._synced.add(synced_tool)
