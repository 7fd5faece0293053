"""`key=value` texts in, flags of the settings out: how the second side of a comparison differs from the first."""

from __future__ import annotations

from collections.abc import Iterable

from bunko.errors import SettingsError
from bunko.settings.schema import SETTINGS
from bunko.settings.validate import parse_value, unknown_setting_error

# Where a name without its section is looked for first.
_SECTIONS = ("search", "chunker")


def parse_overrides(pairs: Iterable[str]) -> dict[str, object]:
    """Return settings by their whole key: `k1=1.5` is `search.k1`."""
    found: dict[str, object] = {}
    for pair in pairs:
        written, equals, value = pair.partition("=")
        if not equals:
            raise SettingsError(f"{pair!r} is not key=value", hint="Write it like --with vector_weight=0.5.")
        setting = SETTINGS[_setting_key(written.strip())]
        found[setting.key] = parse_value(setting, value.strip())
    return found | chunk_size_overrides(found.get("chunker.chunk_size"), found.get("chunker.chunk_overlap"), found)


def chunk_size_overrides(
    size: object, overlap: object, overrides: dict[str, object] | None = None
) -> dict[str, object]:
    """Return the flags for chunks of so many characters; the chunker that has such a size is meant."""
    if size is None and overlap is None:
        return {}
    kind = (overrides or {}).get("chunker.kind", "prose")
    return {"chunker.kind": kind, "chunker.chunk_size": size, "chunker.chunk_overlap": overlap}


def _setting_key(name: str) -> str:
    candidates = [name, *(f"{section}.{name}" for section in _SECTIONS)]
    candidates += [key for key in SETTINGS if key.endswith(f".{name}")]
    for key in candidates:
        if key in SETTINGS:
            return key
    raise unknown_setting_error(name, "--with")
