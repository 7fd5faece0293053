"""A library in, what it holds and how it fares out: status, checks, descriptions, and tools that go or are tuned."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from bunko.errors import EmbedderError, LibraryMismatch, UnknownName
from bunko.library import catalog, doctor
from bunko.library.build_config import ToolConfig
from bunko.library.importing import Importer
from bunko.library.indexes import ToolIndexes
from bunko.library.paths import LibraryPaths
from bunko.library.status import LibraryStatus, ToolDetails, library_status, tool_details
from bunko.protocols import Store
from bunko.records import ChunkRow
from bunko.search.rank import tool_search_settings
from bunko.types import Tool

if TYPE_CHECKING:
    from bunko.library.describe import DescriptionProposal
    from bunko.library.tool_routing import RoutingReport

# Chunks that say what a tool is about: reading more takes longer than a second and tells little more.
_SAMPLE_SIZE = 400
_MIN_SAMPLE_SIZE = 40


class Maintenance:
    """Looks after the tools of one library."""

    def __init__(
        self, paths: LibraryPaths, store: Store, tool_config: ToolConfig, indexes: ToolIndexes, importer: Importer
    ) -> None:
        self._paths, self._store, self._tool_config = paths, store, tool_config
        self._indexes, self._importer = indexes, importer

    def status(self) -> LibraryStatus:
        """Return what the library holds."""
        tools, folder = catalog.tools(self._store), self._indexes.folder
        return library_status(
            self._store, tools, self._unfinished_rebuilds(), self._tool_config.source, self._paths.database, folder
        )

    def tool_status(self, name: str, *, page: int = 1, page_size: int = 20) -> ToolDetails:
        """Return all about one tool, with a page of its documents; its source is looked at, nothing is imported."""
        tool = catalog.get_tool(self._store, name)
        source, half = self._tool_config.source(tool), self._unfinished_rebuilds().get(name)
        return tool_details(self._store, tool, half, source, self._indexes.folder, page=page, page_size=page_size)

    def _unfinished_rebuilds(self) -> dict[str, Tool]:
        """Return the rebuilds that have not ended, by the names of their tools."""
        begun = (tool for tool in self._store.tools() if tool.name.startswith(catalog.SHADOW_PREFIX))
        return {tool.name.removeprefix(catalog.SHADOW_PREFIX): tool for tool in begun}

    def count_importable(self, tool: Tool) -> int:
        """Return how many files or entries an import of a tool would bring in."""
        return len(self._tool_config.source(tool).scan({}).added)

    def diagnose(self) -> list[doctor.Finding]:
        """Check the file, the derived index, and that what is in the library can be found."""
        findings = doctor.check_storage(self._store)
        for tool in catalog.tools(self._store):
            index = self._indexes.index_of(tool.id)
            findings += doctor.check_index(index, tool)
            try:
                self._tool_config.check_tool(tool)
            except (EmbedderError, LibraryMismatch) as error:
                findings.append(doctor.Finding("error", tool.name, error.message, error.hint))
                continue
            with self._store.read_transaction():
                findings += doctor.check_search(
                    self._store, index.snapshot(), tool, self._tool_config.embedder_of(tool)
                )
        return findings

    def sample_chunks(self, name: str, limit: int = _SAMPLE_SIZE) -> list[ChunkRow]:
        """Return at most so many chunks of a tool, spread evenly over it, of one state with its index."""
        tool = catalog.get_tool(self._store, name)
        self._tool_config.check_tool(tool)
        return self._indexes.sample_chunks(tool.id, limit)

    def propose_description(self, name: str, *, language: Literal["ja", "en"] | None = None) -> DescriptionProposal:
        """Return a description of a tool made from its own documents, in the language most of them are in."""
        from bunko.library.describe import DescriptionProposal, describe_tool, main_language
        from bunko.search.keyphrases import extract_phrases

        tool = catalog.get_tool(self._store, name)
        chunks = self._indexes.sample_chunks(tool.id, _SAMPLE_SIZE)
        if not chunks:
            command = shlex.join(["bunko", "import", "-n", name])
            hint = f"Bring them in with: {command}{self._paths.cli_flags()}"
            raise UnknownName(f"{name} holds no documents yet", hint=hint)
        others = [one for one in catalog.tools(self._store) if one.id != tool.id]
        against = [
            self._indexes.sample_chunks(one.id, max(_SAMPLE_SIZE // len(others), _MIN_SAMPLE_SIZE)) for one in others
        ]
        found = extract_phrases(chunks, background=against)
        language = language or main_language(chunks)
        documents = self._store.totals(tool.id).documents
        return DescriptionProposal(
            tool, describe_tool(tool, found, documents=documents, language=language), language, found
        )

    def measure_routing(self) -> RoutingReport:
        """Say whether the active tools can be told apart by their descriptions, with questions from their headings."""
        from bunko.library.tool_routing import make_questions, measure_routing

        tools = catalog.select_tools(self._store, None)
        asked = {tool.name: make_questions(self._indexes.sample_chunks(tool.id, _SAMPLE_SIZE)) for tool in tools}
        return measure_routing(tools, asked, flags=self._paths.cli_flags())

    def set_search_settings(self, name: str, options: Mapping[str, Any]) -> Tool:
        """Let a tool's searches have settings of their own, or none; its index stays as it is."""
        tool = catalog.get_tool(self._store, name)
        rest = {key: value for key, value in tool.options.items() if key != "search"}
        own = tool_search_settings(dict(options))
        return self._store.put_tool(replace(tool, options=rest | ({"search": own} if own else {})))

    def delete_tool(self, name: str, *, waiting: Callable[[str], None] = lambda _: None) -> None:
        """Remove a tool, its index and its derived files; the folder is left alone."""
        tool = catalog.get_tool(self._store, name)
        with self._importer.write_lock(waiting):
            catalog.delete_tool(self._store, name)
            self._store.delete_orphan_vectors()
        self._indexes.delete_index(tool.id)
