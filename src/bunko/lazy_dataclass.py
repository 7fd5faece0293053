"""Declare dataclasses whose methods are generated at their first use.

A search from the command line imports a hundred classes and creates objects of thirty.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(*, frozen: bool = False, slots: bool = False, eq: bool = True) -> Any:
        """Make a class without a base class a dataclass, as the standard library does."""

        def declare(cls: type) -> type:
            names = ["__init__", "__repr__"]
            if eq:
                names += ["__eq__", "__hash__"] if frozen else ["__eq__"]
            namespace = {name: value for name, value in vars(cls).items() if name not in ("__dict__", "__weakref__")}
            cls = dataclasses.dataclass(init=False, repr=False, eq=False, slots=slots)(cls)
            cls.__dataclass_params__.frozen = frozen  # for a class that inherits from it
            if frozen:
                cls.__setattr__, cls.__delattr__ = _refuse_assignment, _refuse_deletion
                if slots:  # else copying and pickling would assign the values
                    cls.__getstate__, cls.__setstate__ = _values, _restore_values
            elif eq:
                cls.__hash__ = namespace.get("__hash__")
            for name in names:
                if name not in namespace:
                    setattr(cls, name, _first_call(cls, name, namespace))
            return cls

        return declare


def _first_call(cls: Any, name: str, namespace: dict[str, Any]) -> Any:
    """Return a method that replaces itself by the generated one."""

    def method(self: Any, *values: Any, **named_values: Any) -> Any:
        generate = dataclasses.dataclass(
            frozen=cls.__dataclass_params__.frozen,
            init=name == "__init__",
            repr=name == "__repr__",
            eq=name in ("__eq__", "__hash__"),
        )
        generated = vars(generate(type(cls.__name__, (), dict(namespace))))[name]
        generated.__qualname__ = f"{cls.__qualname__}.{name}"
        setattr(cls, name, generated)
        return generated(self, *values, **named_values)

    return method


def _refuse_assignment(self: Any, name: str, value: object) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_deletion(self: Any, name: str) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


def _values(self: Any) -> list[Any]:
    return [getattr(self, field.name) for field in dataclasses.fields(self)]


def _restore_values(self: Any, values: list[Any]) -> None:
    for field, value in zip(dataclasses.fields(self), values, strict=True):
        object.__setattr__(self, field.name, value)
