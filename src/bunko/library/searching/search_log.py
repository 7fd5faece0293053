"""Log the searches of people and assistants, if that is enabled."""

from __future__ import annotations

import logging

from bunko.errors import BunkoError
from bunko.library.tools import catalog
from bunko.library.tools.catalog import ToolNames
from bunko.protocols import Store
from bunko.runtime.timing import now
from bunko.search.request import MAX_QUERY_CHARS
from bunko.text.normalise import escape_surrogates
from bunko.types.records import LoggedSearch

_log = logging.getLogger("bunko.library")

# More than anybody will judge.
_MAX_LOGGED_SEARCHES = 1000


class SearchLog:
    """The log of the searches of people and assistants; it does nothing unless it is enabled."""

    def __init__(self, store: Store, *, enabled: bool) -> None:
        self._store, self._enabled = store, enabled

    def add(self, query: str, tool: ToolNames = None) -> None:
        """Log a search; never wait for the library, and never raise an error that a user sees."""
        text = " ".join(escape_surrogates(query).split())
        if not self._enabled or not text:
            return
        try:
            # A search of several tools is one of the library.
            name = catalog.get_tool(self._store, tool).name if isinstance(tool, str) else ""
            logged = self._store.cache.log_search(text[:MAX_QUERY_CHARS], name, now(), limit=_MAX_LOGGED_SEARCHES)
        except BunkoError as error:
            _log.warning("The search was not logged: %s", error.message)
        else:
            if not logged:
                _log.debug("The search was not logged: another process is writing.")

    def all(self) -> list[LoggedSearch]:
        """Return the logged searches, the most frequent first."""
        return self._store.cache.logged_searches()

    def clear(self) -> int:
        """Delete the log; return how many searches it had."""
        return self._store.cache.clear_searches()
