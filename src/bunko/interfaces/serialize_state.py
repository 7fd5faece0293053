"""Declare the JSON of the state of a library, its sites, embedders and models, for commands and the HTTP API."""

from __future__ import annotations

from dataclasses import asdict, replace
from operator import itemgetter
from typing import TYPE_CHECKING, Literal

from bunko.interfaces.fields import Fields, of
from bunko.library.tools.assistant_names import assistant_name

if TYPE_CHECKING:
    from bunko.library.admin.status import ToolDetails
    from bunko.library.tools.routing import RoutingReport
    from bunko.types import Tool


class StoredTool(Fields):
    """A tool as it is stored, without its options."""

    name: str
    assistant_name: str = of(assistant_name)
    kind: str
    description: str
    source: str  # empty without the right to change the tool
    active: bool
    created_at: str
    last_import: str = of("imported_at")


def tool_to_dict(tool: Tool) -> dict[str, object]:
    """Return a tool with its options as a plain dictionary."""
    return StoredTool.fill(tool) | replace(tool.options, alias=None).to_json()


class IndexFields(Fields):
    """The index that answers searches."""

    kind: str = of("index_kind")
    location: str = of("index_location")


class IndexStateFields(Fields):
    """How far the index of a tool has followed the library."""

    generation: int
    pending: int
    chunks: int | None = of("rows")
    problem: str
    hint: str


class FileProblem(Fields):
    """A document that could not be indexed."""

    file_path: str = of("uri")
    reason: str


class ToolState(Fields):
    """What a tool holds."""

    name: str = of("tool.name")
    kind: str = of("tool.kind")
    active: bool = of("tool.active")
    source: str = of("tool.source")  # empty without the right to change the tool
    source_state: str
    documents: int = of("totals.documents")
    chunks: int = of("totals.chunks")
    vectors: int = of("totals.vectors")
    characters: int = of("totals.characters")
    bytes: int
    import_state: str
    last_import: str = of("tool.imported_at")
    rebuild_documents: int | None
    built: dict[str, object] = of(lambda status: status.tool.built.to_json())
    index: IndexStateFields
    problems: list[FileProblem]


class UsageFields(Fields):
    """How much imports have used an embedder."""

    texts: int
    calls: int
    saved_texts: int
    saved_calls: int


class VectorRoomFields(Fields):
    """Vectors that no document uses: the next import uses or deletes them."""

    count: int
    bytes: int


class LibraryFields(Fields):
    """What the library holds."""

    library: str = of("location")  # where it is; empty without the right to change all tools
    generation: int
    bytes: int
    derived_bytes: int
    unused_vectors: VectorRoomFields
    index: IndexFields = of(lambda status: status)
    tools: list[ToolState]
    embedders: dict[str, UsageFields] = of("embedding_usage")


class Embedding(Fields):
    """What computed the vectors."""

    model: str = of(lambda status: status.tool.built.embedder or "")
    dimension: int | None = of("storage.dimension")


class Room(Fields):
    """Bytes on disk."""

    text: int = of("storage.text")
    index: int = of("storage.index")
    vectors: int = of("storage.vectors")
    derived: int = of("derived_bytes")


class SourceFreshness(Fields):
    """How the source differs from the index."""

    last_look: str = of("checked_at")
    looked_at: str | None = of(lambda details: details.changes and details.changes.checked_at)
    new: int | None = of(lambda details: details.changes and details.changes.new)
    changed: int | None = of(lambda details: details.changes and details.changes.changed)
    gone: int | None = of(lambda details: details.changes and details.changes.gone)
    moved: int | None = of(lambda details: details.changes and details.changes.moved)


class LengthFields(Fields):
    """The lengths of chunks in characters."""

    min: int = of("minimum")
    median: int
    p90: int
    max: int = of("maximum")
    mean: float
    bins: list[dict[str, int]] = of(
        lambda lengths: [{"from": bar.low, "to": bar.high, "chunks": bar.count} for bar in lengths.bins]
    )


