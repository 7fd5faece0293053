"""A tool's parameters, declared once: their JSON schema goes to the client, and its arguments are checked by them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from bunko.errors import QueryError

# A longer argument is a mistake or an attack; no query needs it.
MAX_TEXT_CHARS = 100_000


_TYPES: dict[str, type] = {"string": str, "integer": int, "boolean": bool}


@dataclass(frozen=True, slots=True)
class Param:
    """One parameter."""

    name: str
    kind: str  # string, integer, boolean
    description: str = ""
    required: bool = False
    default: Any = None
    choices: tuple[str, ...] = ()
    minimum: int | None = None
    maximum: int | None = None

    def schema(self) -> dict[str, Any]:
        """Return its JSON schema."""
        found: dict[str, Any] = {"type": self.kind}
        if self.description:
            found["description"] = self.description
        if self.choices:
            found["enum"] = list(self.choices)
        if self.default is not None:
            found["default"] = self.default
        if self.minimum is not None:
            found["minimum"] = self.minimum
        if self.maximum is not None:
            found["maximum"] = self.maximum
        return found

    def validate(self, value: Any) -> Any:
        """Return the value, or say in a sentence what is wrong with it."""
        if self.kind == "integer" and isinstance(value, float) and value.is_integer():
            value = int(value)  # JSON does not tell 5 from 5.0
        if not isinstance(value, _TYPES[self.kind]) or (self.kind == "integer" and isinstance(value, bool)):
            raise QueryError(
                f"{self.name} must be {_kind_phrase(self.kind)}, not {_value_phrase(value)}", hint=self._hint()
            )
        if isinstance(value, str) and len(value) > MAX_TEXT_CHARS:
            raise QueryError(f"{self.name} has {len(value):,} characters", hint=f"At most {MAX_TEXT_CHARS:,} are read.")
        if self.choices and value not in self.choices:
            raise QueryError(
                f"{self.name} cannot be {str(value)[:80]!r}", hint=f"Use one of: {', '.join(self.choices)}."
            )
        if isinstance(value, int) and not (self.minimum or value) <= value <= (self.maximum or value):
            raise QueryError(f"{self.name} cannot be {value}", hint=self._hint())
        return value

    def _hint(self) -> str:
        if self.choices:
            return f"Use one of: {', '.join(self.choices)}."
        if self.minimum is not None and self.maximum is not None:
            return f"Use a number from {self.minimum} to {self.maximum}."
        return f"Give {self.name} as {_kind_phrase(self.kind)}."


def schema(params: Sequence[Param]) -> dict[str, Any]:
    """Return the JSON schema of all parameters."""
    found: dict[str, Any] = {"type": "object", "properties": {param.name: param.schema() for param in params}}
    if required := [param.name for param in params if param.required]:
        found["required"] = required
    return found | {"additionalProperties": False}


def validate_arguments(params: Sequence[Param], arguments: Mapping[str, Any]) -> dict[str, Any]:
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
                raise QueryError(f"{name} is missing", hint=f"Give {name}: {param.description or param.kind}.")
            values[name] = param.default
        else:
            values[name] = param.validate(given)
    return values


def _kind_phrase(kind: str) -> str:
    return {"string": "a text", "integer": "a whole number", "boolean": "true or false"}[kind]


def _value_phrase(value: Any) -> str:
    names = {str: "a text", bool: "true or false", int: "a number", float: "a number", list: "a list"}
    return names.get(type(value), "an object")
