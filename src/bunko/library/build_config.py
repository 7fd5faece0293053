"""Configure the source, chunker and embedder of tools, and detect tools built with other settings."""

from __future__ import annotations

import shlex
from contextlib import suppress
from pathlib import Path
from typing import Any

from bunko import embedders, sources
from bunko.embedders import as_remote
from bunko.errors import EmbedderError, LibraryMismatch, SettingsError
from bunko.ingest.chunker_settings import ChunkerSettings
from bunko.library.paths import LibraryPaths
from bunko.library.web_defaults import chunk_overlap, chunk_size
from bunko.protocols import Embedder, Source, Store
from bunko.settings import Settings
from bunko.sources.fixed import FixedDocuments
from bunko.stores.tool_pages import ToolPages
from bunko.text import analyzer, ngrams
from bunko.types import Tool
from bunko.types.build_info import BuildInfo
from bunko.types.tool_options import ToolOptions


class ToolConfig:
    """How the tools of a library are built: by their own options, else by the settings."""

    def __init__(self, paths: LibraryPaths, settings: Settings, store: Store) -> None:
        self._paths, self._settings, self._store = paths, settings, store
        self._embedder: Embedder | None = None
        self._embedder_is_built = False

    def embedder(self) -> Embedder | None:
        """Return the embedder that the settings name, built at first use."""
        if not self._embedder_is_built:
            self._embedder = build_embedder(self._settings, self._settings.embedding.provider)
            self._embedder_is_built = True
        return self._embedder

    def uses_vectors(self) -> bool:
        """Return whether the settings name an embedder, without loading it."""
        return self._settings.embedding.provider != "none"

    def embedder_of(self, tool: Tool) -> Embedder | None:
        """Return the embedder of a tool; None if the tool has no vectors."""
        return self.embedder() if has_vectors(tool) else None

    def source(self, tool: Tool) -> Source:
        """Build the source of a tool's documents."""
        root, library_folder = Path(tool.source), self._paths.folder
        scanner, kind = self._settings.scanner, sources.find_kind(tool.kind)
        if not tool.source and not (kind and kind.root == "none"):
            return FixedDocuments(tool.name)
        # The library's own files are not documents, wherever the user put them.
        own_files = []
        if library_folder != root and library_folder.is_relative_to(root):
            own_files = [f"/{library_folder.relative_to(root).as_posix()}/"]
        return sources.build(
            tool.kind if kind else "folder",
            root,
            extensions=scanner.file_extensions,
            exclude_dirs=scanner.exclude_dirs,
            exclude=(*tool.options.exclude, *own_files),
            include=tool.options.include,
            respect_gitignore=scanner.respect_gitignore,
            max_file_bytes=scanner.max_file_bytes,
            max_memo_file_bytes=self._settings.memos.max_file_bytes,
            pages=ToolPages(self._store, tool.id) if kind and kind.needs_pages else None,
        )

    def chunker_settings(self, tool: Tool) -> ChunkerSettings:
        """Return the chunker settings of a tool: its own options, else the settings."""
        chunker, tokens, options = self._settings.chunker, self._settings.chunking, tool.options
        source_kind = sources.find_kind(tool.kind)
        kind = options.chunker or (source_kind and source_kind.chunker) or chunker.kind
        if kind == "tokens":
            size = tokens.size if options.chunk_size is None else options.chunk_size
            overlap = tokens.overlap if options.chunk_overlap is None else options.chunk_overlap
            return ChunkerSettings(kind, size=size, overlap=overlap)
        max_chars, min_chars, overlap = chunker.max_chunk_chars, chunker.min_chunk_chars, chunker.chunk_overlap
        if sources.section_of(tool.kind) == "web":
            max_chars = chunk_size(self._settings)
            min_chars = min(min_chars, max_chars)
            if kind == "auto" and (page_overlap := chunk_overlap(self._settings)):
                kind, overlap = "pages", page_overlap
        return ChunkerSettings(
            kind,
            max_chars,
            min_chars,
            tuple(chunker.heading_levels),
            chunker.chunk_size,
            overlap,
            chunker.row_context_size,
        )

    def options_with_chunker(
        self, options: ToolOptions, kind: str | None, size: int | None, overlap: int | None
    ) -> ToolOptions:
        """Return options with another chunker; a size or overlap alone implies tokens, no argument changes nothing.

        A missing size or overlap comes from the options, else from the settings.
        """
        if kind is None and size is None and overlap is None:
            return options
        kind = kind or "tokens"
        if kind != "tokens" and (size is not None or overlap is not None):
            raise SettingsError(
                f"The chunker {kind!r} does not take a size in tokens",
                hint="Leave out the size and the overlap, or choose the chunker tokens.",
            )
        defaults = self._settings.chunking
        overlap = options.chunk_overlap if overlap is None else overlap
        return options.with_chunker(
            kind, size or options.chunk_size or defaults.size, defaults.overlap if overlap is None else overlap
        )

    def build_info(self, tool: Tool) -> BuildInfo:
        """Return what a tool would record if it was built now."""
        embedder = self.embedder_of(tool)
        return self._build_info(tool, embedder.name if embedder else "none")

    def _build_info(self, tool: Tool, embedder_name: str | None) -> BuildInfo:
        chunker = self.chunker_settings(tool)
        tokenizer = None
        if chunker.kind == "tokens":
            from bunko.text.subwords import MODEL_NAME

            tokenizer = MODEL_NAME
        return BuildInfo(analyzer.VERSION, ngrams.VERSION, chunker.to_json(), tokenizer, embedder_name)

    def check_tool(self, tool: Tool, *, vectors: bool = True) -> None:
        """Raise if a tool was built with other settings: searching it would silently give wrong results.

        Without `vectors`, the embedder is not compared.
        """
        remote = as_remote(self.embedder_of(tool)) if vectors else None
        if remote:
            remote.restore_size(tool.built.embedder or "")
        changed = self.changed_parts(tool, vectors=vectors)
        if not changed:
            return
        with suppress(EmbedderError):  # a model that must be asked for its size may not answer
            changed = self.changed_parts(tool)
        raise LibraryMismatch(
            f"The index of {tool.name!r} was built with a different {' and '.join(sorted(changed))}",
            hint=f"{self.repair_hint(tool)}   (or restore the old settings)",
        )

    def changed_parts(self, tool: Tool, *, vectors: bool = True) -> set[str]:
        """Return the names of the parts that differ from those the current settings name."""
        if not tool.is_built:
            return set()
        return tool.built.differences(self.build_info(tool) if vectors else self._build_info(tool, None))

    def repair_hint(self, tool: Tool) -> str:
        """Return a hint with the command that rebuilds a tool with the current settings."""
        if not self.changed_parts(tool, vectors=False):
            command = ["bunko", "reembed", *self._tool_arguments(tool)]
            return f"Compute new vectors with: {shlex.join(command)}"
        return f"Rebuild it with: {shlex.join(self._rebuild_command(tool))}"

    def _tool_arguments(self, tool: Tool) -> list[str]:
        selection = [] if self._paths.docs_dir is not None else ["-n", tool.name]
        return [*selection, *self._paths.cli_arguments()]

    def _rebuild_command(self, tool: Tool) -> list[str]:
        if self._paths.docs_dir is not None:
            return ["bunko", "reindex", *self._paths.cli_arguments(), "--force"]
        return ["bunko", "import", "-n", tool.name, "--mode", "replace", *self._paths.cli_arguments()]


def build_embedder(settings: Settings, provider: str) -> Embedder | None:
    """Build the embedder of a provider from the settings; return None for `none`."""
    return None if provider == "none" else embedders.build(provider, **embedder_arguments(settings, provider))


def embedder_arguments(settings: Settings, provider: str) -> dict[str, Any]:
    """Return the arguments of an embedder: its own settings, and those of all embedders that it takes."""
    embedding, retry, model = settings.embedding, settings.retry, settings.model
    _, declared, alias = embedders.select_provider(provider)
    shared: dict[str, Any] = {
        "max_tokens": embedding.max_tokens, "too_long": embedding.too_long, "batch": embedding.batch_size,
        "parallel": embedding.parallel, "timeout": embedding.timeout,
        "retries": retry.max_retries, "delay": retry.base_delay, "backoff": retry.backoff_factor,
        "idle": model.auto_unload_minutes * 60 or float("inf"), "threshold": model.memory_threshold,
    }  # fmt: skip
    arguments = declared.option_arguments(vars(embedding)) | {name: shared[name] for name in declared.shared}
    return {**arguments, **(alias.arguments if alias else {})}


def has_vectors(tool: Tool) -> bool:
    """Return whether a tool is imported with vectors."""
    return tool.options.embedder != "none"
