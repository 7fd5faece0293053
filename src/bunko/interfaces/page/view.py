"""Answer requests for pages: run what takes time in a thread, and show errors as pages."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from bunko.errors import BunkoError
from bunko.interfaces.api.problems import error_status
from bunko.interfaces.page.rendering import render
from bunko.interfaces.sender import caller_of, choose_language
from bunko.interfaces.worker_threads import Workers
from bunko.messages import translate_into

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from bunko.interfaces.tools.registry import ToolRegistry
    from bunko.library.access import LibraryAccess

# Pages that are built at once; more wait a moment, then get an error.
_MAX_PAGES, _MAX_WAIT_SECONDS = 40, 10.0


class PageView:
    """A kind of page over a library."""

    def __init__(self, registry: ToolRegistry) -> None:
        self.registry = registry
        self._workers = Workers("pages", max_threads=_MAX_PAGES, max_wait_seconds=_MAX_WAIT_SECONDS)

    async def run(self, request: Request, build: Callable[[LibraryAccess], Response]) -> Response:
        """Return the page that a function builds in a thread with what the caller may use, or one about its error."""
        try:
            caller = caller_of(request)

            def answer() -> Response:
                library = self.registry.access(caller)
                with library.hiding_places():
                    return build(library)

            return await self._workers.run(answer)
        except BunkoError as error:
            return error_page(request, error)


def error_page(request: Request, error: BunkoError) -> Response:
    """Return a page that says what happened and what to do."""
    return render(request, "error.html", _error_values(request, error), status=error_status(error))


def error_values(request: Request, error: BunkoError, library: LibraryAccess) -> dict[str, str]:
    """Return an error in the language of the page, without what the caller may not know."""
    library.hidden_places().hide_in_error(error)
    return _error_values(request, error)


def _error_values(request: Request, error: BunkoError) -> dict[str, str]:
    return {"message": say(request, error.message), "hint": say(request, error.hint)}


def say(request: Request, text: str) -> str:
    """Return a message of the library in the language of the page."""
    return translate_into(text, choose_language(request))
