"""Parse `name=values` texts into a grid of settings."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from bunko.errors import SettingsError
from bunko.evaluation.overrides import chunk_size_overrides
from bunko.settings import all_settings
from bunko.settings.setting import Setting
from bunko.settings.validate import check_value, parse_value, unknown_setting_error
from bunko.types.ranking import OPTIONS

# Not a setting itself: how many results are judged, and so how many a search returns.
N_RESULTS = "n_results"
MAX_POINTS = 10_000
_MAX_VALUES = 1000
# The sections that a score can depend on; names may omit them.
_SECTIONS = ("search", "chunker", "chunking")
_RANKING_KEYS = tuple(f"search.{name}" for name in ("mode", *OPTIONS))
_ALIASES = {"threshold": "search.similarity_threshold", N_RESULTS: "search.top_k", "top_k": "search.top_k"}
_RANGE = re.compile(r"([^:]*):([^:]*):([^:]*)")
_HINT = "Write a range as from:to:step, like --grid vector_weight=0:1:0.1, or a list, like --grid k1=0.8,1.2,1.6."

SettingValue = float | int | str | bool | None
PointValues = Mapping[str, SettingValue]  # the name of a dimension → its value at a point


@dataclass(frozen=True, slots=True)
class Dimension:
    """A setting and its values in the grid."""

    name: str
    key: str
    values: tuple[SettingValue, ...]

    @property
    def is_ordered(self) -> bool:
        """Return whether the values are numbers, so that the range has ends."""
        return all(isinstance(value, int | float) and not isinstance(value, bool) for value in self.values)


@dataclass(frozen=True, slots=True)
class Grid:
    """All combinations of the values of some settings."""

    dimensions: tuple[Dimension, ...]

    def __len__(self) -> int:
        return math.prod(len(dimension.values) for dimension in self.dimensions)

    @property
    def keys(self) -> frozenset[str]:
        """Return the keys of the settings that the grid varies."""
        return frozenset(dimension.key for dimension in self.dimensions)

    def points(self) -> Iterator[dict[str, SettingValue]]:
        """Yield every combination, the last dimension changing fastest."""
        names = [dimension.name for dimension in self.dimensions]
        for values in itertools.product(*(dimension.values for dimension in self.dimensions)):
            yield dict(zip(names, values, strict=True))

    def overrides(self, values: PointValues) -> dict[str, object]:
        """Return a point as setting overrides; a chunk size also selects the chunker that supports it."""
        overrides: dict[str, object] = {dimension.key: values[dimension.name] for dimension in self.dimensions}
        return overrides | chunk_size_overrides(
            overrides.get("chunker.chunk_size"), overrides.get("chunker.chunk_overlap"), overrides
        )


def parse_grid(texts: Sequence[str], *, limit: int = MAX_POINTS) -> Grid:
    """Parse a grid of at most `limit` points from one `name=values` text per dimension."""
    dimensions: dict[str, Dimension] = {}
    for text in texts:
        dimension = _parse_dimension(text)
        if dimension.key in dimensions:
            raise SettingsError(f"{dimension.name} is in the grid twice", hint="Put all its values into one --grid.")
        dimensions[dimension.key] = dimension
    grid = Grid(tuple(dimensions.values()))
    if len(grid) > limit:
        sizes = " × ".join(f"{len(dimension.values):,}" for dimension in grid.dimensions)
        raise SettingsError(
            f"The grid has {len(grid):,} points ({sizes}), and at most {limit:,} are allowed",
            hint="Take larger steps or fewer dimensions, or raise --max-points.",
        )
    return grid


def _parse_dimension(text: str) -> Dimension:
    raw_name, equals, values_text = text.partition("=")
    name = raw_name.strip()
    if not equals or not name:
        raise SettingsError(f"{text!r} is not name=values", hint=_HINT)
    setting = all_settings()[_setting_key(name)]
    values: dict[SettingValue, None] = {}
    for item in values_text.split(","):
        for value in _parse_values(setting, name, item.strip()):
            values.setdefault(value)
    return Dimension(_short_name(setting.key), setting.key, tuple(values))


def _setting_key(name: str) -> str:
    candidates = [_ALIASES.get(name, name), *(f"{section}.{name}" for section in _SECTIONS)]
    key = next((candidate for candidate in candidates if candidate in all_settings()), None)
    if key is None:
        raise unknown_setting_error(name, "--grid")
    if key not in _sweepable_keys():
        names = [*_ALIASES, *(_short_name(sweepable) for sweepable in _sweepable_keys())]
        hint = f"A grid varies how searches rank and how documents are chunked: {', '.join(dict.fromkeys(names))}."
        raise SettingsError(f"{name} cannot be swept", hint=hint)
    return key


def _sweepable_keys() -> tuple[str, ...]:
    """Return the settings that a score depends on and that have single values."""
    chunker_keys = [
        setting.key
        for setting in all_settings().values()
        if setting.section in ("chunker", "chunking") and not setting.is_list
    ]
    return "search.top_k", *_RANKING_KEYS, *chunker_keys


def _short_name(key: str) -> str:
    """Return the name of a setting in a grid: `size` alone would be ambiguous."""
    if key == "search.top_k":
        return N_RESULTS
    return key if key.startswith("chunking.") else key.partition(".")[2]


def _parse_values(setting: Setting, name: str, item: str) -> Iterator[SettingValue]:
    if not item:
        raise SettingsError(f"--grid {name} has an empty value", hint=_HINT)
    value_range = _RANGE.fullmatch(item)
    if value_range is None and ":" in item and setting.kind in (int, float):
        raise SettingsError(f"--grid {name}={item} is not a range from:to:step", hint=_HINT)
    if value_range is None:
        yield _validate_value(setting, None if setting.optional and item == "none" else parse_value(setting, item))
        return
    if setting.kind not in (int, float):
        raise SettingsError(f"{name} does not take a range", hint=f"List its values: {setting.allowed_values()}.")
    for number in _parse_range(name, item, *value_range.groups()):
        is_whole = setting.kind is int and number == number.to_integral_value()
        yield _validate_value(setting, int(number) if is_whole else float(number))


def _parse_range(name: str, item: str, *bounds: str) -> Iterator[Decimal]:
    """Yield the numbers of a range; `bounds` are its first number, its last number and its step."""
    # Decimals, because 0.1 + 0.1 + 0.1 is not 0.3 in binary, and the last value would be lost.
    try:
        first, last, step = (Decimal(bound.strip()) for bound in bounds)
        if not (first.is_finite() and last.is_finite() and step.is_finite()):
            raise InvalidOperation
    except InvalidOperation as error:
        raise SettingsError(f"--grid {name}={item} is not a range of numbers", hint=_HINT) from error
    if step <= 0 or last < first:
        raise SettingsError(
            f"--grid {name}={item} is an empty range", hint="The step must be above 0, and the end not below the start."
        )
    count = int((last - first) / step) + 1
    if count > _MAX_VALUES:
        raise SettingsError(f"--grid {name}={item} has {count:,} values", hint=f"At most {_MAX_VALUES:,} are allowed.")
    yield from (first + step * index for index in range(count))


def _validate_value(setting: Setting, value: object) -> SettingValue:
    valid_value = check_value(setting, value, "--grid")
    assert valid_value is None or isinstance(valid_value, float | int | str | bool)
    return valid_value


def format_value(value: SettingValue) -> str:
    """Return a value as text, in the form that --grid accepts."""
    if isinstance(value, bool):
        return str(value).lower()
    return "none" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
