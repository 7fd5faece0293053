"""The pages about the descriptions of tools and about models of all kinds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote

from bunko.interfaces.page.answering import PageView, say
from bunko.interfaces.page.library import view_values
from bunko.interfaces.page.rendering import render
from bunko.interfaces.text import single_line

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from bunko.library.admin.model_status import ModelStatus, RerankerStatus
    from bunko.library.rights.access import LibraryAccess
    from bunko.library.tools.routing import Route
    from bunko.local_models.catalogue import Purpose


class DescriptionsPage(PageView):
    """Shows whether assistants can tell the tools apart by their descriptions."""

    async def answer(self, request: Request) -> Response:
        """Return the page with the result of the check."""
        return await self.run(request, lambda library: self._build(request, library))

    def _build(self, request: Request, library: LibraryAccess) -> Response:
        report = library.tool_care.routing()
        descriptions = {tool.name: single_line(tool.description) for tool in library.tools()}
        right, matched = report.matched_counts
        values = {
            "accuracy": report.accuracy,
            "right": f"{right:g}",
            "matched": matched,
            "routes": [_route_values(route, descriptions) for route in report.routes],
            "warnings": [
                (single_line(say(request, warning.message)), [_address(name) for name in warning.tools])
                for warning in report.warnings
            ],
        }
        return render(request, "library_descriptions.html", values | view_values(library))


def _route_values(route: Route, descriptions: dict[str, str]) -> dict[str, object]:
    return {
        "name": single_line(route.tool),
        "address": _address(route.tool),
        "description": descriptions.get(route.tool, ""),
        "questions": route.questions,
        "share": round(100 * route.share) if route.questions else None,
        "lost": [
            (single_line(other), count, [single_line(question) for question in route.examples[other]])
            for other, count in route.lost_to.most_common()
        ],
    }


def _address(tool: str) -> str:
    return f"/library?tool={quote(tool, safe='')}#describe"


class ModelsPage(PageView):
    """Shows the embedders, the local models and the chat models, and what each lacks."""

    async def answer(self, request: Request) -> Response:
        """Return the page."""
        return await self.run(request, lambda library: self._build(request, library))

    def _build(self, request: Request, library: LibraryAccess) -> Response:
        embedders = [
            {
                "name": status.name,
                "about": say(request, status.description),
                "model": status.model,
                "is_used": status.is_used,
                "is_remote": status.is_remote,
                "missing": say(request, status.unavailable_reason),
                "install": status.install_command,
            }
            for status in library.embedders()
        ]
        models = library.local_models()
        values = {
            "embedders": embedders,
            "local_embedders": _model_rows(request, models, "embedder"),
            "rerankers": _reranker_rows(request, library.reranker(), models),
            "chats": library.chat_models(),
            **view_values(library),
        }
        return render(request, "library_models.html", values)


@dataclass(frozen=True, slots=True)
class LocalModelRow:
    """A local model as the page shows it."""

    name: str
    is_used: bool
    missing: str
    about: str = ""
    size: str = ""
    languages: tuple[str, ...] = ()  # many, or their codes
    licence: str = ""


def _model_rows(request: Request, statuses: Sequence[ModelStatus], purpose: Purpose) -> list[LocalModelRow]:
    return [
        LocalModelRow(
            status.model.name,
            status.is_used,
            say(request, status.unavailable_reason),
            say(request, status.model.summary),
            f"{status.model.megabytes:,} MB" if status.model.megabytes else "",
            tuple("many" if language == "100+" else language for language in status.model.languages),
            status.model.licence,
        )
        for status in statuses
        if status.model.purpose == purpose
    ]


def _reranker_rows(
    request: Request, reranker: RerankerStatus | None, statuses: Sequence[ModelStatus]
) -> list[LocalModelRow]:
    """Return the listed rerankers; before them that of the settings, if it is a folder or of another package."""
    rows = _model_rows(request, statuses, "reranker")
    if reranker is None or any(row.is_used for row in rows):
        return rows
    missing = single_line(say(request, reranker.unavailable_reason))
    return [LocalModelRow(single_line(reranker.name), True, missing), *rows]
