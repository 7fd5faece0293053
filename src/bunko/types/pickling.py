"""Pickle the fields of a dataclass as one tuple: workers send so many that the default takes twice the time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from functools import cache
from operator import attrgetter
from typing import Any


def reduce_to_fields(instance: Any) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """Return the call that restores an instance of a dataclass with slots; for use as its `__reduce__`."""
    cls: Any = type(instance)
    return _restore, (cls, *_getter(cls)(instance))


def _restore(cls: Any, *values: Any) -> Any:
    instance: Any = object.__new__(cls)
    for set_field, value in zip(_setters(cls), values, strict=True):
        set_field(instance, value)
    return instance


@cache
def _getter(cls: Any) -> Callable[[Any], tuple[Any, ...]]:
    return attrgetter(*_names(cls))


@cache
def _setters(cls: Any) -> list[Callable[[Any, Any], None]]:
    # Those of the slots: frozen instances refuse any other.
    return [getattr(cls, name).__set__ for name in _names(cls)]


def _names(cls: Any) -> list[str]:
    return [field.name for field in fields(cls)]
