"""The settings and a tool in, what it is made of out: its source, its cutting, its embedder, and whether these hold."""

from __future__ import annotations

import shlex
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bunko import catalog, embedders, sources
from bunko.errors import LibraryMismatch, SettingsError
from bunko.home import Home
from bunko.ingest import ChunkerSettings
from bunko.protocols import Embedder, Source
from bunko.settings import Settings
from bunko.text import grams, pieces, words
from bunko.types import Tool


class Recipe:
    """How the tools of a library are made: as each says itself, else as the settings say."""

    def __init__(self, home: Home, settings: Settings) -> None:
        self._home, self._settings = home, settings
        self._embedder: Embedder | None = None
        self._embedder_known = False

    def embedder(self) -> Embedder | None:
        """Return the embedder the settings name, built at first use."""
        if not self._embedder_known:
            self._embedder = _embedder(self._settings)
            self._embedder_known = True
        return self._embedder

    def embeds(self) -> bool:
        """Say whether vectors are made at all, without loading what makes them."""
        return self._settings.embedding.provider != "none"

    def embedder_of(self, tool: Tool) -> Embedder | None:
        """Return what makes the vectors of a tool; None where it has none."""
        return self.embedder() if has_vectors(tool) else None

    def source(self, tool: Tool) -> Source:
        """Return where a tool's documents come from."""
        root, own = Path(tool.source), self._home.folder
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
        )

    def cutting(self, tool: Tool) -> ChunkerSettings:
        """Return how a tool's documents are cut: as it says itself, else as the settings say."""
        chunker, tokens, own = self._settings.chunker, self._settings.chunking, tool.options
        # A memo is one thought: it is cut only where it is too long.
        kind = own.get("chunker", "entry" if tool.kind in ("memos", "jsonl") else chunker.kind)
        if kind == "tokens":
            size, overlap = own.get("chunk_size", tokens.size), own.get("chunk_overlap", tokens.overlap)
            return ChunkerSettings(kind, size=size, overlap=overlap)
        return ChunkerSettings(
            kind, chunker.max_chunk_chars, chunker.min_chunk_chars, tuple(chunker.heading_levels),
            chunker.chunk_size, chunker.chunk_overlap, chunker.row_context_size,
        )  # fmt: skip

    def recut(
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
        return catalog.recut({}, kind, size, own.get("chunk_overlap", given.overlap) if overlap is None else overlap)

    def built(self, tool: Tool) -> dict[str, Any]:
        """Return the facts that a tool built now would remember."""
        embedder, cutting = self.embedder_of(tool), self.cutting(tool)
        facts = {
            "words": words.VERSION,
            "grams": grams.VERSION,
            "chunker": {name: list(v) if isinstance(v, tuple) else v for name, v in asdict(cutting).items()},
            "embedder": embedder.name if embedder else "none",
        }
        return facts | {"tokenizer": pieces.NAME} if cutting.kind == "tokens" else facts

    def check(self, tool: Tool) -> None:
        """Make sure that a tool was built as it would be now: anything else would answer wrongly in silence."""
        if not tool.built:
            return
        wanted = self.built(tool)
        different = sorted(name for name in wanted if tool.built.get(name) != wanted[name])
        if not different:
            return
        command = shlex.join(self._rebuilding(tool))
        raise LibraryMismatch(
            f"{tool.name} was built with another {' and '.join(different)} than the settings name now",
            hint=f"Rebuild it with: {command}   (or bring the old settings back)",
        )

    def _rebuilding(self, tool: Tool) -> list[str]:
        if self._home.docs_dir is not None:
            return ["bunko", "reindex", *self._home.arguments(), "--force"]
        return ["bunko", "import", "-n", tool.name, "--mode", "replace", *self._home.arguments()]


def _embedder(settings: Settings) -> Embedder | None:
    embedding, retry = settings.embedding, settings.retry
    name = embedders.ALIASES.get(embedding.provider, embedding.provider)
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


def has_vectors(tool: Tool) -> bool:
    """Say whether a tool is to be imported with vectors."""
    return bool(tool.options.get("embedder") != "none")
