"""The page about the library: its tools with what they hold, what runs, and forms that add more."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from bunko.errors import AccessDenied
from bunko.interfaces.page.answering import PageView
from bunko.interfaces.page.library_tools import details_values, job_values, tool_values
from bunko.interfaces.page.rendering import render
from bunko.interfaces.sender import is_local_user
from bunko.interfaces.text import format_size, single_line

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from bunko.library.rights.access import LibraryAccess


class LibraryPage(PageView):
    """Shows the tools."""

    async def answer(self, request: Request) -> Response:
        """Return the page with all tools, and the details of the one that the address names."""
        return await self.run(request, lambda library: self._build(request, library))

    def _build(self, request: Request, library: LibraryAccess) -> Response:
        opened, local_time = request.query_params.get("tool", ""), library.readable.local_time()
        details = library.tool_care.details(opened) if opened else None
        status, rights = library.status(), library.caller.rights
        can_change = not self.registry.is_read_only
        values: dict[str, Any] = {
            "tools": [
                tool_values(
                    request, tool_status, local_time, can_write=can_change and rights.can_write(tool_status.tool.name)
                )
                for tool_status in status.tools
            ],
            "opened": details.status.tool.name if details else "",
            "details": details and details_values(request, details, local_time),
            "jobs": job_values(request, self.registry.jobs.visible(library.caller)),
            "can_cancel": can_change and rights.writes_some,
            "documents": f"{sum(tool_status.totals.documents for tool_status in status.tools):,}",
            "size": format_size(status.bytes + status.derived_bytes),
            "unused": status.unused_vectors.count and format_size(status.unused_vectors.bytes),
            "location": single_line(status.location),
        }
        if request.query_params.get("part"):
            return render(request, "library_live.html", values)
        values |= view_values(library)
        values["can_add_folder"] = can_change and rights.writes_all and library.caller.is_owner
        values["can_pick_folder"] = is_local_user(request)
        values["can_add_web"] = can_change and _may_add_pages(library)
        return render(request, "library.html", values, script_sections=["library"])


def view_values(library: LibraryAccess) -> dict[str, Any]:
    """Return which views of the library its navigation offers: those that the caller may see."""
    rights = library.caller.rights
    views = ["descriptions", *(["models"] if rights.reads_all else []), *(["settings"] if rights.writes_all else [])]
    return {"views": [("/library", "tools"), *((f"/library/{view}", view) for view in views)]}


def _may_add_pages(library: LibraryAccess) -> bool:
    with suppress(AccessDenied):
        library.web.check_add()
        return True
    return False
