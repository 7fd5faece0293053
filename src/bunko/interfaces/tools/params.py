"""A tool's parameters, declared once: their JSON schema goes to the client, and its arguments are checked by them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from bunko.errors import QueryError

# A longer argument is a mistake or an attack; no query needs it.
LONGEST_TEXT = 100_000


_TYPES: dict[str, type] = {"string": str, "integer": int, "boolean": bool}


@dataclass(frozen=True, slots=True)
class Param:
    """One parameter."""

    name: str
    kind: str  # string, integer, boolean
    about: str = ""
    required: bool = False
    default: Any = None
    choices: tuple[str, ...] = ()
    least: int | None = None
    most: int | None = None

    def schema(self) -> dict[str, Any]:
        """Return its JSON schema."""
        found: dict[str, Any] = {"type": self.kind}
        if self.about:
            found["description"] = self.about
        if self.choices:
            found["enum"] = list(self.choices)
        if self.default is not None:
            found["default"] = self.default
        if self.least is not None:
            found["minimum"] = self.least
        if self.most is not None:
            found["maximum"] = self.most
        return found

    def checked(self, value: Any) -> Any:
        """Return the value, or say in a sentence what is wrong with it."""
        if self.kind == "integer" and isinstance(value, float) and value.is_integer():
            value = int(value)  # JSON does not tell 5 from 5.0
        if not isinstance(value, _TYPES[self.kind]) or (self.kind == "integer" and isinstance(value, bool)):
            raise QueryError(f"{self.name} must be {_article(self.kind)}, not {_kind(value)}", hint=self._hint())
        if isinstance(value, str) and len(value) > LONGEST_TEXT:
            raise QueryError(f"{self.name} has {len(value):,} characters", hint=f"At most {LONGEST_TEXT:,} are read.")
        if self.choices and value not in self.choices:
            raise QueryError(
                f"{self.name} cannot be {str(value)[:80]!r}", hint=f"Use one of: {', '.join(self.choices)}."
            )
        if isinstance(value, int) and not (self.least or value) <= value <= (self.most or value):
            raise QueryError(f"{self.name} cannot be {value}", hint=self._hint())
        return value

    def _hint(self) -> str:
        if self.choices:
            return f"Use one of: {', '.join(self.choices)}."
        if self.least is not None and self.most is not None:
            return f"Use a number from {self.least} to {self.most}."
        return f"Give {self.name} as {_article(self.kind)}."


def schema(params: Sequence[Param]) -> dict[str, Any]:
    """Return the JSON schema of all parameters."""
    found: dict[str, Any] = {"type": "object", "properties": {param.name: param.schema() for param in params}}
    if required := [param.name for param in params if param.required]:
        found["required"] = required
    return found | {"additionalProperties": False}


def checked(params: Sequence[Param], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return a value for every parameter, or say in a sentence which argument is wrong and how."""
    known = {param.name: param for param in params}
    for name in arguments:
        if name not in known:
            near = get_close_matches(name[:80], known, n=1)
            hint = f"Did you mean {near[0]}?" if near else f"Known: {', '.join(known) or 'none'}."
            raise QueryError(f"There is no argument {name[:80]!r}", hint=hint)
    values = {}
    for name, param in known.items():
        given = arguments.get(name)
        if given is None:
            if param.required:
                raise QueryError(f"{name} is missing", hint=f"Give {name}: {param.about or param.kind}.")
            values[name] = param.default
        else:
            values[name] = param.checked(given)
    return values


def _article(kind: str) -> str:
    return {"string": "a text", "integer": "a whole number", "boolean": "true or false"}[kind]


def _kind(value: Any) -> str:
    names = {str: "a text", bool: "true or false", int: "a number", float: "a number", list: "a list"}
    return names.get(type(value), "an object")
