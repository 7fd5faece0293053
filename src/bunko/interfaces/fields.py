"""Declare a JSON object once: the names and types of its fields, and what fills each of them."""

from __future__ import annotations

from collections.abc import Callable
from inspect import get_annotations
from operator import attrgetter
from typing import Any, NamedTuple, NotRequired, cast, get_args, get_origin, get_type_hints

_Function = Callable[[Any], Any]


class Origin(NamedTuple):
    """Where the value of a field is from."""

    read: _Function | None  # from the object that the JSON is about; None: what has the field's name
    convert: _Function | None
    is_optional: bool


def of(source: str | _Function = "", convert: _Function | None = None, *, optional: bool = False) -> Any:
    """Return where a field's value is from: an attribute as `tool.name`, or what a function returns.

    An optional field is left out if it is empty; a score of 0.0 is not.
    """
    return Origin(attrgetter(source) if isinstance(source, str) and source else source or None, convert, optional)


class Fields:
    """A JSON object; its OpenAPI description has the same fields, with the docstring of the class.

    A field without `of(…)` is the attribute of its name. A type may be another such class, or have one in it.
    """

    @classmethod
    def fill(cls, source: Any = None, /, **values: Any) -> dict[str, Any]:
        """Return the object about `source`; the values that are given are JSON already, None leaves one out."""
        if cls not in _readers:
            types = get_type_hints(cls)
            _readers[cls] = [
                (name, _reader(read or attrgetter(name), convert or _conversion(types[name])), is_optional)
                for name, (read, convert, is_optional) in _origins(cls).items()
            ]
        result: dict[str, Any] = {}
        for name, read, is_optional in _readers[cls]:
            if name in values:
                if values[name] is not None or not is_optional:
                    result[name] = values[name]
            elif (value := read(source)) or not is_optional or isinstance(value, float):
                result[name] = value
        return result

    @classmethod
    def __get_pydantic_core_schema__(cls, _: Any, handler: _Function) -> Any:
        """Describe the class to pydantic, which only the API imports."""
        if cls not in _typed_dicts:
            # Commands write JSON without pydantic, which takes no TypedDict of `typing` before Python 3.12.
            from typing_extensions import TypedDict

            types, build = get_type_hints(cls, include_extras=True), cast("Any", TypedDict)
            fields = {
                name: NotRequired[types[name]] if origin.is_optional else types[name]
                for name, origin in _origins(cls).items()
            }
            description = build(cls.__name__, fields)
            description.__doc__, description.__module__ = cls.__doc__, cls.__module__
            _typed_dicts[cls] = description
        return handler(_typed_dicts[cls])


# By class, from its first use on.
_readers: dict[type[Fields], list[tuple[str, _Function, bool]]] = {}
_typed_dicts: dict[type[Fields], Any] = {}


def _origins(shape: type[Fields]) -> dict[str, Origin]:
    """Return the fields in their order; one that a class declares again comes after those it inherits."""
    origins: dict[str, Origin] = {}
    for parent in reversed(shape.__mro__):
        for name in get_annotations(parent):
            origins.pop(name, None)
            origins[name] = vars(parent).get(name, of())
    return origins


def _reader(read: _Function, convert: _Function | None) -> _Function:
    return read if convert is None else lambda source: None if (value := read(source)) is None else convert(value)


def _conversion(hint: Any) -> _Function | None:
    """Return what turns an attribute into the JSON of a type; None if it is that already."""
    if isinstance(hint, type) and issubclass(hint, Fields):
        return hint.fill
    within = next(filter(None, map(_conversion, get_args(hint))), None)
    if get_origin(hint) is list:
        return list if within is None else lambda values: [within(value) for value in values]
    if get_origin(hint) is dict and within is not None:
        return lambda values: {key: within(value) for key, value in values.items()}
    return within
