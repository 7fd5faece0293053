"""Describe a setting: its type, default, limits, names and help text."""

# No `from __future__ import annotations` here: `Setting` reads types and choices from the real annotations.
from collections.abc import Callable
from copy import copy
from dataclasses import FrozenInstanceError, dataclass, field, fields
from typing import Any, TypeVar, dataclass_transform, get_args

_T = TypeVar("_T")

# The largest integer that a store can hold. It also rejects infinity, NaN and numbers too long to print.
MAX_NUMBER = 2**63 - 1


def setting(
    default: _T,
    meaning: str,
    env: str = "",
    *,
    low: float = 0,
    high: float = MAX_NUMBER,
    file_names: tuple[str, ...] = (),
    secret: bool = False,
    derive: Callable[[], _T] | None = None,
) -> _T:
    """Declare a setting in a section; `env` holds further environment names, `file_names` further keys in files.

    With `derive`, the default is computed at first use: what it depends on is not imported at every start.
    """
    metadata = {
        "meaning": meaning,
        "env": env,
        "low": low,
        "high": high,
        "file_names": file_names,
        "secret": secret,
        "derive": derive,
    }
    return field(default=default, repr=not secret, metadata=metadata)


class _DerivedDefault:
    """The default of a setting that is not set, computed when it is read."""

    def __init__(self, derive: Callable[[], Any]) -> None:
        self._derive = derive

    def __get__(self, section: object, owner: type) -> Any:
        return self._derive()


@dataclass_transform(frozen_default=True, eq_default=False, kw_only_default=True)
class Section:
    """A frozen dataclass; its methods are shared because generating them 17 times costs 7 ms at every start."""

    def __init_subclass__(cls) -> None:
        dataclass(init=False, repr=False, eq=False)(cls)
        for attribute in fields(cls):  # type: ignore[arg-type]
            if derive := attribute.metadata["derive"]:
                setattr(cls, attribute.name, _DerivedDefault(derive))

    def __init__(self, **values: Any) -> None:
        attributes = fields(self)  # type: ignore[arg-type]
        if unknown := values.keys() - {attribute.name for attribute in attributes}:
            raise TypeError(f"{type(self).__name__} has no {', '.join(unknown)}")
        defaults = {attribute.name: attribute.default for attribute in attributes if not attribute.metadata["derive"]}
        self.__dict__.update(defaults | values)

    def values(self) -> dict[str, Any]:
        """Return the settings of the section by name."""
        return dict(vars(self))

    def __setattr__(self, name: str, value: object) -> None:
        raise FrozenInstanceError(f"cannot assign to {name}")

    def __delattr__(self, name: str) -> None:
        raise FrozenInstanceError(f"cannot delete {name}")

    def __repr__(self) -> str:
        names = [attribute.name for attribute in fields(self) if attribute.repr]  # type: ignore[arg-type]
        return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"


class Setting:
    """A setting with its type, limits, names and help text."""

    def __init__(self, section: str, name: str, annotation: Any, default: object, metadata: Any) -> None:
        self.key, self.section, self.name = f"{section}.{name}", section, name
        self._default = default
        self.derive: Callable[[], object] | None = metadata["derive"]
        self.meaning: str = metadata["meaning"]
        self.low: float = metadata["low"]
        self.high: float = metadata["high"]
        self.secret: bool = metadata["secret"]
        self.file_names: tuple[str, ...] = metadata["file_names"]
        bunko_name = f"BUNKO_{section}_{name}".upper()
        self.env_names: tuple[str, ...] = (bunko_name, *metadata["env"].split())
        arguments = get_args(annotation)
        self.optional = type(None) in arguments
        if self.optional:
            annotation = arguments[0]
            arguments = get_args(annotation)
        self.is_list = Ellipsis in arguments
        self.choices: tuple[str, ...] = () if self.is_list else arguments
        self.kind: type = arguments[0] if self.is_list else str if arguments else annotation

    @property
    def default(self) -> object:
        """Return the value if nothing sets it."""
        return self.derive() if self.derive else self._default

    def with_meaning(self, meaning: str) -> "Setting":
        """Return the same setting with another help text."""
        setting = copy(self)
        setting.meaning = meaning
        return setting

    def allowed_values(self) -> str:
        """Describe the values that are allowed."""
        if self.choices:
            description = f"one of {', '.join(self.choices)}" if len(self.choices) > 1 else self.choices[0]
        elif self.kind in (int, float):
            noun = "whole number" if self.kind is int else "number"
            description = f"a list of {noun}s" if self.is_list else f"a {noun}"
            description += f" of at least {self.low}" if self.high == MAX_NUMBER else f" from {self.low} to {self.high}"
        elif self.kind is bool:
            description = "true or false"
        else:
            description = "a list of texts" if self.is_list else "text"
        return f"{description}, or nothing" if self.optional else description

    def display_value(self, value: object) -> str:
        """Format a value for display; a secret is masked."""
        if value is None or value == "":
            return "not set"
        if self.secret:
            return "********"
        if isinstance(value, bool):
            return str(value).lower()
        return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
