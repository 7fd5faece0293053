"""Decide how each tool is built: as it was built before, and by the settings where it was not."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from bunko import embedders, sources
from bunko.embedders.embed import as_remote
from bunko.errors import EmbedderError, SettingsError
from bunko.ingest.chunker_settings import ChunkerSettings
from bunko.library.opening.paths import LibraryPaths, user_data_folder
from bunko.library.tools import suggested_commands
from bunko.library.tools.embedder import (
    build_embedder,
    embedder_arguments,
    is_earlier_model,
    is_named,
    lost_reason,
    missing_reason,
    model_arguments,
)
from bunko.library.tools.scan_settings import ScanSettings
from bunko.library.tools.web_defaults import chunk_overlap, chunk_size
from bunko.protocols import Embedder, Source, Store
from bunko.readers import plugin_suffixes
from bunko.settings import Settings
from bunko.settings.folder_files import FOLDER_LIMITS
from bunko.sources.fixed import FixedDocuments
from bunko.sources.gitignore import named_endings
from bunko.stores.tool_pages import ToolPages
from bunko.text import analyzer, ngrams
from bunko.types import Tool
from bunko.types.build_info import BuildInfo
from bunko.types.tool_options import MAX_CHUNK_TOKENS, MIN_CHUNK_TOKENS, ToolOptions

_BUNDLED_PROVIDER = "static"
# What users call the recorded parts.
_PART_NAMES = {"words": "tokenizer", "grams": "tokenizer", "tokenizer": "chunker"}


class ToolConfig:
    """How the tools of a library are built.

    What a tool was built with stands until it is rebuilt: the settings are for tools that hold nothing yet, and for
    parts that a tool did not record.
    """

    def __init__(self, paths: LibraryPaths, settings: Settings, store: Store) -> None:
        self.paths, self._settings, self._store = paths, settings, store
        self._embedders: dict[str, Embedder | None] = {}
        self._filled_tools: set[int] = set()
        # The last differences by tool and whether vectors matter, and what they depend on: every search asks for them.
        self._differences: dict[tuple[int, bool], tuple[tuple[object, ...], tuple[str, ...]]] = {}
        # Tools, by id, whose index chooses only files that any index may choose: every search looks for others.
        self._within_limits: dict[int, tuple[object, ...]] = {}

    # The settings

    @cached_property
    def _scan_settings(self) -> ScanSettings:
        return ScanSettings.from_settings(self._settings)

    def embedder(self) -> Embedder | None:
        """Return the embedder that the settings name, built at first use."""
        return self._build_embedder(self._settings.embedding.provider)

    def uses_vectors(self) -> bool:
        """Return whether the settings name an embedder, without loading it."""
        return self._settings.embedding.provider != "none"

    def new_chunker_settings(self, tool: Tool) -> ChunkerSettings:
        """Return the chunker settings of a tool that is built anew: its own options, else the settings."""
        chunker, tokens, options = self._settings.chunker, self._settings.chunking, tool.options
        source_kind = sources.find_kind(tool.kind)
        kind = options.chunker or (source_kind and source_kind.chunker) or chunker.kind
        if kind == "tokens":
            size = tokens.size if options.chunk_size is None else options.chunk_size
            overlap = tokens.overlap if options.chunk_overlap is None else options.chunk_overlap
            size = min(max(size, MIN_CHUNK_TOKENS), MAX_CHUNK_TOKENS)
            return ChunkerSettings(kind, size=size, overlap=min(max(overlap, 0), size // 2))
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

    def new_build_info(self, tool: Tool, *, asks_embedder: bool = True) -> BuildInfo:
        """Return what a tool records if it is built anew; without `asks_embedder`, no service is asked for a size."""
        embedder = self.embedder() if has_vectors(tool) else None
        embedding = self._embedding_record() if embedder else None
        name = _recordable_name(embedder, asks_embedder=asks_embedder)
        return self._build_info(self.new_chunker_settings(tool), self._scan_settings, name, embedding)

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

    # What a tool was built with, else the settings

    def source(self, tool: Tool) -> Source:
        """Build the source of a tool's documents."""
        kind = sources.find_kind(tool.kind)
        if not tool.source and not (kind and kind.root == "none"):
            return FixedDocuments(tool.name)
        recorded, endings = self._recorded_scan_settings(tool), named_endings(tool.options.include)
        scanner, own_endings = self._limit_scan_settings(tool, recorded), self._limit_endings(tool, endings)
        # Its index says that it was built from more files than it may choose, or with a reader of another package that
        # is gone or cannot be loaded: a search must not delete them.
        lost = _recorded_plugin_suffixes(tool).difference(plugin_suffixes())
        is_limited = (recorded, endings) != (scanner, own_endings) or lost
        keep = self._build_source(tool, recorded, (*endings, *lost)) if is_limited else None
        return self._build_source(tool, scanner, own_endings, keep)

    def _build_source(
        self, tool: Tool, scanner: ScanSettings, endings: Sequence[str], keep: Source | None = None
    ) -> Source:
        root, library_folder, kind = Path(tool.source), self.paths.folder, sources.find_kind(tool.kind)
        # The library's own files are not documents, wherever the user put them.
        own_files = []
        if library_folder != root and library_folder.is_relative_to(root):
            own_files = [f"/{library_folder.relative_to(root).as_posix()}/"]
        return sources.build(
            tool.kind if kind else "folder",
            root,
            extensions=(*scanner.file_extensions(), *endings),
            exclude_dirs=scanner.exclude_dirs,
            exclude=(*tool.options.exclude, *own_files),
            include=tool.options.include,
            respect_gitignore=scanner.respect_gitignore,
            max_file_bytes=scanner.max_file_bytes,
            max_memo_file_bytes=scanner.max_memo_file_bytes,
            pages=ToolPages(self._store, tool.id) if kind and kind.needs_pages else None,
            keep=keep,
        )

    def scan_settings(self, tool: Tool) -> ScanSettings:
        """Return which files of a tool's source are read."""
        return self._limit_scan_settings(tool, self._recorded_scan_settings(tool))

    def _recorded_scan_settings(self, tool: Tool) -> ScanSettings:
        """Return which files a tool records to have read, else the settings."""
        current = self._scan_settings
        if not self.holds_documents(tool):
            return current
        scan = ScanSettings.from_json(tool.built.scanner) if tool.built.scanner is not None else None
        if scan is None:
            # Built by an older version, which did not record it: whatever it has read is still read.
            kind = sources.find_kind(tool.kind)
            uses_extensions = kind is None or kind.uses_extensions
            scan = current.widened(self._store.documents.fingerprints(tool.id)) if uses_extensions else current
        return scan

    def _limit_scan_settings(self, tool: Tool, recorded: ScanSettings) -> ScanSettings:
        """Return recorded settings within the limits for an index that somebody else may have built."""
        if not self.paths.is_among_documents or not self.holds_documents(tool):
            return recorded
        limited = recorded.limited(self._scan_settings)
        if limited == recorded or (own_scanner := load_own_build(self.paths).scanner) is None:
            return limited
        return recorded.limited(self._scan_settings, ScanSettings.from_json(own_scanner))

    def _limit_endings(self, tool: Tool, endings: tuple[str, ...]) -> tuple[str, ...]:
        """Return the endings that a tool includes, without those that somebody else may have chosen."""
        if not self.paths.is_among_documents:
            return endings
        if _are_document_endings(endings) or load_own_build(self.paths).include == tool.options.include:
            return endings
        return tuple(ending for ending in endings if _are_document_endings((ending,)))

    def chunker_settings(self, tool: Tool) -> ChunkerSettings:
        """Return how the documents of a tool are chunked."""
        new, recorded = self.new_chunker_settings(tool), self._recorded_chunker_settings(tool)
        # Somebody else may have recorded it: sizes that would blow up an index are not taken over.
        is_harmless = (
            not self.paths.is_among_documents
            or recorded == new
            or _is_within_limits(recorded)
            or recorded.to_json() == load_own_build(self.paths).chunker
        )
        return recorded if is_harmless else new

    def _recorded_chunker_settings(self, tool: Tool) -> ChunkerSettings:
        """Return how a tool records that its documents are chunked, else the settings."""
        if tool.built.chunker is None or not self.holds_documents(tool):
            return self.new_chunker_settings(tool)
        return ChunkerSettings.from_json(tool.built.chunker) or self.new_chunker_settings(tool)

    def remember_own_build(self, tool: Tool) -> None:
        """Keep in the user's data folder what an index among documents is built anew with, if that is beyond limits."""
        if not self.paths.is_among_documents:
            return
        scanner, chunker = self._scan_settings, self.new_chunker_settings(tool)
        is_harmless = scanner.limited(ScanSettings.from_settings(Settings())) == scanner
        own_build = OwnBuild(
            chunker=None if _is_within_limits(chunker) else chunker.to_json(),
            scanner=None if is_harmless else scanner.to_json(),
            include=load_own_build(self.paths).include,
        )
        save_own_build(self.paths, own_build)

    def embedder_of(self, tool: Tool) -> Embedder | None:
        """Return the embedder of a tool's vectors; None if the tool has none, or if its embedder cannot be used.

        The embedder that the settings name is preferred; a tool may also have been built with the bundled one, or with
        another model of the provider in the settings. No other service is used: only the settings may choose one.
        """
        if not has_vectors(tool):
            return None
        current, recorded = self.embedder(), self._recorded_embedder(tool)
        if recorded is None:
            return current
        if recorded == "none":
            return None
        if current is not None and is_named(current, recorded):
            return current
        bundled = self._build_embedder(_BUNDLED_PROVIDER)
        if bundled is not None and is_named(bundled, recorded):
            return bundled
        earlier = self._build_recorded_embedder(tool)
        return earlier if earlier is not None and is_named(earlier, recorded) else None

    def is_lexical(self, tool: Tool) -> bool:
        """Return whether a tool has no vectors, because it was imported without."""
        if not has_vectors(tool):
            return True
        recorded = self._recorded_embedder(tool)
        return recorded == "none" or (recorded is None and not self.uses_vectors())

    def embedder_problem(self, tool: Tool) -> str:
        """Return why the embedder that built a tool's vectors cannot be used, or an empty string."""
        recorded = self._recorded_embedder(tool)
        if not has_vectors(tool) or recorded in (None, "none") or self.embedder_of(tool) is not None:
            return ""
        return lost_reason(recorded or "", self.embedder())

    def embedder_remedy(self, tool: Tool) -> str:
        """Return what to do about a tool whose embedder cannot be used."""
        recorded, current = tool.built.embedder or "", self.embedder()
        reason = missing_reason(recorded, current)
        if not reason and is_earlier_model(recorded, current):
            return f"Compute them again: {self.rebuild_command(tool)}"
        return reason or f"Set it again, or use the current one: {self.rebuild_command(tool)}"

    def build_info(self, tool: Tool, *, asks_embedder: bool = True) -> BuildInfo:
        """Return what a tool records after an import of its changes; see `new_build_info`."""
        if not self.holds_documents(tool):
            return self.new_build_info(tool, asks_embedder=asks_embedder)
        built, recorded = tool.built, self._recorded_embedder(tool)
        embedding = built.embedding
        if recorded is None:
            recorded, embedding = built.embedder, None
            with suppress(EmbedderError):  # a model that must be asked for its size may be away
                embedder = self.embedder_of(tool)
                if name := _recordable_name(embedder, asks_embedder=asks_embedder):
                    recorded, embedding = name, self._embedding_record() if embedder else None
        info = self._build_info(
            self._recorded_chunker_settings(tool), self._recorded_scan_settings(tool), recorded, embedding
        )
        return BuildInfo(
            words=built.words or info.words,
            grams=built.grams or info.grams,
            chunker=info.chunker,
            tokenizer=info.tokenizer,
            embedder=info.embedder,
            scanner=info.scanner,
            embedding=info.embedding,
            lacks_vectors=built.lacks_vectors,
            plugin_suffixes=sorted(_recorded_plugin_suffixes(tool).union(info.plugin_suffixes or ())) or None,
            other=built.other,
        )

    def is_outdated(self, tool: Tool) -> bool:
        """Return whether a tool was built by a version that divided texts into words in another way."""
        built = tool.built
        return self.holds_documents(tool) and (
            (built.words or 0) < analyzer.VERSION or (built.grams or 0) < ngrams.VERSION
        )

    # Differences between both

    def differences(self, tool: Tool, *, vectors: bool = True) -> list[str]:
        """Return the parts, as users call them, that a rebuild with the current settings would change.

        Without `vectors`, the embedder does not matter and is not loaded.
        """
        if not self.holds_documents(tool):
            return []
        key = tool.built, tool.options, tool.kind
        compared, parts = self._differences.get((tool.id, vectors), (None, ()))
        if compared == key:
            return list(parts)
        recorded, embedder_name = tool.built, tool.built.embedder
        new = self._build_info(self.new_chunker_settings(tool), self._scan_settings, embedder_name, None)
        changed = recorded.differences(new) - ({"scanner"} if recorded.scanner is None else set())
        if vectors and self._recorded_embedder(tool) is not None:
            current = self.embedder() if has_vectors(tool) else None
            if not (is_named(current, embedder_name or "") if current else embedder_name == "none"):
                changed.add("embedder")
        parts = tuple(sorted({_PART_NAMES.get(name, name) for name in changed}))
        self._differences[tool.id, vectors] = key, parts
        return list(parts)

    def difference_notices(self, tools: Sequence[Tool], *, vectors: bool = True) -> list[str]:
        """Return one notice that names the tools which differ from the settings, and the command that rebuilds one.

        Without `vectors`, the embedder does not matter and is not loaded.
        """
        changed, unread_notices = {}, self._unread_notices(tools)
        for tool in tools:
            parts = self.differences(tool, vectors=vectors)
            if "embedder" in parts and (self.is_lexical(tool) or self.embedder_problem(tool)):
                parts.remove("embedder")  # another notice says so
            if parts:
                changed[tool.name] = parts
        if not changed:
            return unread_notices
        first = next(tool for tool in tools if tool.name in changed)
        parts = sorted({part for names in changed.values() for part in names})
        are, keeps = ("was", "keeps it") if len(changed) == 1 else ("were", "keep it")
        return [
            f"{', '.join(changed)} {are} built with a different {' and '.join(parts)} and {keeps}."
            f" To use the current settings: {self.rebuild_command(first)}",
            *unread_notices,
        ]

    def _unread_notices(self, tools: Sequence[Tool]) -> list[str]:
        """Return a notice if files of an index among documents are no longer read, because it may not choose them."""
        for tool in tools:
            key = tool.built, tool.options, tool.kind
            if self._within_limits.get(tool.id) == key:
                continue
            if not self.paths.is_among_documents:
                return []
            recorded, endings = self._recorded_scan_settings(tool), named_endings(tool.options.include)
            if recorded.limited(self._scan_settings) == recorded and _are_document_endings(endings):
                if tool.built.scanner is not None:  # else it is guessed from the documents, which change
                    self._within_limits[tool.id] = key
                continue
            keys = recorded.differences(self._limit_scan_settings(tool, recorded))
            command = suggested_commands.rebuild_command(self.paths, tool)
            if unread_endings := sorted({*endings} - {*self._limit_endings(tool, endings)}):
                keys, command = unread_endings, suggested_commands.include_command(self.paths, tool)
            if keys:
                return [
                    f"Some files of {tool.name} stay as they were indexed, because its own index may not choose"
                    f" {', '.join(keys)}. To read them again, set that yourself: {command}"
                ]
        return []

    def rebuild_command(self, tool: Tool) -> str:
        """Return the command that builds a tool with the current settings, or only its vectors if that is enough."""
        if self.differences(tool) == ["embedder"]:
            return suggested_commands.vector_command(self.paths, tool)
        return suggested_commands.rebuild_command(self.paths, tool)

    @property
    def is_default_library(self) -> bool:
        """Whether this is the user's default library because nothing named one."""
        return not self.paths.is_explicit

    def cancel_embedding(self) -> None:
        """Make pending requests of imports return soon."""
        for embedder in self._embedders.values():
            if remote := as_remote(embedder):
                remote.cancel()

    def holds_documents(self, tool: Tool) -> bool:
        """Return whether a tool holds documents, so that what it was built with stands."""
        if not tool.is_built:
            return False
        if tool.id not in self._filled_tools and self._store.documents.uris(tool.id, limit=1):
            self._filled_tools.add(tool.id)
        return tool.id in self._filled_tools

    def begin_import(self, tool: Tool) -> None:
        """Check anew whether a tool holds documents: between imports, it is assumed to keep some."""
        self._filled_tools.discard(tool.id)

    def _recorded_embedder(self, tool: Tool) -> str | None:
        """Return the name of the embedder that a tool's vectors come from; None if the settings may choose one."""
        if not self.holds_documents(tool):
            return None
        if tool.built.lacks_vectors and not self._store.vectors.has_any(tool.id):
            return None  # it was away during every import so far
        return tool.built.embedder

    def _build_info(
        self,
        chunker: ChunkerSettings,
        scanner: ScanSettings,
        embedder_name: str | None,
        embedding: Any,
    ) -> BuildInfo:
        tokenizer = None
        if chunker.kind == "tokens":
            from bunko.text.subwords import MODEL_NAME

            tokenizer = MODEL_NAME
        return BuildInfo(
            analyzer.VERSION,
            ngrams.VERSION,
            chunker.to_json(),
            tokenizer,
            embedder_name,
            scanner.to_json(),
            embedding,
            plugin_suffixes=(list(plugin_suffixes()) or None) if scanner.extensions is None else None,
        )

    def _build_embedder(self, provider: str) -> Embedder | None:
        if provider not in self._embedders:
            self._embedders[provider] = build_embedder(self._settings, provider)
        return self._embedders[provider]

    def _build_recorded_embedder(self, tool: Tool) -> Embedder | None:
        """Return the embedder of the provider in the settings with the model that a tool recorded."""
        record, provider = tool.built.embedding or {}, self._settings.embedding.provider
        if not self.uses_vectors() or record.get("provider") != embedders.select_provider(provider).name:
            return None
        key = f"{provider} {tool.built.embedder}"
        if key not in self._embedders:
            recorded = {
                name: value
                for name in model_arguments(provider)
                if isinstance(value := record.get(name), str | int | None)
            }
            embedder = embedders.build(provider, **embedder_arguments(self._settings, provider) | recorded)
            # A local model is loaded or even downloaded by its name: only the settings may choose that.
            self._embedders[key] = as_remote(embedder)
        return self._embedders[key]

    def _embedding_record(self) -> dict[str, Any]:
        """Return the provider in the settings and the options that its vectors depend on, without keys and URLs."""
        provider = self._settings.embedding.provider
        arguments = embedder_arguments(self._settings, provider)
        return {
            "provider": embedders.select_provider(provider).name,
            **{name: arguments[name] for name in model_arguments(provider)},
        }


