"""Let a caller judge search results, as far as its rights allow."""

from __future__ import annotations

from dataclasses import dataclass

from bunko.errors import UnknownName
from bunko.evaluation.judge import Judgements, default_file, hold_judgements, pool_hits, unjudged_queries
from bunko.library.rights.access import LibraryAccess
from bunko.text.normalise import escape_surrogates
from bunko.types import Hit, Tool


@dataclass(frozen=True, slots=True)
class JudgedHit:
    """A document that was found, by its best hit, and its grade; None if nobody has judged it."""

    hit: Hit
    grade: float | None


class JudgeAccess:
    """The judgements about the tools that one caller may change: whoever judges decides how they are ranked."""

    def __init__(self, access: LibraryAccess) -> None:
        self._access, self._library = access, access.readable

    def tools(self) -> list[Tool]:
        """Return the active tools that the caller may judge."""
        can_write = self._access.caller.rights.can_write
        return [tool for tool in self._library.tools() if tool.active and can_write(tool.name)]

    def counts(self, tool: str) -> tuple[int, int]:
        """Return how many queries and how many of their documents are judged."""
        return self._judgements(self._writable(tool)).counts()

    def waiting_queries(self, tool: str) -> list[str]:
        """Return the recorded searches of a tool that are not judged yet, the most frequent first.

        Those of the whole library are only for whoever may change all of it: they tell what others look for.
        """
        target = self._writable(tool)
        searches = self._library.searches.log.all()
        if not self._access.caller.rights.writes_all:
            searches = [search for search in searches if search.tool == target.name]
        return unjudged_queries(searches, target, self._judgements(target))

    def documents(self, tool: str, query: str, *, depth: int) -> list[JudgedHit]:
        """Return the documents that any search mode finds, each with its grade."""
        target = self._writable(tool)
        judgements = self._judgements(target)
        hits = pool_hits(self._library, target, query, depth=depth)
        return [JudgedHit(hit, judgements.grade(query, escape_surrogates(hit.uri))) for hit in hits]

    def judge(self, tool: str, query: str, uri: str, grade: float | None) -> tuple[int, int]:
        """Store the grade of a document, or remove it with None; return how much is judged."""
        target = self._writable(tool)
        if grade is not None and self._library.documents.stored.get(target.id, uri) is None:
            raise UnknownName(f"{target.name} has no document {uri[:200]!r}", hint="Search again.")
        arguments = {"query": query, "document": uri, "grade": grade}
        with self._access.record("judge", [target.name], arguments), hold_judgements(self._library):
            judgements = self._judgements(target)
            judgements.set_grade(query, escape_surrogates(uri), grade)
        return judgements.counts()

    def _judgements(self, tool: Tool) -> Judgements:
        return Judgements(default_file(self._library, tool), tool.name)

    def _writable(self, name: str) -> Tool:
        tool = self._access.tool_care.get(name)
        self._access.check_write(tool.name)
        return tool
