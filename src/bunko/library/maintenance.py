"""A library in, what it holds and how it fares out: status, checks, descriptions, and tools that go or are tuned."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from bunko.errors import EmbedderError, LibraryMismatch, UnknownName
from bunko.library import catalog, doctor
from bunko.library.build_config import Recipe
from bunko.library.importing import Importing
from bunko.library.indexes import Indexes
from bunko.library.paths import Home
from bunko.library.status import Details, Status, details, status
from bunko.protocols import Store
from bunko.records import Found
from bunko.search.rank import owned
from bunko.types import Tool

if TYPE_CHECKING:
    from bunko.library.describe import Proposal
    from bunko.library.tool_routing import Routing

# Chunks that say what a tool is about: reading more takes longer than a second and tells little more.
_SAMPLE = 400
_SMALLEST_SAMPLE = 40


class Care:
    """Looks after the tools of one library."""

    def __init__(self, home: Home, store: Store, recipe: Recipe, indexes: Indexes, importing: Importing) -> None:
        self._home, self._store, self._recipe = home, store, recipe
        self._indexes, self._importing = indexes, importing

    def status(self) -> Status:
        """Return what the library holds."""
        tools, folder = catalog.tools(self._store), self._indexes.folder
        return status(self._store, tools, self._halves(), self._recipe.source, self._home.database, folder)

    def tool_status(self, name: str, *, page: int = 1, page_size: int = 20) -> Details:
        """Return all about one tool, with a page of its documents; its source is looked at, nothing is imported."""
        tool = catalog.named(self._store, name)
        source, half = self._recipe.source(tool), self._halves().get(name)
        return details(self._store, tool, half, source, self._indexes.folder, page=page, page_size=page_size)

    def _halves(self) -> dict[str, Tool]:
        """Return the rebuilds that have not ended, by the names of their tools."""
        begun = (tool for tool in self._store.tools() if tool.name.startswith(catalog.SHADOW))
        return {tool.name.removeprefix(catalog.SHADOW): tool for tool in begun}

    def preview(self, tool: Tool) -> int:
        """Return how many files or entries an import of a tool would bring in."""
        return len(self._recipe.source(tool).scan({}).added)

    def diagnose(self) -> list[doctor.Finding]:
        """Check the file, the derived index, and that what is in the library can be found."""
        findings = doctor.storage(self._store)
        for tool in catalog.tools(self._store):
            index = self._indexes.of(tool.id)
            findings += doctor.derived(index, tool)
            try:
                self._recipe.check(tool)
            except (EmbedderError, LibraryMismatch) as error:
                findings.append(doctor.Finding("error", tool.name, error.message, error.hint))
                continue
            with self._store.reading():
                findings += doctor.known_items(self._store, index.snapshot(), tool, self._recipe.embedder_of(tool))
        return findings

    def sample(self, name: str, most: int = _SAMPLE) -> list[Found]:
        """Return at most so many chunks of a tool, spread evenly over it, of one state with its index."""
        tool = catalog.named(self._store, name)
        self._recipe.check(tool)
        return self._indexes.sample(tool.id, most)

    def propose(self, name: str, *, language: Literal["ja", "en"] | None = None) -> Proposal:
        """Return a description of a tool made from its own documents, in the language most of them are in."""
        from bunko.library.describe import Proposal, describe, spoken
        from bunko.search.keyphrases import phrases

        tool = catalog.named(self._store, name)
        chunks = self._indexes.sample(tool.id, _SAMPLE)
        if not chunks:
            command = shlex.join(["bunko", "import", "-n", name])
            hint = f"Bring them in with: {command}{self._home.flags()}"
            raise UnknownName(f"{name} holds no documents yet", hint=hint)
        others = [one for one in catalog.tools(self._store) if one.id != tool.id]
        against = [self._indexes.sample(one.id, max(_SAMPLE // len(others), _SMALLEST_SAMPLE)) for one in others]
        found = phrases(chunks, against=against)
        language = language or spoken(chunks)
        documents = self._store.totals(tool.id).documents
        return Proposal(tool, describe(tool, found, documents=documents, language=language), language, found)

    def route(self) -> Routing:
        """Say whether the active tools can be told apart by their descriptions, with questions from their headings."""
        from bunko.library.tool_routing import measure, questions

        tools = catalog.asked(self._store, None)
        asked = {tool.name: questions(self._indexes.sample(tool.id, _SAMPLE)) for tool in tools}
        return measure(tools, asked, flags=self._home.flags())

    def tune(self, name: str, options: Mapping[str, Any]) -> Tool:
        """Let a tool's searches have settings of their own, or none; its index stays as it is."""
        tool = catalog.named(self._store, name)
        rest = {key: value for key, value in tool.options.items() if key != "search"}
        own = owned(dict(options))
        return self._store.put_tool(replace(tool, options=rest | ({"search": own} if own else {})))

    def delete_tool(self, name: str, *, waiting: Callable[[str], None] = lambda _: None) -> None:
        """Remove a tool, its index and its derived files; the folder is left alone."""
        tool = catalog.named(self._store, name)
        with self._importing.writing(waiting):
            catalog.delete(self._store, name)
            self._store.sweep()
        self._indexes.discard(tool.id)