def _recordable_name(embedder: Embedder | None, *, asks_embedder: bool) -> str | None:
    """Return the name that a tool records; without `asks_embedder`, None if its service would be asked for a size."""
    if embedder is None:
        return "none"
    if asks_embedder:
        return embedder.name
    remote = as_remote(embedder)
    if remote is not None and not remote.is_size_known:
        return None
    with suppress(EmbedderError):  # a model that is not on this machine
        return embedder.name
    return None


def _recorded_plugin_suffixes(tool: Tool) -> set[str]:
    """Return the suffixes that a tool records as those of readers from other packages."""
    return {suffix for suffix in tool.built.plugin_suffixes or () if isinstance(suffix, str)}


def _are_document_endings(endings: tuple[str, ...]) -> bool:
    return FOLDER_LIMITS["scanner.file_extensions"].accepts(endings)


def _is_within_limits(chunker: ChunkerSettings) -> bool:
    """Return whether a documents folder may set these chunker settings."""
    values = {
        "chunker.max_chunk_chars": chunker.max_chars,
        "chunker.min_chunk_chars": chunker.min_chars,
        "chunker.row_context_size": chunker.row_context,
    }
    if chunker.kind == "tokens":
        in_range = MIN_CHUNK_TOKENS <= chunker.size <= MAX_CHUNK_TOKENS
        return in_range and FOLDER_LIMITS["chunking.overlap"].accepts(chunker.overlap)
    values |= {"chunker.chunk_size": chunker.size, "chunker.chunk_overlap": chunker.overlap}
    return all(FOLDER_LIMITS[key].accepts(value) for key, value in values.items())


