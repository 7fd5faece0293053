"""Takes a value and where it was found; gives it in its setting's type, or an error that names both."""

from __future__ import annotations

from typing import Any, NoReturn

from bunko.errors import SettingsError
from bunko.settings.schema import MAX_NUMBER, SECTIONS, SETTINGS, Setting

_TRUE_WORDS = ("true", "yes", "on", "1")
_FALSE_WORDS = ("false", "no", "off", "0")
_TYPE_NAMES = {
    str: "text",
    bool: "true or false",
    int: "a number",
    float: "a number",
    list: "a list",
    tuple: "a list",
    dict: "a table",
    type(None): "nothing",
}
_ORDERED_PAIRS = (
    ("chunker.chunk_overlap", "less than", "chunker.chunk_size"),
    ("chunking.overlap", "less than", "chunking.size"),
    ("chunker.min_chunk_chars", "at most", "chunker.max_chunk_chars"),
)


def parse_value(setting: Setting, text: str) -> object:
    """Read a value from the environment; what cannot be read stays text, for `checked` to refuse."""
    if setting.is_list:
        return [_parse_scalar(setting.kind, item.strip()) for item in text.split(",") if item.strip()]
    return _parse_scalar(setting.kind, text)


def _parse_scalar(kind: type, text: str) -> object:
    if kind is bool:
        word = text.lower()
        return True if word in _TRUE_WORDS else False if word in _FALSE_WORDS else text
    try:
        return kind(text)
    except ValueError:
        return text


def check_value(setting: Setting, value: object, origin: str) -> object:
    """Return the value in the setting's type, if it is allowed."""
    # TOML has no null, so an empty text takes something back there too.
    if setting.optional and (value is None or value == ""):
        return None
    if not setting.is_list:
        return _check_item(setting, value, value, origin)
    if not isinstance(value, (list, tuple)):
        _reject_value(setting, value, origin)
    return tuple([_check_item(setting, item, value, origin) for item in value])


def _check_item(setting: Setting, item: object, value: object, origin: str) -> object:
    if isinstance(item, (int, float)) and not isinstance(item, bool) and setting.kind in (int, float):
        if (setting.kind is int and isinstance(item, float)) or not setting.low <= item <= setting.high:
            _reject_value(setting, value, origin)
        return setting.kind(item)
    if type(item) is not setting.kind or (setting.choices and item not in setting.choices):
        _reject_value(setting, value, origin)
    if isinstance(item, str) and ("\0" in item or not (item.strip() or setting.default == "")):
        _reject_value(setting, value, origin)
    return item


def _reject_value(setting: Setting, value: object, origin: str) -> NoReturn:
    what = "a value of the wrong kind" if setting.secret else describe_value(value)
    raise SettingsError(
        f"{setting.key} is {what} ({origin}), but it must be {setting.allowed_values()}.",
        hint=f"Change it, or leave it out for the default: {setting.display_value(setting.default)}.",
    )


def describe_value(value: object) -> str:
    """Write a value that was found, however strange or long, on one short line."""
    if isinstance(value, int) and not -MAX_NUMBER <= value <= MAX_NUMBER:
        return "a huge number"  # Python refuses to print an integer of 4,301 digits
    if isinstance(value, (list, tuple)) and all(isinstance(item, (str, int, float)) for item in value):
        words = f"[{', '.join(map(describe_value, value[:10]))}{', …' if len(value) > 10 else ''}]"
    elif isinstance(value, bool):
        words = str(value).lower()
    elif isinstance(value, (str, int, float)):
        words = repr(value)
    else:
        words = describe_type(value)
    return words if len(words) <= 80 else f"{words[:79]}…"


def describe_type(value: object) -> str:
    """Name a value's type without the value."""
    kind: type = type(value)
    return _TYPE_NAMES.get(kind, f"a {kind.__name__}")


def check_pairs(values: dict[str, Any], origins: dict[str, str]) -> None:
    """Refuse settings that are fine alone and impossible together."""
    for key, words, other in _ORDERED_PAIRS:
        low, high = values[key], values[other]
        if low > high or (low == high and words == "less than"):
            raise SettingsError(
                f"{key} is {low} ({origins[key]}), but it must be {words} {other}, which is {high} ({origins[other]}).",
                hint=f"Lower {key} or raise {other}.",
            )


def unknown_setting_error(key: str, origin: str) -> SettingsError:
    """Make the error for a key that does not exist, with the nearest one that does."""
    from difflib import get_close_matches

    key = key[:80]
    section, _, name = key.rpartition(".")
    namesakes = [known for known in SETTINGS if known.endswith(f".{name}")]
    if section in SECTIONS:
        near = {known.partition(".")[2]: known for known in SETTINGS if known.startswith(f"{section}.")}
    else:
        near = {known: known for known in SECTIONS}
        name = section or name
    nearest = namesakes[0] if namesakes else near[get_close_matches(name.lower(), near, n=1, cutoff=0)[0]]
    # As it stands in a file, so that a dotted key at the top of one gets a useful answer.
    place = "[{}] {}".format(*nearest.split(".")) if "." in nearest else f"[{nearest}]"
    return SettingsError(
        f"{key!r} is not a setting ({origin}).",
        hint=f"The nearest known one is {place}. `bunko config show` lists them all.",
    )
