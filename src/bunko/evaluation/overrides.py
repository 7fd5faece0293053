"""Parse `key=value` texts into setting overrides for the second side of a comparison."""

from __future__ import annotations

from collections.abc import Iterable

from bunko.errors import SettingsError
from bunko.settings import all_settings
from bunko.settings.validate import parse_value, unknown_setting_error

# The sections that a name without a section is looked up in first.
_SECTIONS = ("search", "chunker")
# What a score can depend on: how documents are chunked, embedded and ranked, and by which engine.
_SCORED_SECTIONS = (*_SECTIONS, "chunking", "memos", "web", "embedding", "index", "chromadb", "milvus")
_UNSCORED_KEYS = frozenset(
    f"search.{name}" for name in ("timezone", "freshness_seconds", "freshness_wait_seconds", "rerank_seconds")
)


def parse_overrides(pairs: Iterable[str]) -> dict[str, object]:
    """Return the overrides by full setting key: `k1=1.5` sets `search.k1`."""
    overrides: dict[str, object] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise SettingsError(f"{pair!r} is not key=value", hint="Write it like --with vector_weight=0.5.")
        setting = all_settings()[_setting_key(name.strip())]
        if setting.section not in _SCORED_SECTIONS or setting.key in _UNSCORED_KEYS:
            raise SettingsError(
                f"{setting.key} changes no score", hint="Compare how documents are chunked, embedded and ranked."
            )
        overrides[setting.key] = parse_value(setting, value.strip())
    return overrides | chunk_size_overrides(
        overrides.get("chunker.chunk_size"), overrides.get("chunker.chunk_overlap"), overrides
    )


def chunk_size_overrides(
    size: object, overlap: object, overrides: dict[str, object] | None = None
) -> dict[str, object]:
    """Return the overrides for a chunk size or overlap in characters, with the chunker that supports them."""
    if size is None and overlap is None:
        return {}
    kind = (overrides or {}).get("chunker.kind", "prose")
    return {"chunker.kind": kind, "chunker.chunk_size": size, "chunker.chunk_overlap": overlap}


def _setting_key(name: str) -> str:
    candidates = [name, *(f"{section}.{name}" for section in _SECTIONS)]
    candidates += [key for key in all_settings() if key.endswith(f".{name}")]
    for key in candidates:
        if key in all_settings():
            return key
    raise unknown_setting_error(name, "--with")
