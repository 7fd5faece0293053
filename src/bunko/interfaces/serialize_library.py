"""Turn the state of a library into plain dictionaries: the JSON of commands and of the HTTP API."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from bunko.library.assistant_names import assistant_name

if TYPE_CHECKING:
    from bunko.library.embedder_status import ProviderStatus
    from bunko.library.model_status import ModelStatus
    from bunko.library.status import LibraryStatus, ToolDetails, ToolStatus
    from bunko.library.tool_routing import RoutingReport
    from bunko.library.web import WebToolStatus
    from bunko.records import IndexState
    from bunko.types import Tool


def tool_to_dict(tool: Tool) -> dict[str, Any]:
    """Return a tool as a plain dictionary."""
    return {
        "name": tool.name,
        "assistant_name": assistant_name(tool),
        "kind": tool.kind,
        "description": tool.description,
        "source": tool.source,
        "active": tool.active,
        "created_at": tool.created_at,
        "last_import": tool.imported_at,
        **replace(tool.options, alias=None).to_json(),
    }


def status_to_dict(status: LibraryStatus) -> dict[str, Any]:
    """Return a status as a plain dictionary."""
    return {
        "library": status.location,
        "generation": status.generation,
        "bytes": status.bytes,
        "derived_bytes": status.derived_bytes,
        "index": {"kind": status.index_kind, "location": status.index_location},
        "tools": [tool_status_to_dict(tool_status) for tool_status in status.tools],
        "embedders": {name: asdict(usage) for name, usage in status.embedding_usage.items()},
    }


def details_to_dict(details: ToolDetails) -> dict[str, Any]:
    """Return the details of a tool as a plain dictionary."""
    tool_status, tool, storage = details.status, details.status.tool, details.status.storage
    changes, lengths = details.changes, details.chunk_lengths
    return tool_status_to_dict(tool_status) | {
        "description": tool.description,
        "created_at": tool.created_at,
        "options": tool.options.to_json(),
        "embedding": {"model": tool.built.embedder or "", "dimension": storage.dimension},
        "room": {
            "text": storage.text,
            "index": storage.index,
            "vectors": storage.vectors,
            "derived": tool_status.derived_bytes,
        },
        "freshness": {
            "last_look": details.checked_at,
            "looked_at": changes and changes.checked_at,
            "new": changes and changes.new,
            "changed": changes and changes.changed,
            "gone": changes and changes.gone,
            "moved": changes and changes.moved,
        },
        "chunk_lengths": lengths
        and {
            "min": lengths.minimum,
            "median": lengths.median,
            "p90": lengths.p90,
            "max": lengths.maximum,
            "mean": lengths.mean,
            "bins": [
                {"from": length_bin.low, "to": length_bin.high, "chunks": length_bin.count}
                for length_bin in lengths.bins
            ],
        },
        "page": details.page,
        "page_size": details.page_size,
        "pages": details.pages,
        "document_list": [
            {
                "file_path": document.uri,
                "title": document.title,
                "chunks": document.chunks,
                "characters": document.characters,
                "language": document.language,
            }
            for document in details.documents
        ],
    }


def tool_status_to_dict(tool_status: ToolStatus) -> dict[str, Any]:
    """Return the contents of a tool as a plain dictionary."""
    return {
        "name": tool_status.tool.name,
        "kind": tool_status.tool.kind,
        "active": tool_status.tool.active,
        "source": tool_status.tool.source,
        "source_state": tool_status.source_state,
        "documents": tool_status.totals.documents,
        "chunks": tool_status.totals.chunks,
        "vectors": tool_status.totals.vectors,
        "characters": tool_status.totals.characters,
        "bytes": tool_status.bytes,
        "import_state": tool_status.import_state,
        "last_import": tool_status.tool.imported_at,
        "rebuild_documents": tool_status.rebuild_documents,
        "built": tool_status.tool.built.to_json(),
        "index": index_state_to_dict(tool_status.index),
        "problems": [{"file_path": problem.uri, "reason": problem.reason} for problem in tool_status.problems],
    }


def index_state_to_dict(state: IndexState) -> dict[str, Any]:
    """Return how far the index of a tool has followed the library as a plain dictionary."""
    return {
        "generation": state.generation,
        "pending": state.pending,
        "chunks": state.rows,
        "problem": state.problem,
        "hint": state.hint,
    }


def routing_to_dict(routing: RoutingReport) -> dict[str, Any]:
    """Return a routing report as a plain dictionary."""
    accuracy = routing.accuracy
    right, matched = routing.matched_counts
    return {
        "accuracy": None if accuracy is None else round(accuracy, 4),
        "matched": {"questions": matched, "right": round(right, 2)},
        "tools": [
            {
                "name": route.tool,
                "questions": route.questions,
                "share": round(route.share, 4) if route.questions and accuracy is not None else None,
                "right": route.right,
                "tied": route.tied,
                "unmatched": route.unmatched,
                "taken": [
                    {"tool": other, "questions": count, "examples": route.examples[other]}
                    for other, count in route.lost_to.most_common()
                ],
            }
            for route in routing.routes
        ],
        "warnings": [asdict(warning) for warning in routing.warnings],
    }


def web_tool_to_dict(tool_status: WebToolStatus) -> dict[str, Any]:
    """Return a tool of web pages as a plain dictionary."""
    return {
        "name": tool_status.tool.name,
        "description": tool_status.tool.description,
        "active": tool_status.tool.active,
        "pages": tool_status.pages,
        "chunks": tool_status.chunks,
        "sites": [{"host": host, "pages": pages} for host, pages in tool_status.hosts],
        "oldest_look": tool_status.oldest_check,
        "problems": [{"url": problem.uri, "reason": problem.reason} for problem in tool_status.problems],
        "unfinished": [
            {"url": crawl.url, "waiting": crawl.waiting_pages, **crawl.rules} for crawl in tool_status.unfinished_crawls
        ],
    }


def embedder_to_dict(status: ProviderStatus) -> dict[str, Any]:
    """Return the state of an embedder as a plain dictionary."""
    return {
        "name": status.name,
        "about": status.description,
        "in_use": status.is_used,
        "ready": not status.unavailable_reason,
        "missing": status.unavailable_reason,
        "model": status.model,
        "install": status.install_command,
        "key": status.key_name,
        "remote": status.is_remote,
    }


def model_to_dict(status: ModelStatus) -> dict[str, Any]:
    """Return the state of a local model as a plain dictionary."""
    model = status.model
    return {
        "name": model.name,
        "purpose": model.purpose,
        "about": model.summary,
        "here": status.onnx_path is not None,
        "in_use": status.is_used,
        "missing": status.unavailable_reason,
        "megabytes": model.megabytes,
        "dimension": model.size,
        "languages": list(model.languages),
        "licence": model.licence,
        "repository": model.repo,
        "onnx_repository": model.onnx_repo,
    }
