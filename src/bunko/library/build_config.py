"""The settings and a tool in, what it is made of out: its source, its cutting, its embedder, and whether these hold."""

from __future__ import annotations

import shlex
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bunko import embedders, sources
from bunko.errors import EmbedderError, LibraryMismatch, SettingsError
from bunko.ingest.embed import as_remote
from bunko.ingest.pipeline import ChunkerSettings
from bunko.library import catalog
from bunko.library.paths import LibraryPaths
from bunko.library.web_defaults import chunk_overlap, chunk_size
from bunko.protocols import Embedder, Source, Store
from bunko.settings import Settings
from bunko.stores.sqlite.pages import ToolPages
from bunko.text import analyzer, ngrams, subwords
from bunko.types import Tool


class ToolConfig:
    """How the tools of a library are made: as each says itself, else as the settings say."""

    def __init__(self, paths: LibraryPaths, settings: Settings, store: Store) -> None:
        self._paths, self._settings, self._store = paths, settings, store
        self._embedder: Embedder | None = None
        self._embedder_is_built = False

    def embedder(self) -> Embedder | None:
        """Return the embedder the settings name, built at first use."""
        if not self._embedder_is_built:
            self._embedder = build_embedder(self._settings, self._settings.embedding.provider)
            self._embedder_is_built = True
        return self._embedder

    def uses_vectors(self) -> bool:
        """Say whether vectors are made at all, without loading what makes them."""
        return self._settings.embedding.provider != "none"

    def embedder_of(self, tool: Tool) -> Embedder | None:
        """Return what makes the vectors of a tool; None where it has none."""
        return self.embedder() if has_vectors(tool) else None

    def source(self, tool: Tool) -> Source:
        """Return where a tool's documents come from."""
        root, own = Path(tool.source), self._paths.folder
        scanner = self._settings.scanner
        ours = f"/{own.relative_to(root).as_posix()}/" if own != root and own.is_relative_to(root) else ""
        return sources.build(
            tool.kind if tool.kind in sources.KINDS else "folder",
            root,
            extensions=scanner.file_extensions,
            exclude_dirs=scanner.exclude_dirs,
            # Our own files are not documents, wherever the user put them.
            exclude=(*tool.options.get("exclude", ()), *([ours] if ours else [])),
            include=tool.options.get("include", ()),
            respect_gitignore=scanner.respect_gitignore,
            max_file_bytes=scanner.max_file_bytes,
            max_memo_file_bytes=self._settings.memos.max_file_bytes,
            pages=ToolPages(self._store, tool.id, self._paths.database) if tool.kind == "web" else None,
        )

    def chunker_settings(self, tool: Tool) -> ChunkerSettings:
        """Return how a tool's documents are cut: as it says itself, else as the settings say."""
        chunker, tokens, own = self._settings.chunker, self._settings.chunking, tool.options
        # A memo is one thought: it is cut only where it is too long.
        kind = own.get("chunker", "entry" if tool.kind in ("memos", "jsonl") else chunker.kind)
        if kind == "tokens":
            size, overlap = own.get("chunk_size", tokens.size), own.get("chunk_overlap", tokens.overlap)
            return ChunkerSettings(kind, size=size, overlap=overlap)
        most, least, overlap = chunker.max_chunk_chars, chunker.min_chunk_chars, chunker.chunk_overlap
        if tool.kind == "web":
            most = chunk_size(self._settings)
            least = min(least, most)
            if kind == "auto" and (shared := chunk_overlap(self._settings)):
                kind, overlap = "pages", shared
        return ChunkerSettings(
            kind, most, least, tuple(chunker.heading_levels), chunker.chunk_size, overlap, chunker.row_context_size
        )

    def chunker_options(
        self, kind: str | None, size: int | None, overlap: int | None, *, tool: Tool | None = None
    ) -> dict[str, Any] | None:
        """Return a way of cutting for a tool; a size or an overlap alone means tokens, nothing at all means None.

        What is not given stays as a tool that is there has it, else it is as the settings say.
        """
        if kind is None and size is None and overlap is None:
            return None
        kind = kind or "tokens"
        if kind != "tokens" and (size is not None or overlap is not None):
            raise SettingsError(
                f"A size in tokens does not go with the chunker {kind!r}",
                hint="Leave the size and the overlap out, or choose the chunker tokens.",
            )
        own, given = tool.options if tool else {}, self._settings.chunking
        size = size or own.get("chunk_size", given.size)
        return catalog.options_with_chunker(
            {}, kind, size, own.get("chunk_overlap", given.overlap) if overlap is None else overlap
        )

    def build_facts(self, tool: Tool) -> dict[str, Any]:
        """Return the facts that a tool built now would remember."""
        embedder = self.embedder_of(tool)
        return self._text_facts(tool) | {"embedder": embedder.name if embedder else "none"}

    def _text_facts(self, tool: Tool) -> dict[str, Any]:
        cutting = self.chunker_settings(tool)
        facts = {
            "words": analyzer.VERSION,
            "grams": ngrams.VERSION,
            "chunker": {name: list(v) if isinstance(v, tuple) else v for name, v in asdict(cutting).items()},
        }
        return facts | {"tokenizer": subwords.MODEL_NAME} if cutting.kind == "tokens" else facts

    def check_tool(self, tool: Tool, *, vectors: bool = True) -> None:
        """Make sure that a tool was built as it would be now: anything else would answer wrongly in silence.

        Where no vectors are asked for, it does not matter what made them.
        """
        costly = as_remote(self.embedder_of(tool)) if vectors else None
        if costly:
            costly.restore_size(tool.built.get("embedder", ""))
        different = self.changed_facts(tool, vectors=vectors)
        if not different:
            return
        with suppress(EmbedderError):  # a model that has to be asked for its size may not answer
            different = self.changed_facts(tool)
        raise LibraryMismatch(
            f"{tool.name} was built with another {' and '.join(sorted(different))} than the settings name now",
            hint=f"{self.repair_hint(tool)}   (or bring the old settings back)",
        )

    def changed_facts(self, tool: Tool, *, vectors: bool = True) -> set[str]:
        """Return the facts in which a tool differs from one that was built now."""
        wanted = (self.build_facts(tool) if vectors else self._text_facts(tool)) if tool.built else {}
        return {name for name in wanted if tool.built.get(name) != wanted[name]}

    def repair_hint(self, tool: Tool) -> str:
        """Return the sentence with the command that makes a tool what it would be if it was built now."""
        if not self.changed_facts(tool, vectors=False):
            command = ["bunko", "reembed", *self._tool_arguments(tool)]
            return f"Make new vectors for what it holds with: {shlex.join(command)}"
        return f"Rebuild it with: {shlex.join(self._rebuild_command(tool))}"

    def _tool_arguments(self, tool: Tool) -> list[str]:
        own = [] if self._paths.docs_dir is not None else ["-n", tool.name]
        return [*own, *self._paths.cli_arguments()]

    def _rebuild_command(self, tool: Tool) -> list[str]:
        if self._paths.docs_dir is not None:
            return ["bunko", "reindex", *self._paths.cli_arguments(), "--force"]
        return ["bunko", "import", "-n", tool.name, "--mode", "replace", *self._paths.cli_arguments()]


