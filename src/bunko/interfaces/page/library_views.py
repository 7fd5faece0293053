"""The pages about the descriptions of tools, models of all kinds, and settings, each of which a form can change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import quote

from starlette.datastructures import QueryParams
from starlette.responses import RedirectResponse

from bunko.errors import AccessDenied, BunkoError, EmbedderError, ModelError, SettingsError
from bunko.interfaces.page.library import view_values
from bunko.interfaces.page.rendering import render
from bunko.interfaces.page.view import PageView, error_values, say
from bunko.interfaces.text import single_line
from bunko.interfaces.tools.tool import ToolCall, ToolReply
from bunko.local_models import RUN_PACKAGES, missing_package
from bunko.settings import all_settings
from bunko.settings.keyfile import FILE_SUFFIX

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from bunko.library.access import LibraryAccess
    from bunko.library.admin.model_status import ModelStatus, RerankerStatus
    from bunko.local_models.catalogue import Purpose


_MEGABYTE = 1_000_000


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
    """Shows the embedders, the local models and the chat models, and what each lacks; chooses and downloads them."""

    async def answer(self, request: Request) -> Response:
        """Return the page; or choose a model for the next start, download one, or compute vectors again."""
        if request.method == "POST":
            fields = QueryParams((await request.body()).decode("utf-8", "replace"))
            return await self.run(request, lambda library: self._change(request, library, fields))
        return await self.run(request, lambda library: self._build(request, library))

    def _change(self, request: Request, library: LibraryAccess, fields: QueryParams) -> Response:
        if self.registry.is_read_only:
            raise AccessDenied("This server only reads", hint="Start it without --read-only.")
        jobs, call = self.registry.jobs, ToolCall(library, {})
        try:
            if "reembed" in fields:
                library.check_reembed()
                jobs.start("reembed", _reembed, call, subject=", ".join(library.tools_to_reembed()))
                return RedirectResponse("/library#jobs", 303)
            library.settings_care.check_change()
            if name := fields.get("download", ""):
                jobs.start("model", partial(_download, name), call, subject=name)
                return RedirectResponse("/library#jobs", 303)
            changes = _changes_to_use(fields)
            for key, value in changes:
                library.settings_care.change(key, value)
        except AccessDenied:
            raise
        except BunkoError as error:
            return self._build(request, library, error=error_values(request, error, library))
        return RedirectResponse(f"/library/models?saved={quote(changes[0][0])}", 303)

    def _build(self, request: Request, library: LibraryAccess, *, error: dict[str, str] | None = None) -> Response:
        embedders = [
            {
                "name": status.name,
                "about": say(request, status.description),
                "model": "" if status.model.isdecimal() else status.model,  # the number of a bundled one says nothing
                "is_used": status.is_used,
                "is_remote": status.is_remote,
                "missing": say(request, status.unavailable_reason),
            }
            for status in library.embedders()
        ]
        models = library.local_models()
        care, can_change = library.settings_care, not self.registry.is_read_only and library.settings_care.can_change
        saved = request.query_params.get("saved", "")
        values = {
            "embedders": embedders,
            "local_embedders": _model_rows(request, models, "embedder"),
            "rerankers": _reranker_rows(request, library.reranker(), models),
            "chats": library.chat_models(),
            "can_change": can_change,
            "chosen": _chosen_models({key: value for key, value, _ in care.next_rows()}) if can_change else {},
            "notice": _saved_notice(request, library, saved) if saved and can_change else "",
            "is_embedder_saved": saved == "embedding.provider",
            "to_reembed": [] if self.registry.is_read_only else library.tools_to_reembed(),
            "error": error,
            **view_values(library),
        }
        return render(request, "library_models.html", values, status=400 if error else 200)


def _changes_to_use(fields: QueryParams) -> list[tuple[str, str | None]]:
    """Return the settings that use a model, the first of them the one that names its kind."""
    name = fields.get("name", "")
    match fields.get("use", ""):
        case "embedder":
            # A model of another embedder would be asked of this one.
            return [("embedding.provider", name), *([("embedding.model", None)] if name in ("gemini", "onnx") else [])]
        case "model":
            return [("embedding.provider", "onnx"), ("embedding.model", name)]
        case "reranker":
            return [("search.reranker", name or None)]
        case "chat":
            return [("chat.provider", name or None)]
        case _:
            raise SettingsError("Nothing was chosen", hint="Choose a model.")


def _chosen_models(settings: dict[str, str]) -> dict[str, str]:
    """Return the model of each kind that the next start uses."""
    embedder = settings["embedding.provider"]
    return {
        "embedder": embedder,
        "model": settings["embedding.model"] if embedder == "onnx" else "",
        "reranker": settings["search.reranker"],
        "chat": settings["chat.provider"],
    }


def _saved_notice(request: Request, library: LibraryAccess, key: str) -> str:
    care = library.settings_care
    texts = (f"Saved in {care.file}. It counts when bunko is started again.", care.override(key))
    return single_line(" ".join(say(request, text) for text in texts if text))


def _reembed(call: ToolCall) -> ToolReply:
    observer = replace(call.observer(), on_progress=lambda done: call.report_progress(done.files, done.total_files, ""))
    report = call.library.reembed(observer=observer)
    if report.failures:
        failure = report.failures[0]
        raise EmbedderError(f"{failure.tool}: {failure.message}", hint=failure.hint)
    return ToolReply("", {"vectors": report.embedded})


def _download(name: str, call: ToolCall) -> ToolReply:
    def report(file: str, done: int, total: int) -> None:
        if call.stop.is_set():
            raise ModelError("The download was stopped", hint="It continues where it stopped.")
        call.report_progress(done / _MEGABYTE, total / _MEGABYTE, f"MB, {file}")

    call.library.settings_care.get_model(name, report)
    return ToolReply("", {})


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
    can_download: bool = False


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
            bool(status.model.onnx_repo) and status.onnx_path is None and not missing_package(*RUN_PACKAGES),
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
            values["form"], values["file"] = _form(request, key, next_rows, text), single_line(str(file))
            if saved := request.query_params.get("saved", ""):
                values["notice"] = _saved_notice(request, library, saved)
        return render(request, "library_settings.html", values, status=400 if error else 200)


def _single_lines(rows: _Rows) -> _Rows:
    return [(key, single_line(value), single_line(origin)) for key, value, origin in rows]


def _form(request: Request, key: str, rows: _Rows, text: str) -> dict[str, object] | None:
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
        "is_list": setting.is_list,
        "is_number": setting.kind in (int, float) and not setting.is_list,
        "meaning": setting.meaning,
        "allowed": say(request, setting.allowed_values()),
        "default": setting.display_value(setting.default),
    }
