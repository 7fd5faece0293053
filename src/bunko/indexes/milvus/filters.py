"""Write filters as expressions of Milvus."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from bunko.records import NO_FILTER, Filter, SelectedDocuments

# More ids than this make an expression slow to parse; then the filter itself narrows the rows.
_MAX_IDS = 1000
_MAX_TEXT_CHARS = 200
_WILDCARD = re.compile(r"[*?\[]")


def filter_expression(tool_ids: Sequence[int], where: tuple[int, ...] | None) -> str:
    """Return an expression that matches at least the chunks of some tools and documents, and few others.

    Dates are not part of it: that of a file may change without a change of its document.
    """
    conditions = [f"tool in [{', '.join(map(str, tool_ids))}]"]
    if where is not None and len(where) <= _MAX_IDS:
        conditions.append(f"document_id in [{', '.join(map(str, where))}]")
    elif isinstance(where, SelectedDocuments):
        conditions += _attribute_conditions(where.filter)
    return " and ".join(conditions)


def _attribute_conditions(where: Filter) -> list[str]:
    if where == NO_FILTER:
        return []
    conditions = []
    # A glob without a slash matches at any depth, so that only one with a slash has a fixed beginning.
    prefix = _WILDCARD.split(where.path, maxsplit=1)[0] if "/" in where.path else ""
    if prefix and len(prefix) <= _MAX_TEXT_CHARS and not re.search(r'[%_\\"\']', prefix):
        conditions.append(f"path like {json.dumps(prefix + '%', ensure_ascii=False)}")
    tags = [tag for tag in where.tags if len(tag) <= _MAX_TEXT_CHARS and not re.search(r'[\\"\']', tag)]
    if tags:
        conditions.append(f"ARRAY_CONTAINS_ALL(tags, {json.dumps(tags, ensure_ascii=False)})")
    return conditions
