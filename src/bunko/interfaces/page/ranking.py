"""Try other settings of the ranking on the page: what they change, and how they become the tool's own."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from starlette.datastructures import QueryParams
from starlette.responses import RedirectResponse

from bunko.errors import BunkoError, UnknownName
from bunko.evaluation.judge import default_file
from bunko.evaluation.settings_change import build_meter
from bunko.interfaces.page.query import PageQuery, parse_page_query
from bunko.interfaces.page.rendering import render
from bunko.interfaces.page.results import Result, ResultBuilder, result_key
from bunko.interfaces.page.view import PageView, error_page
from bunko.search.request import tool_search_settings
from bunko.types.ranking import OPTIONS, RankingOption

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from bunko.evaluation.settings_change import MeasuredChange, SettingsMeter
    from bunko.library.access import LibraryAccess
    from bunko.library.library import Library
    from bunko.types import Tool

# Ranks among which a result of the page may have stood before.
_COMPARED_RESULTS = 50
_MAX_METERS = 8


@dataclass(frozen=True, slots=True)
class Slider:
    """A number of the ranking that can be moved; `current` is None where the library chooses it by itself."""

    option: RankingOption
    current: float | None
    value: float | None  # as it is tried


def search_before(library: LibraryAccess, query: PageQuery) -> list[str]:
    """Return the keys of the results with the settings as they are."""
    plain = query.model_copy(update=dict.fromkeys(OPTIONS) | {"top_k": _COMPARED_RESULTS, "cursor": ""})
    return [result_key(item) for item in library.page(plain.page_request(explain=False)).results]


def ranking_values(
    whole_library: Library,
    library: LibraryAccess,
    query: PageQuery,
    before: Sequence[str],
    results: Sequence[Result],
) -> dict[str, Any]:
    """Return the settings with their current and tried values, and what the tried ones change."""
    tool = searched_tool(library, query)
    current = library.readable.build_request("", tools=[tool] if tool else [])
    changed = query.ranking
    keys = [result.key for result in results]
    return {
        "sliders": [
            Slider(option, getattr(current.options, name), changed.get(name))
            for name, option in OPTIONS.items()
            if option.kind in (int, float)
        ],
        "switches": [
            (option, getattr(current.options, name), changed.get(name))
            for name, option in OPTIONS.items()
            if option.kind is bool
        ],
        "fusion": (current.options.fusion, changed.get("fusion")),
        "mode": query.mode or current.mode,
        "tool": tool.name if tool else "",
        "moved": sum(key not in before or before.index(key) != rank for rank, key in enumerate(keys)),
        "measure": measure_change(whole_library, library, tool, changed) if tool and changed else None,
        "can_keep": bool(tool and changed and library.caller.rights.can_write(tool.name)),
    }


def searched_tool(library: LibraryAccess, query: PageQuery) -> Tool | None:
    """Return the only tool that a query searches."""
    tools = [tool for tool in library.tools() if tool.active and (not query.tool or tool.name in query.tool)]
    return tools[0] if len(tools) == 1 else None


def change_values(whole_library: Library, library: LibraryAccess, query: PageQuery) -> dict[str, Any]:
    """Return what would change if the tried settings became those of the tool."""
    tool = searched_tool(library, query)
    if tool is None:
        raise UnknownName("No tool was named")
    library.check_write(tool.name)
    request, new = library.readable.build_request("", tools=[tool]), new_settings(tool, query)
    current = asdict(request.options) | {"mode": request.mode} | tool_search_settings(tool.options.search)
    return {
        "tool": tool.name,
        "rows": [(name, _show(current[name]), _show(new[name])) for name in new if current[name] != new[name]],
        "measure": measure_change(whole_library, library, tool, query.ranking),
    }


def new_settings(tool: Tool, query: PageQuery) -> dict[str, Any]:
    """Return the search settings of a tool with those that a query tries."""
    return tool_search_settings(tool.options.search) | query.ranking


def _show(value: Any) -> str:
    if value is None:
        return "auto"
    return f"{value:g}" if isinstance(value, float) else str(value).lower()


_meters: dict[tuple[object, ...], SettingsMeter | None] = {}
_meters_lock = threading.Lock()


def measure_change(
    whole_library: Library, library: LibraryAccess, tool: Tool, options: Mapping[str, Any]
) -> MeasuredChange | None:
    """Return what other settings change on the judged queries of a tool that the caller may read, if it has any."""
    if not library.caller.rights.can_read(tool.name):
        return None
    path = default_file(whole_library, tool)
    if not path.exists():
        return None
    # Another state of the library, of the tool or of its judgements needs another meter.
    key = id(whole_library), tool.id, repr(tool.options), whole_library.storage.generation(), path.stat().st_mtime_ns
    with _meters_lock:  # its caches are for one thread at a time
        if key not in _meters:
            if len(_meters) >= _MAX_METERS:
                _meters.clear()
            _meters[key] = build_meter(whole_library, tool)
        meter = _meters[key]
        return meter.measure(options) if meter is not None else None


class SettingsChangePage(PageView):
    """Shows the difference, then writes it."""

    async def answer(self, request: Request) -> Response:
        """Return the difference, or write it and return to the search."""
        try:
            if request.method == "POST":
                query = parse_page_query(QueryParams((await request.body()).decode("utf-8", "replace")))
                return await self.run(request, lambda library: self._write(library, query))
            query = parse_page_query(request.query_params)
        except BunkoError as error:
            return error_page(request, error)
        return await self.run(request, lambda library: self._show(request, library, query))

    def _show(self, request: Request, library: LibraryAccess, query: PageQuery) -> Response:
        values = change_values(self.registry.library(), library, query)
        before = search_before(library, query) if not query.is_empty else []
        page = library.page(query.page_request(explain=False)) if not query.is_empty else None
        builder = ResultBuilder(library.readable, query, page.searched_query if page else "", before)
        values["results"] = builder.build(page.results) if page else []
        values["query"] = query
        return render(request, "settings_change.html", values)

    def _write(self, library: LibraryAccess, query: PageQuery) -> Response:
        tool = searched_tool(library, query)
        if tool is None:
            raise UnknownName("No tool was named")
        library.tool_care.update(tool.name, search=new_settings(tool, query))
        address = query.address(**dict.fromkeys(OPTIONS), tuning=True)
        return RedirectResponse(address, 303)