def has_vectors(tool: Tool) -> bool:
    """Return whether a tool is imported with vectors."""
    return tool.options.embedder != "none"


@dataclass(frozen=True, slots=True)
class OwnBuild:
    """What the user chose for an index; None where that is within the limits, or not known."""

    chunker: Mapping[str, Any] | None = None
    scanner: Mapping[str, Any] | None = None
    include: tuple[str, ...] | None = None


def load_own_build(paths: LibraryPaths) -> OwnBuild:
    """Return what the user chose for the index of a folder."""
    try:
        stored = json.loads(_path(paths).read_text(encoding="utf-8"))
        return OwnBuild(stored["chunker"], stored["scanner"], stored["include"] and tuple(stored["include"]))
    except (OSError, ValueError, KeyError, TypeError):
        return OwnBuild()


def save_own_build(paths: LibraryPaths, build: OwnBuild) -> None:
    """Replace what the user chose for the index of a folder."""
    path = _path(paths)
    # Without this record nothing is lost: files beyond the limits stay as they were indexed.
    with suppress(OSError):
        if build == OwnBuild():
            path.unlink(missing_ok=True)
            return
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.write_text(json.dumps(asdict(build), ensure_ascii=False), encoding="utf-8")


def _path(paths: LibraryPaths) -> Path:
    return user_data_folder() / "builds" / f"{paths.digest()[:16]}.json"
