"""Keep the feedback on answers as judgements, which `bunko evaluate` reads."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from typing import Any

from bunko.errors import BunkoError
from bunko.evaluation.judge import Judgements, default_file, hold_judgements
from bunko.library.library import Library
from bunko.text.normalise import escape_surrogates
from bunko.types import Tool

_log = logging.getLogger("bunko.slack")


class Feedback:
    """Judges the sources of an answer by the votes of people: each has one vote, and the majority decides."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self._lock = threading.Lock()

    def store(self, answer: Mapping[str, Any], votes: Mapping[str, Mapping[str, Any]]) -> None:
        """Store the votes about an answer as judgements of its sources, with who voted and when."""
        balance = sum(1 if vote["good"] else -1 for vote in votes.values())
        grade = None if balance == 0 else 1 if balance > 0 else 0
        question, uris_by_tool = answer["question"], self._uris_by_tool(answer["sources"])
        with self._lock:
            for tool, uris in uris_by_tool:
                try:
                    with hold_judgements(self._library):
                        judgements = Judgements(default_file(self._library, tool), tool.name)
                        for uri in uris:
                            judgements.set_grade(question, escape_surrogates(uri), grade)
                        judgements.set_feedback(question, {"votes": votes, "sources": answer["sources"]})
                except BunkoError as error:
                    _log.warning("The feedback on an answer was not stored as a judgement: %s", error.message)

    def _uris_by_tool(self, sources: list[Mapping[str, str]]) -> list[tuple[Tool, list[str]]]:
        """Return the documents of this library among the sources; those of other servers are left out."""
        uris_by_tool = [
            (tool, list(dict.fromkeys(source["uri"] for source in sources if self._is_from(tool, source))))
            for tool in self._library.tools()
        ]
        return [(tool, uris) for tool, uris in uris_by_tool if uris]

    def _is_from(self, tool: Tool, source: Mapping[str, str]) -> bool:
        """Return whether a tool has a source; another server may be one for this library, too."""
        if self._library.documents.stored.get(tool.id, source["uri"]) is None:
            return False
        if not source["server"]:
            return source["tool"] == tool.name
        try:
            check = self._library.verify_citation(source["citation"], source["hash"], tool=tool.name)
        except BunkoError:
            return False
        return check.status in ("same", "moved")
