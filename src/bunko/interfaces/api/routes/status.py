"""Say what the library holds."""

from __future__ import annotations

from bunko.interfaces.api.endpoint import Call, Endpoint
from bunko.interfaces.fields import Fields, of
from bunko.interfaces.serialize_state import LibraryFields
from bunko.version import __version__


class VersionFields(Fields):
    """Which bunko answers."""

    version: str = of(lambda _: __version__)


class StatusReply(LibraryFields, VersionFields):
    """What the library holds."""


def show_status(call: Call) -> dict[str, object]:
    """Show what the library and its tools hold."""
    return StatusReply.fill(call.library.status())


ENDPOINTS = [Endpoint("GET", "/status", show_status, StatusReply, right="read")]
