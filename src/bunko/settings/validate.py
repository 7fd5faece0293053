"""Parse and validate the values of settings."""

from __future__ import annotations

from typing import Any, NoReturn

from bunko.errors import SettingsError
from bunko.settings.schema import SECTIONS
from bunko.settings.setting import MAX_NUMBER, Setting

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
    ("web.chunk_overlap", "less than", "web.chunk_size"),
    ("chunking.overlap", "less than", "chunking.size"),
    ("chunker.min_chunk_chars", "at most", "chunker.max_chunk_chars"),
)


def parse_value(setting: Setting, text: str) -> object:
    """Parse a value from the environment; a value that cannot be parsed stays text, and `check_value` rejects it."""
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
    """Return the value in the type of its setting; raise SettingsError if it is not allowed."""
    # TOML has no null, so an empty string also resets a setting.
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
    description = "a value of the wrong type" if setting.secret else describe_value(value)
    raise SettingsError(
        f"{setting.key} is {description} ({origin}), but it must be {setting.allowed_values()}",
        hint=f"Change it, or remove it to use the default: {setting.display_value(setting.default)}.",
    )


def describe_value(value: object) -> str:
    """Describe any value in at most 80 characters on one line."""
    if isinstance(value, int) and not -MAX_NUMBER <= value <= MAX_NUMBER:
        return "a huge number"  # Python refuses to print an integer of 4,301 digits
    if isinstance(value, (list, tuple)) and all(isinstance(item, (str, int, float)) for item in value):
        description = f"[{', '.join(map(describe_value, value[:10]))}{', …' if len(value) > 10 else ''}]"
    elif isinstance(value, bool):
        description = str(value).lower()
    elif isinstance(value, (str, int, float)):
        description = repr(value)
    else:
        description = describe_type(value)
    return description if len(description) <= 80 else f"{description[:79]}…"


def describe_type(value: object) -> str:
    """Return the name of the type of a value."""
    kind: type = type(value)
    return _TYPE_NAMES.get(kind, f"a {kind.__name__}")


def broken_pairs(values: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Return the keys of values that are valid alone but not together, with the relation they should have."""
    broken = []
    for key, relation, other in _ORDERED_PAIRS:
        low, high = values[key], values[other]
        if low is None or high is None:
            continue  # the default for it depends on the embedder
        if low > high or (low == high and relation == "less than"):
            broken.append((key, relation, other))
    return broken


def check_pairs(values: dict[str, Any], origins: dict[str, str]) -> None:
    """Raise SettingsError for values that are valid alone but not together."""
    for key, relation, other in broken_pairs(values):
        raise SettingsError(
            f"{key} is {values[key]} ({origins[key]}), but it must be {relation} {other},"
            f" which is {values[other]} ({origins[other]})",
            hint=f"Lower {key} or raise {other}.",
        )


def unknown_setting_error(key: str, origin: str) -> SettingsError:
    """Return the error for an unknown key, with the most similar known key as a hint."""
    key = key[:80]
    nearest = _most_similar_key(key)
    # In the notation of a config file, so that a dotted key at the top level gets a useful answer.
    suggestion = "[{}] {}".format(*nearest.split(".")) if "." in nearest else f"[{nearest}]"
    return SettingsError(
        f"{key!r} is not a setting ({origin})",
        hint=f"The most similar setting is {suggestion}. `bunko config show` lists all settings.",
    )


def _most_similar_key(key: str) -> str:
    """Return the known setting or section that an unknown key was probably meant to be."""
    from difflib import get_close_matches

    from bunko.settings.providers import all_settings

    settings = list(all_settings())
    section, _, name = key.rpartition(".")
    same_name = [setting for setting in settings if setting.endswith(f".{name}")]
    if same_name and not section:
        return same_name[0]
    if same_name:
        typed_word, candidates = section, {setting.rpartition(".")[0]: setting for setting in same_name}
    elif section in SECTIONS:
        prefix = f"{section}."
        typed_word = name
        candidates = {setting.removeprefix(prefix): setting for setting in settings if setting.startswith(prefix)}
    else:
        typed_word = section or name
        candidates = {section_name: section_name for section_name in SECTIONS}
        if not section:  # it may also be the name of a setting without its section
            candidates = {setting.rpartition(".")[2]: setting for setting in reversed(settings)} | candidates
    return candidates[get_close_matches(typed_word.lower(), candidates, n=1, cutoff=0)[0]]
