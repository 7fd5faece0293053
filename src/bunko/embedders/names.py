"""Name embedders as people know them: the provider and the model."""

from __future__ import annotations

import re

# What a name holds besides the provider and the model: the size of a vector or the version of a bundled model, how long
# texts are treated, whether the model brings code, a digest of its files.
_OPTION = re.compile(r"\d*|(?:average|cut)-\d+|code|prefixed|[0-9a-f]{12}")
_TASK_TYPE = re.compile(r"[A-Z_]+")  # of gemini


def display_name(name: str) -> str:
    """Return the provider and the model in the name or label of an embedder: "gemini gemini-embedding-001"."""
    provider, *parts = name.split(":")
    while parts and (_OPTION.fullmatch(parts[-1]) or (provider == "gemini" and _TASK_TYPE.fullmatch(parts[-1]))):
        parts.pop()
    return f"{provider} {':'.join(parts)}".strip()