def build_embedder(settings: Settings, provider: str) -> Embedder | None:
    """Return the embedder of a name, built as the settings say; None for `none`."""
    embedding, retry = settings.embedding, settings.retry
    name = embedders.ALIASES.get(provider, provider)
    own: dict[str, dict[str, Any]] = {
        "gemini": {
            "model": embedding.model, "size": embedding.output_dimensionality,
            "document": embedding.task_type_document, "query": embedding.task_type_query,
            "base_url": embedding.gemini_base_url, "api_key": embedding.gemini_api_key,
        },
        "openai": {
            "model": embedding.model_online, "base_url": embedding.openai_base_url,
            "api_key": embedding.openai_api_key,
        },
        "lmstudio": {"model": embedding.model_local, "base_url": embedding.lmstudio_base_url},
        "openrouter": {
            "model": embedding.model_openrouter, "base_url": embedding.openrouter_base_url,
            "api_key": embedding.openrouter_api_key,
        },
        "ollama": {"model": embedding.model_ollama, "base_url": embedding.ollama_base_url},
    }  # fmt: skip
    if name == "transformers":
        return embedders.build(name, **_transformers_options(settings, provider))
    if name not in own:
        return embedders.build(name)
    options = own[name] | {
        "max_tokens": embedding.max_tokens, "too_long": embedding.too_long, "batch": embedding.batch_size,
        "parallel": embedding.parallel, "timeout": embedding.timeout,
        "retries": retry.max_retries, "delay": retry.base_delay, "backoff": retry.backoff_factor,
    }  # fmt: skip
    if name != "gemini":
        options |= {"dimensions": embedding.dimensions, "prefix": embedding.prefix_enabled}
    return embedders.build(name, **options)


def _transformers_options(settings: Settings, provider: str) -> dict[str, Any]:
    """Return what a model on this machine is built with."""
    embedding, model = settings.embedding, settings.model
    own = {} if provider == "plamo" else {"model": embedding.model_transformers}
    return own | {
        "device": embedding.device, "device_batch": embedding.device_batch_size, "max_tokens": embedding.max_tokens,
        "too_long": embedding.too_long, "trust": embedding.trust_remote_code,
        "idle": model.auto_unload_minutes * 60 or float("inf"), "threshold": model.memory_threshold,
    }  # fmt: skip


def has_vectors(tool: Tool) -> bool:
    """Say whether a tool is to be imported with vectors."""
    return bool(tool.options.get("embedder") != "none")
