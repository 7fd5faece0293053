"""Define an endpoint of the API: its address, the function that answers, and the shapes of what goes in and out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, get_type_hints
from urllib.parse import unquote

from pydantic import BaseModel, ConfigDict

from bunko.interfaces.tools.tool import Right

if TYPE_CHECKING:
    from bunko.interfaces.api.events import EventFeed
    from bunko.interfaces.tools.jobs import Jobs
    from bunko.library.access import LibraryAccess

PREFIX = "/api/v1"
Method = Literal["GET", "POST", "PATCH", "DELETE"]


class Shape(BaseModel):
    """Parameters or a body; what it does not name is an error."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, frozen=True)


class NoParameters(Shape):
    """For an endpoint without parameters."""


@dataclass(frozen=True, slots=True)
class Call:
    """A request: what its caller may use of the library and of the jobs of this server."""

    library: LibraryAccess
    jobs: Jobs
    events: EventFeed
    is_local_user: bool = False  # whether the user who started this server sent it, from the same machine


@dataclass(frozen=True)
class Endpoint:
    """One method of one address.

    The function gets the call, the parts of the address by their names, and, if its parameters have these names, the
    parameters as `query` and the body as `body`; their types are its annotations, and its docstring is the summary.
    """

    method: Method
    path: str  # below /api/v1; {name} is one part of it, and {path} as many as there are
    answer: Callable[..., Any]
    reply: Any = None  # the type of the JSON; None: no content
    right: Right = field(kw_only=True)  # without a default, so that it cannot be forgotten
    status: int = 200
    errors: Sequence[int] = ()  # statuses of errors that only this endpoint has
    has_etag: bool = False  # whether the reply depends on the request and the library only
    needs_local_user: bool = False
    is_long: bool = False  # whether it may wait for a model or another server, as one that writes waits for an import
    is_stream: bool = False  # whether it answers with server-sent events, which the function yields

    @cached_property
    def hints(self) -> dict[str, Any]:
        """The types of the function's parameters."""
        return get_type_hints(self.answer)

    @property
    def query(self) -> type[Shape]:
        """The parameters that it takes."""
        shape: type[Shape] = self.hints.get("query", NoParameters)
        return shape

    @property
    def body(self) -> type[Shape] | None:
        """The JSON object that it takes."""
        return self.hints.get("body")

    @cached_property
    def segments(self) -> tuple[str, ...]:
        """The parts of its address."""
        return tuple(self.path.strip("/").split("/"))

    @property
    def path_names(self) -> list[str]:
        """The names in its address."""
        return [segment[1:-1] for segment in self.segments if segment.startswith("{")]

    def match(self, segments: Sequence[str]) -> dict[str, str] | None:
        """Return the values of the names in an address, or None if it is another one.

        The parts are still encoded, so that a name may contain a slash.
        """
        patterns = self.segments
        if "{path}" in patterns:
            position = patterns.index("{path}")
            tail = len(patterns) - position - 1
            if len(segments) < len(patterns):
                return None
            path = "/".join(segments[position : len(segments) - tail])
            segments = [*segments[:position], path, *segments[len(segments) - tail :]]
        if len(segments) != len(patterns):
            return None
        values = {}
        for pattern, segment in zip(patterns, segments, strict=True):
            if pattern.startswith("{"):
                values[pattern[1:-1]] = unquote(segment)
            elif pattern != segment:
                return None
        return values if all(values.values()) else None


def find_endpoint(endpoints: Sequence[Endpoint], method: str, path: str) -> tuple[Endpoint, dict[str, str]] | list[str]:
    """Return the endpoint of an address and the values in it, else the methods that the address has."""
    segments = path.removeprefix(PREFIX).lstrip("/").split("/")
    allowed: list[str] = []
    for endpoint in endpoints:
        values = endpoint.match(segments)
        if values is None:
            continue
        if endpoint.method == method or (endpoint.method, method) == ("GET", "HEAD"):
            return endpoint, values
        allowed += ["GET", "HEAD"] if endpoint.method == "GET" else [endpoint.method]
    return sorted(set(allowed))
