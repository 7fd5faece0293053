"""The API, by its addresses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.routing import Route

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp

    from bunko.interfaces.tools.registry import ToolRegistry


def build_api(registry: ToolRegistry, *, is_local_user: Callable[[Request], bool] = lambda _: False) -> ASGIApp:
    """Return the app of the API, which gets whole paths; whoever sends a request was checked before."""
    return Starlette(routes=[Route("/api/{path:path}", _answer_unknown)])


async def _answer_unknown(_: Request) -> Response:
    from bunko.interfaces.http.refusals import problem

    return problem(404, "unknown", "There is nothing at this address", "See /api/docs.")