class IndexedDocument(Fields):
    """A document of a tool."""

    file_path: str = of("uri")
    title: str
    chunks: int
    characters: int
    language: str


class DetailsFields(Fields):
    """A tool with what it holds."""

    description: str = of("status.tool.description")
    created_at: str = of("status.tool.created_at")
    options: dict[str, object] = of(lambda details: details.status.tool.options.to_json())
    embedding: Embedding = of("status")
    room: Room = of("status")
    freshness: SourceFreshness = of(lambda details: details)
    chunk_lengths: LengthFields | None
    page: int
    page_size: int
    pages: int
    document_list: list[IndexedDocument] = of("documents")


def details_to_dict(details: ToolDetails) -> dict[str, object]:
    """Return the details of a tool as a plain dictionary."""
    return ToolState.fill(details.status) | DetailsFields.fill(details)


class Taken(Fields):
    """Questions that another tool would get."""

    tool: str = of(itemgetter(0))
    questions: int = of(itemgetter(1))
    examples: list[str] = of(itemgetter(2))


class RoutedTool(Fields):
    """Where questions about a tool would go."""

    name: str = of("tool")
    questions: int
    share: float | None
    right: float
    tied: int
    unmatched: int
    taken: list[Taken] = of(
        lambda route: [(tool, count, route.examples[tool]) for tool, count in route.lost_to.most_common()]
    )


class Matched(Fields):
    """Questions that share a word with a description."""

    questions: int = of(itemgetter(1))
    right: float = of(lambda counts: round(counts[0], 2))


class RoutingReply(Fields):
    """Whether descriptions tell the tools apart."""

    accuracy: float | None = of("accuracy", lambda share: round(share, 4))
    matched: Matched = of("matched_counts")
    tools: list[RoutedTool]
    warnings: list[dict[str, object]] = of(lambda routing: [asdict(warning) for warning in routing.warnings])


def routing_to_dict(routing: RoutingReport) -> dict[str, object]:
    """Return a routing report as a plain dictionary; a tool without a question to compare has no share."""
    has_shares = routing.accuracy is not None
    tools = [
        RoutedTool.fill(route, share=round(route.share, 4) if route.questions and has_shares else None)
        for route in routing.routes
    ]
    return RoutingReply.fill(routing, tools=tools)


class SiteFields(Fields):
    """How many pages of a site there are."""

    host: str = of(itemgetter(0))
    pages: int = of(itemgetter(1))


class PageProblem(Fields):
    """A page that could not be fetched."""

    url: str = of("uri")
    reason: str


class WebTool(Fields):
    """A tool of web pages."""

    name: str = of("tool.name")
    description: str = of("tool.description")
    active: bool = of("tool.active")
    pages: int
    chunks: int
    sites: list[SiteFields] = of("hosts")
    oldest_look: str = of("oldest_check")
    problems: list[PageProblem]
    unfinished: list[dict[str, object]] = of(
        lambda status: [
            {"url": crawl.url, "waiting": crawl.waiting_pages, **crawl.rules} for crawl in status.unfinished_crawls
        ]
    )


class EmbedderFields(Fields):
    """An embedder, and what it lacks."""

    name: str
    about: str = of("description")
    in_use: bool = of("is_used")
    ready: bool = of(lambda status: not status.unavailable_reason)
    missing: str = of("unavailable_reason")
    model: str
    install: str = of("install_command")
    key: str = of("key_name")
    remote: bool = of("is_remote")


class ModelFields(Fields):
    """A model that runs on the machine of the server, and what it lacks."""

    name: str = of("model.name")
    purpose: Literal["embedder", "reranker"] = of("model.purpose")
    about: str = of("model.summary")
    here: bool = of(lambda status: status.onnx_path is not None)
    in_use: bool = of("is_used")
    missing: str = of("unavailable_reason")
    megabytes: int | None = of("model.megabytes")
    dimension: int | None = of("model.size")  # of a vector
    languages: list[str] = of("model.languages")
    licence: str = of("model.licence")
    repository: str = of("model.repo")
    onnx_repository: str = of("model.onnx_repo")
