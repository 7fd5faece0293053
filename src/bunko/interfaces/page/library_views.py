"""The pages about the descriptions of tools, models of all kinds, and settings, each of which a form can change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote

from starlette.datastructures import QueryParams
from starlette.responses import RedirectResponse

from bunko.errors import AccessDenied, BunkoError
from bunko.interfaces.page.library import view_values
from bunko.interfaces.page.rendering import render
from bunko.interfaces.page.view import PageView, error_values, say
from bunko.interfaces.text import single_line
from bunko.settings import all_settings
from bunko.settings.keyfile import FILE_SUFFIX

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from bunko.library.access import LibraryAccess
    from bunko.library.admin.model_status import ModelStatus, RerankerStatus
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
            "routes": [
                {
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
                for route in report.routes
            ],
            "warnings": [
                (single_line(say(request, warning.message)), [_address(name) for name in warning.tools])
                for warning in report.warnings
            ],
        }
        return render(request, "library_descriptions.html", values | view_values(library))


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


_Rows = list[tuple[str, str, str]]  # key, value, origin


class SettingsPage(PageView):
    """Shows all settings, and changes one in the file that `bunko config set` writes."""

    async def answer(self, request: Request) -> Response:
        """Return the page, or write a setting and return to the page."""
        if request.method == "POST":
            fields = QueryParams((await request.body()).decode("utf-8", "replace"))
            return await self.run(request, lambda library: self._write(request, library, fields))
        return await self.run(request, lambda library: self._build(request, library))

    def _write(self, request: Request, library: LibraryAccess, fields: QueryParams) -> Response:
        if self.registry.is_read_only:
            raise AccessDenied("This server only reads", hint="Start it without --read-only.")
        key, text = fields.get("key", ""), fields.get("value", "").strip()
        try:
            library.settings_care.change(key, None if "unset" in fields else text)
        except AccessDenied:
            raise
        except BunkoError as error:
            return self._build(request, library, error=error_values(request, error, library), key=key, text=text)
        return RedirectResponse(f"/library/settings?saved={quote(key)}", 303)

    def _build(
        self,
        request: Request,
        library: LibraryAccess,
        *,
        error: dict[str, str] | None = None,
        key: str = "",
        text: str = "",
    ) -> Response:
        rows = _single_lines(library.setting_rows())
        can_change = library.settings_care.can_change and not self.registry.is_read_only
        next_rows = _single_lines(library.settings_care.next_rows()) if can_change else rows
        current_values = {name: value for name, value, _ in rows}
        sections: dict[str, _Rows] = {}
        for name, value, origin in next_rows:
            sections.setdefault(name.partition(".")[0], []).append((name, value, origin))
        values: dict[str, object] = {
            "changed": [
                (name, value, say(request, origin)) for name, value, origin in next_rows if origin != "default"
            ],
            "sections": sections,
            "waiting": {name for name, value, _ in next_rows if value != current_values[name]},
            "can_change": can_change,
            "form": None,
            "error": error,
            "notice": "",
            **view_values(library),
        }
        if can_change:
            key, file = key or request.query_params.get("key", ""), library.settings_care.file
            values["form"], values["file"] = _form(key, next_rows, text), single_line(str(file))
            if saved := request.query_params.get("saved", ""):
                texts = (
                    f"Saved in {file}. It counts when bunko is started again.",
                    library.settings_care.override(saved),
                )
                values["notice"] = single_line(" ".join(say(request, text) for text in texts if text))
        return render(request, "library_settings.html", values, status=400 if error else 200)


def _single_lines(rows: _Rows) -> _Rows:
    return [(key, single_line(value), single_line(origin)) for key, value, origin in rows]


def _form(key: str, rows: _Rows, text: str) -> dict[str, object] | None:
    """Return what the form of a setting needs, None if there is none; that of a secret is about a file with it."""
    settings = all_settings()
    name = key if key in settings else key.removesuffix(FILE_SUFFIX)
    setting = settings.get(name)
    if setting is None:
        return None
    value = next((value for row_key, value, _ in rows if row_key == name and value != "not set"), "")
    choices = ("true", "false") if setting.kind is bool and not setting.is_list else setting.choices
    return {
        "key": f"{name}{FILE_SUFFIX}" if setting.secret else name,
        "is_secret": setting.secret,
        "value": text or ("" if setting.secret or "********" in value else value),
        "choices": choices,
        "is_optional": setting.optional,
    }
