"""`name=values` texts in, a grid of settings out, or an error that says what is wrong with it."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from bunko.errors import SettingsError
from bunko.evaluation.overrides import chunk_size_overrides
from bunko.settings.schema import SETTINGS
from bunko.settings.setting import Setting
from bunko.settings.validate import check_value, parse_value, unknown_setting_error

# The one thing that is no setting of its own: how many results are judged, and so how many a search gives.
N_RESULTS = "n_results"
MAX_POINTS = 10_000
_MAX_VALUES = 1000
# What a score can depend on; names may be given without these.
_SECTIONS = ("search", "chunker", "chunking")
_ALIASES = {"threshold": "search.similarity_threshold", N_RESULTS: "search.top_k", "top_k": "search.top_k"}
_UNSWEEPABLE_KEYS = ("search.freshness_seconds", "search.freshness_wait_seconds", "search.hybrid_enabled")
_RANGE = re.compile(r"([^:]*):([^:]*):([^:]*)")
_HINT = "Write a range as from:to:step, like --grid vector_weight=0:1:0.1, or a list, like --grid k1=0.8,1.2,1.6."

SettingValue = float | int | str | bool | None
PointValues = Mapping[str, SettingValue]  # the name of a dimension → its value at a point


@dataclass(frozen=True, slots=True)
class Dimension:
    """One setting and the values it is to take."""

    name: str
    key: str
    values: tuple[SettingValue, ...]

    @property
    def is_ordered(self) -> bool:
        """Say whether the values are numbers, so that a range has ends."""
        return all(isinstance(one, int | float) and not isinstance(one, bool) for one in self.values)


@dataclass(frozen=True, slots=True)
class Grid:
    """All combinations of some settings' values."""

    dimensions: tuple[Dimension, ...]

    def __len__(self) -> int:
        return math.prod(len(one.values) for one in self.dimensions)

    @property
    def keys(self) -> frozenset[str]:
        """Return the settings that change."""
        return frozenset(one.key for one in self.dimensions)

    def points(self) -> Iterator[dict[str, SettingValue]]:
        """Yield every combination, the last dimension changing fastest."""
        names = [one.name for one in self.dimensions]
        for values in itertools.product(*(one.values for one in self.dimensions)):
            yield dict(zip(names, values, strict=True))

    def overrides(self, values: PointValues) -> dict[str, object]:
        """Return a point as flags of the settings; a size of chunks means the chunker that has one."""
        found: dict[str, object] = {one.key: values[one.name] for one in self.dimensions}
        return found | chunk_size_overrides(found.get("chunker.chunk_size"), found.get("chunker.chunk_overlap"), found)


def parse_grid(texts: Sequence[str], *, limit: int = MAX_POINTS) -> Grid:
    """Read a grid, one `name=values` for each dimension; it may have at most so many points."""
    found: dict[str, Dimension] = {}
    for text in texts:
        one = _parse_dimension(text)
        if one.key in found:
            raise SettingsError(f"{one.name} is in the grid twice", hint="Give all its values in one --grid.")
        found[one.key] = one
    made = Grid(tuple(found.values()))
    if len(made) > limit:
        sizes = " × ".join(f"{len(one.values):,}" for one in made.dimensions)
        raise SettingsError(
            f"The grid has {len(made):,} points ({sizes}), and at most {limit:,} are allowed",
            hint="Take larger steps or fewer dimensions, or raise --max-points.",
        )
    return made


def _parse_dimension(text: str) -> Dimension:
    written, equals, spread = text.partition("=")
    name = written.strip()
    if not equals or not name:
        raise SettingsError(f"{text!r} is not name=values", hint=_HINT)
    setting = SETTINGS[_setting_key(name)]
    values: dict[SettingValue, None] = {}
    for item in spread.split(","):
        for value in _parse_values(setting, name, item.strip()):
            values.setdefault(value)
    short = N_RESULTS if setting.key == "search.top_k" else setting.key.partition(".")[2]
    if setting.key.startswith("chunking."):
        short = setting.key  # `size` alone could be anything's
    return Dimension(short, setting.key, tuple(values))


def _setting_key(name: str) -> str:
    candidates = [_ALIASES.get(name, name), *(f"{section}.{name}" for section in _SECTIONS)]
    key = next((one for one in candidates if one in SETTINGS), None)
    if key is None:
        raise unknown_setting_error(name, "--grid")
    setting = SETTINGS[key]
    if key.partition(".")[0] not in _SECTIONS or key in _UNSWEEPABLE_KEYS or setting.is_list:
        raise SettingsError(
            f"{name} cannot be swept",
            hint="A grid is about how a search ranks and how documents are cut: settings in [search] and [chunker].",
        )
    return key


def _parse_values(setting: Setting, name: str, item: str) -> Iterator[SettingValue]:
    if not item:
        raise SettingsError(f"--grid {name} has an empty value", hint=_HINT)
    spread = _RANGE.fullmatch(item)
    if spread is None and ":" in item and setting.kind in (int, float):
        raise SettingsError(f"--grid {name}={item} is not a range from:to:step", hint=_HINT)
    if spread is None:
        yield _validate_value(setting, None if setting.optional and item == "none" else parse_value(setting, item))
        return
    if setting.kind not in (int, float):
        raise SettingsError(f"{name} has no ranges", hint=f"Name its values: {setting.allowed_values()}.")
    for number in _parse_range(name, item, *spread.groups()):
        whole = setting.kind is int and number == number.to_integral_value()
        yield _validate_value(setting, int(number) if whole else float(number))


def _parse_range(name: str, item: str, *parts: str) -> Iterator[Decimal]:
    # Decimals, because 0.1 + 0.1 + 0.1 is not 0.3 in binary, and the last value would be lost.
    try:
        first, last, step = (Decimal(part.strip()) for part in parts)
        if not (first.is_finite() and last.is_finite() and step.is_finite()):
            raise InvalidOperation
    except InvalidOperation as error:
        raise SettingsError(f"--grid {name}={item} is not a range of numbers", hint=_HINT) from error
    if step <= 0 or last < first:
        raise SettingsError(
            f"--grid {name}={item} is an empty range", hint="The step must be above 0, and the end not below the start."
        )
    number = int((last - first) / step) + 1
    if number > _MAX_VALUES:
        raise SettingsError(f"--grid {name}={item} has {number:,} values", hint=f"At most {_MAX_VALUES:,} are allowed.")
    yield from (first + step * at for at in range(number))


def _validate_value(setting: Setting, value: object) -> SettingValue:
    found = check_value(setting, value, "--grid")
    assert found is None or isinstance(found, float | int | str | bool)
    return found


def format_value(value: SettingValue) -> str:
    """Write a value for people, as a grid takes it."""
    if isinstance(value, bool):
        return str(value).lower()
    return "none" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
