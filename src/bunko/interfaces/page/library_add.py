"""The form that adds documents: it says what a folder, a file or an address is, and adds it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bunko.errors import SettingsError, SourceError
from bunko.interfaces.api.routes.tools import import_job
from bunko.interfaces.api.routes.web import crawl_job, pages_job
from bunko.interfaces.page.view import say
from bunko.interfaces.text import single_line
from bunko.interfaces.tools.additions import describe_addition
from bunko.interfaces.tools.tool import ToolCall
from bunko.interfaces.tools.toolsets import check_tool_name, is_reserved
from bunko.library.tools.nothing_found import describe_unread
from bunko.sources.web.ssrf_guard import display_url

if TYPE_CHECKING:
    from starlette.datastructures import QueryParams
    from starlette.requests import Request

    from bunko.interfaces.tools.jobs import Jobs
    from bunko.library.access import LibraryAccess

# What the form shows before anything is given.
NO_ADDITION: dict[str, object] = {
    "source": "", "kind": "", "name": "", "description": "", "extent": "page", "pattern": "",
    "found": "", "existing": "", "kinds": (), "notices": (), "problem": None,
}  # fmt: skip


def propose_addition(request: Request, library: LibraryAccess, fields: QueryParams) -> dict[str, object]:
    """Return what the form shows about a source; what was written into its fields stays."""
    source = _source(fields)
    if _is_address(source):
        library.web.check_add()
        return {"kind": "web", "found": display_url(source)}
    addition, notices = library.tool_care.plan(source, kind=fields.get("kind", ""), is_reserved=is_reserved)
    tool = addition.tool
    if addition.contents.survey.unread:
        notices = [f"Not read: {describe_unread(addition.contents.survey)}", *notices]
    is_folder = addition.source.path.is_dir() and not addition.source.files
    return {
        "found": say(request, describe_addition(addition)),
        "existing": "" if addition.is_new else tool.name,
        "name": fields.get("name", "") or tool.name,
        "kind": tool.kind,
        "kinds": [
            (kind, f"library.add_{kind}_{'all' if is_folder else 'one'}")
            for kind in (("folder", "memos") if tool.kind != "jsonl" else ("jsonl",))
        ],
        "notices": [single_line(say(request, line)) for notice in notices for line in notice.splitlines()],
    }


def add_documents(library: LibraryAccess, jobs: Jobs, fields: QueryParams) -> None:
    """Add a source, and import it in the background."""
    source, call = _source(fields), ToolCall(library, {})
    if _is_address(source):
        library.web.check_add()
        if fields.get("extent") == "site":
            jobs.start("crawl", crawl_job(source, fields.get("pattern", "")), call, subject=display_url(source))
        else:
            jobs.start("pages", pages_job([source]), call, subject=display_url(source))
        return
    addition, _ = library.tool_care.plan(source, kind=fields.get("kind", ""), is_reserved=is_reserved)
    tool = addition.tool
    if addition.is_new:
        name = fields.get("name", "").strip() or tool.name
        check_tool_name(library, name)
        tool = library.tool_care.add(
            name, fields.get("description", ""), tool.source, kind=tool.kind, include=tool.options.include,
            exclude=tool.options.exclude,
        )  # fmt: skip
    jobs.start("import", import_job(library.tool_care.check_import(tool.name).name), call, subject=tool.name)


def _source(fields: QueryParams) -> str:
    source = fields.get("source", "").strip()
    if not source:
        raise SettingsError("Nothing was given to add", hint="Give a folder, a file or a web address.")
    scheme, separator, _ = source.partition("://")
    if separator and scheme.lower() not in ("http", "https"):
        raise SourceError(f"{source[:200]} cannot be added: only http:// and https:// addresses can")
    return source


def _is_address(source: str) -> bool:
    return source.lower().startswith(("http://", "https://"))
