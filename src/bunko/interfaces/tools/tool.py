"""What a tool is to this server: a name, words for the model, parameters, and the function that answers."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from bunko.interfaces.tools.params import Param

if TYPE_CHECKING:
    from bunko.library.library import Library


@dataclass(slots=True)
class Reply:
    """An answer, complete in each form: some clients show the model the text, others the structure."""

    text: str
    structured: dict[str, Any]


@dataclass(slots=True)
class Call:
    """One call on its way: the library, the arguments, and the ways to report and to be stopped."""

    library: Library
    arguments: Mapping[str, Any]
    progress: Callable[[float, float, str], None] = lambda done, total, message: None
    stop: threading.Event = field(default_factory=threading.Event)


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool that an assistant can call."""

    name: str
    title: str
    description: str
    params: Sequence[Param]
    output: Mapping[str, Any]  # the JSON schema of its structured answer
    run: Callable[[Call], Reply]
    read_only: bool = True
    idempotent: bool = True
    destructive: bool = False
    open_world: bool = False  # reaches beyond this machine
    slow: bool = False  # may run in the background


def listed(properties: Mapping[str, Any], *required: str) -> dict[str, Any]:
    """Return the schema of an object."""
    return {"type": "object", "properties": dict(properties), "required": list(required)}


TEXT, NUMBER, WHOLE, TRUTH = {"type": "string"}, {"type": "number"}, {"type": "integer"}, {"type": "boolean"}
