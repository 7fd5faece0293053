"""Answer searches while a user types: few at once for each browser, and none that it no longer waits for."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

import anyio
from starlette.responses import Response

from bunko.interfaces.sender import session_cookie

if TYPE_CHECKING:
    from starlette.requests import Request

# Of one browser. Searches share the processor, so each further one delays the newest; a second one is for another tab,
# and for a search that waits for a model.
_MAX_AT_ONCE = 2
_GONE = 499  # as nginx logs it; the answer is not read


class TypedSearches:
    """Lets the searches of a browser wait for each other; one that the browser gave up while it waits never runs."""

    def __init__(self) -> None:
        self._places: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    async def run(self, request: Request, answer: Callable[[], Awaitable[Response]]) -> Response:
        """Return the answer to a search, when its turn comes."""
        places = self._places.setdefault(session_cookie(request.scope), asyncio.Semaphore(_MAX_AT_ONCE))
        if not await _wait_for_place(places, request):
            return Response(status_code=_GONE)
        try:
            return await answer()
        finally:
            places.release()


async def _wait_for_place(places: asyncio.Semaphore, request: Request) -> bool:
    """Return whether a place became free before the browser left."""
    has_place = False
    async with anyio.create_task_group() as group:

        async def leave() -> None:
            while (await request.receive())["type"] != "http.disconnect":
                pass
            group.cancel_scope.cancel()

        group.start_soon(leave)
        has_place = await places.acquire()
        group.cancel_scope.cancel()
    return has_place
