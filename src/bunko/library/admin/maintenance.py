"""Report on a library, check it, describe its tools, and change or delete them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from bunko.embedders.embed import as_remote
from bunko.errors import BunkoError, IndexFailure, LibraryUnreachable, UnknownName
from bunko.library.admin import doctor
from bunko.library.admin.status import LibraryStatus, ToolDetails, library_status, source_state, tool_details
from bunko.library.importing.importer import Importer, hold_lock
from bunko.library.opening.paths import LibraryPaths
from bunko.library.tools import catalog, suggested_commands
from bunko.library.tools.build_config import ToolConfig, load_own_build, save_own_build
from bunko.library.tools.describe import DescriptionProposal, describe_tool, main_language
from bunko.library.tools.overlaps import overlap_notices
from bunko.library.tools.routing import make_questions, measure_routing
from bunko.library.tools.source_contents import inspect_source
from bunko.protocols import Index, SentenceEmbedder, Store
from bunko.runtime.observer import NO_OBSERVER, Observer
from bunko.runtime.timing import timer
from bunko.search.keyphrases import extract_phrases
from bunko.search.request import tool_search_settings
from bunko.sources import plugin_errors
from bunko.types import Tool
from bunko.types.records import ChunkRow, EmbeddingUsage

if TYPE_CHECKING:
    from bunko.library.tools.routing import RoutingReport
    from bunko.library.tools.source_contents import SourceContents

_log = logging.getLogger("bunko.library")

# An import is checked with this many sentences per language, which takes a moment.
_QUESTIONS = 8
# Chunks that are read to describe a tool: more would take over a second and add little.
_SAMPLE_SIZE = 400
_MIN_SAMPLE_SIZE = 40
_READ_BATCH = 200


class Maintenance:
    """Status, checks and upkeep of one library's tools."""

    def __init__(
        self, paths: LibraryPaths, store: Store, tool_config: ToolConfig, index: Index, importer: Importer
    ) -> None:
        self._paths, self._store, self._tool_config = paths, store, tool_config
        self._index, self._importer = index, importer

    def status(self, can_read: Callable[[str], bool] = lambda _: True) -> LibraryStatus:
        """Return the status of the library and of the tools that somebody may read."""
        tools = [tool for tool in catalog.tools(self._store) if can_read(tool.name)]
        rebuilds = self._unfinished_rebuilds()
        return library_status(self._store, tools, rebuilds, self._tool_config.source, self._index)

    def tool_status(self, name: str, *, page: int = 1, page_size: int = 20) -> ToolDetails:
        """Return the details of one tool with a page of its documents; its source is scanned, nothing is imported."""
        tool = catalog.get_tool(self._store, name)
        source, rebuild = self._tool_config.source(tool), self._unfinished_rebuilds().get(tool.name)
        return tool_details(self._store, tool, rebuild, source, self._index, page=page, page_size=page_size)

    def _unfinished_rebuilds(self) -> dict[str, Tool]:
        """Return the unfinished rebuilds by the names of their tools."""
        shadows = (tool for tool in self._store.tools.all() if tool.name.startswith(catalog.SHADOW_PREFIX))
        return {tool.name.removeprefix(catalog.SHADOW_PREFIX): tool for tool in shadows}

    def count_importable(self, tool: Tool) -> int:
        """Return how many files or entries an import of a tool would add."""
        source = self._tool_config.source(tool)
        with plugin_errors(tool.kind):
            return len(source.scan({}).added)

    def inspect_source(self, tool: Tool) -> SourceContents:
        """Return what an import of a tool's source would find."""
        return inspect_source(self._tool_config, tool, self._paths)

    def overlap_notices(self, tool: Tool) -> list[str]:
        """Return a notice for each other tool that reads files of a tool's source, or the other way round."""
        return overlap_notices(self._paths, self._store, self._tool_config, tool, catalog.tools(self._store))

    def tools_of_other_embedders(self) -> list[str]:
        """Return the tools whose vectors are not of the embedder of the settings, as far as its name is known."""
        names = []
        for tool in catalog.local_tools(self._store):
            embedder = self._tool_config.new_build_info(tool, asks_embedder=False).embedder
            if tool.is_built and embedder is not None and tool.built.embedder != embedder:
                names.append(tool.name)
        return names

    def check_ready(self) -> None:
        """Do what every search does first; raise an error if the library or its index does not answer."""
        if not self._store.files.still_exist():
            raise LibraryUnreachable(f"{self._store.location} is gone or does not answer")
        with self._store.read_transaction():
            if tool_ids := [tool.id for tool in catalog.tools(self._store) if tool.active]:
                self._index.view(tool_ids)

    def diagnose(self) -> list[doctor.Finding]:
        """Check the database file, the derived indexes, and that searches find the indexed texts."""
        findings = doctor.check_storage(self._store)
        for tool in catalog.tools(self._store):
            findings += doctor.check_index(self._index, tool)
            findings += doctor.check_index_state(self._index, tool)
            findings += [*self._check_source(tool), *self._check_settings(tool)]
            embedder = self._tool_config.embedder_of(tool)
            try:
                with self._store.read_transaction():
                    view = self._index.view([tool.id])
                    findings += doctor.check_vectors(view, tool)
                    findings += doctor.check_search(self._store, view, tool, embedder)
            except IndexFailure as failure:
                findings.append(doctor.Finding("error", tool.name, failure.message, failure.hint))
        return findings

    def search_problems(self, names: Sequence[str]) -> list[str]:
        """Return a message for each language and mode in which searches do not find the texts of some tools.

        An import ends with this. The calls of a service that embeds the questions count as those of the import.
        """
        problems: list[str] = []
        for name in names:
            try:
                problems += self._search_problems(catalog.get_tool(self._store, name))
            except (IndexFailure, UnknownName):
                continue  # the import has told it, or the tool has gone since
            except BunkoError as error:  # what was imported stays, and its report is due
                problems.append(f"{name} was not checked: {error.message}. {error.hint}".rstrip())
        return problems

    def _search_problems(self, tool: Tool) -> list[str]:
        _log.info("Checking that searches find the texts of %s", tool.name)
        # Documents without vectors cannot be found by them.
        embedder = None if tool.built.lacks_vectors else self._tool_config.embedder_of(tool)
        remote = as_remote(embedder)
        calls_before = remote.stats.calls if remote else 0
        with timer("self_check", _log), self._store.read_transaction():
            view = self._index.view([tool.id])
            findings = doctor.check_search(self._store, view, tool, embedder, per_language=_QUESTIONS)
        if remote and remote.stats.calls > calls_before:
            usage = EmbeddingUsage(calls=remote.stats.calls - calls_before)
            self._store.documents.write(tool.id, usage={remote.name: usage})
        return [f"{finding.message}. {finding.hint}" for finding in findings if finding.state != "ok"]

    def _check_source(self, tool: Tool) -> list[doctor.Finding]:
        """Report a folder that has vanished or has no file events, and a tool without documents."""
        uris, source = self._store.documents.uris(tool.id, limit=1), self._tool_config.source(tool)
        state = source_state(self._store, tool, source)
        if state not in ("ok", "elsewhere"):
            message = f"its source {tool.source} is {state}{'; the index is kept' if uris else ''}"
            hint = f"Restore it or, if it has moved: {suggested_commands.move_command(self._paths, tool)}"
            return [doctor.Finding("warning", tool.name, message, hint)]
        if uris:
            return doctor.check_events(tool, source) if state == "ok" else []
        hint = f"Import them with: {suggested_commands.import_command(self._paths, tool)}"
        return [doctor.Finding("warning", tool.name, "has no documents yet", hint)]

    def _check_settings(self, tool: Tool) -> list[doctor.Finding]:
        """Report what a tool was built with if the settings differ, and documents without vectors."""
        config, findings = self._tool_config, []
        problem = config.embedder_problem(tool)
        if parts := [part for part in config.differences(tool) if not (problem and part == "embedder")]:
            message = f"was built with a different {' and '.join(parts)}, and keeps it"
            hint = f"To use the current settings: {config.rebuild_command(tool)}"
            findings.append(doctor.Finding("warning", tool.name, message, hint))
        if problem:
            message = f"only words are searched: {problem}"
            findings.append(doctor.Finding("error", tool.name, message, config.embedder_remedy(tool)))
        elif tool.built.lacks_vectors:
            hint = "A later import or search computes the vectors."
            findings.append(doctor.Finding("warning", tool.name, "some documents have no vectors yet", hint))
        elif isinstance(config.embedder_of(tool), SentenceEmbedder) and (count := self._store.vectors.unsplit(tool.id)):
            message = f"{count} chunks were imported by an older bunko: each search splits the first of them again"
            command = suggested_commands.vector_command(self._paths, tool)
            findings.append(doctor.Finding("warning", tool.name, message, f"Split them once with: {command}"))
        return findings

    def sample_chunks(self, name: str, limit: int) -> list[ChunkRow]:
        """Return at most `limit` chunks of a tool, spread evenly, from the same state as its index."""
        tool = catalog.get_tool(self._store, name)
        return self._sample_chunks(tool.id, limit)

    def _sample_chunks(self, tool_id: int, limit: int) -> list[ChunkRow]:
        with self._store.read_transaction():
            view = self._index.view([tool_id])
            rows = view.rows()
            sample = [rows[index * len(rows) // limit] for index in range(limit)] if len(rows) > limit else rows
            ids = view.chunk_ids(sample)
            chunks: dict[int, ChunkRow] = {}
            for start in range(0, len(ids), _READ_BATCH):
                chunks |= self._store.documents.chunks(ids[start : start + _READ_BATCH])
        return [chunks[chunk_id] for chunk_id in ids if chunk_id in chunks]

    def propose_description(
        self, name: str, *, language: Literal["ja", "en"] | None = None, with_count: bool = True
    ) -> DescriptionProposal:
        """Return a description generated from a tool's documents, by default in the language of most of them."""
        tool = catalog.get_tool(self._store, name)
        chunks = self._sample_chunks(tool.id, _SAMPLE_SIZE)
        if not chunks:
            hint = f"Import them with: {suggested_commands.import_command(self._paths, tool)}"
            raise UnknownName(f"{tool.name} has no documents yet", hint=hint)
        other_ids = [other.id for other in catalog.tools(self._store) if other.id != tool.id]
        background = [
            self._sample_chunks(other_id, max(_SAMPLE_SIZE // len(other_ids), _MIN_SAMPLE_SIZE))
            for other_id in other_ids
        ]
        phrases = extract_phrases(chunks, background=background)
        language = language or main_language(chunks)
        documents = self._store.stats.totals(tool.id).documents if with_count else None
        return DescriptionProposal(
            tool, describe_tool(tool, phrases, documents=documents, language=language), language, phrases
        )

    def measure_routing(self, can_read: Callable[[str], bool] = lambda _: True) -> RoutingReport:
        """Measure with questions from headings whether descriptions distinguish the active tools that are readable."""
        tools = [tool for tool in catalog.select_tools(self._store, None) if can_read(tool.name)]
        questions = {tool.name: make_questions(self._sample_chunks(tool.id, _SAMPLE_SIZE)) for tool in tools}
        return measure_routing(tools, questions, flags=self._paths.cli_flags())

    def remember_include(self, tool: Tool) -> None:
        """Record that the user chose which files a tool includes: an index among documents may not say so itself."""
        if self._paths.is_among_documents:
            save_own_build(self._paths, replace(load_own_build(self._paths), include=tool.options.include or None))

    def set_search_settings(self, name: str, options: Mapping[str, Any]) -> Tool:
        """Set or clear a tool's own search settings; its index is unchanged."""
        tool = catalog.get_tool(self._store, name)
        tool_options = replace(tool.options, search=tool_search_settings(dict(options)))
        return self._store.tools.put(replace(tool, options=tool_options))

    def rename_tool(self, name: str, new_name: str, *, observer: Observer = NO_OBSERVER) -> Tool:
        """Give a tool another name; its documents and the log of its searches follow, nothing is imported again."""
        tool = catalog.get_tool(self._store, name)
        with ExitStack() as locks:
            if tool.kind == "web":  # a crawl finds its tool by name; it may take hours, so it is not waited for
                web_lock = self._store.lock("web")
                locks.enter_context(
                    hold_lock(web_lock, wait_seconds=0, observer=observer, activity="collecting pages for")
                )
            locks.enter_context(self._importer.write_lock(observer))
            renamed = catalog.rename_tool(self._store, tool.name, new_name)
            self._store.cache.rename_tool(tool.name, new_name)
            self._store.tokens.rename_tool(tool.name, new_name)
        return renamed

    def delete_tool(self, name: str, *, observer: Observer = NO_OBSERVER) -> None:
        """Delete a tool, its index and its derived files; its folder is not touched."""
        tool = catalog.get_tool(self._store, name)
        with self._importer.write_lock(observer, tools=[tool.name]):
            self._store.tokens.remove_tool(tool.name)  # first: a later tool of that name is not for them
            catalog.delete_tool(self._store, tool.name)
            self._store.vectors.delete_orphans()
        catalog.drop_index(self._index, tool)
