"""Write filters as expressions of Milvus."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from datetime import date, timedelta

from bunko.types.records import NO_FILTER, Filter, SelectedDocuments

# More ids than this make an expression slow to parse; then the filter itself narrows the rows.
MAX_IDS = 1000
_MAX_TEXT_CHARS = 200
_WILDCARD = re.compile(r"[*?\[]")
_DATE = re.compile(r"(\d{4})(?:-(\d\d)(?:-(\d\d))?)?")
# The numbers of rows without a date, and with one that is no date: their comparison with others is left to bunko.
NO_DATE, UNKNOWN_DATE = 0, -1
# A day in one time zone is at most two days away from that in another.
_ZONE_DAYS = 2


def date_number(text: str) -> int:
    """Return the number of a date in a row: 20240115 for 2024-01-15T10:00:00, 20240100 for 2024-01."""
    if not text:
        return NO_DATE
    if not (match := _DATE.match(text)):
        return UNKNOWN_DATE
    year, month, day = (int(part or 0) for part in match.groups())
    return year * 10**4 + month * 100 + day


def filter_expression(tool_ids: Sequence[int], where: tuple[int, ...] | None, *, with_dates: bool = True) -> str:
    """Return an expression that matches at least the chunks of some tools and documents, and few others.

    Without `with_dates`, dates are not part of it: some rows have old ones.
    """
    conditions = [f"tool in [{', '.join(map(str, tool_ids))}]"]
    if where is not None and len(where) <= MAX_IDS:
        conditions.append(f"document_id in [{', '.join(map(str, where))}]")
    elif isinstance(where, SelectedDocuments):
        conditions += _attribute_conditions(where.filter)
        conditions += _date_conditions(where.filter) if with_dates else []
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


def _date_conditions(where: Filter) -> list[str]:
    """Return the conditions for a range of dates, wide enough for all time zones."""
    conditions = []
    if where.since and (first := _shift_day(where.since, -_ZONE_DAYS)):
        conditions.append(f"date >= {first}")
    if where.until and (last := _shift_day(where.until, _ZONE_DAYS)):
        conditions.append(f"date <= {last}")
    return [f"(date == {UNKNOWN_DATE} or ({' and '.join(conditions)}))"] if conditions else []


def _shift_day(text: str, days: int) -> int | None:
    """Return the number of the day so many days after the end of a date, or before its start; None for no date."""
    match = _DATE.match(text)
    if match is None:
        return None
    year, month, day = match.groups()
    is_end = days > 0
    try:
        if day:
            shifted = date(int(year), int(month), int(day)) + timedelta(days)
        else:
            month = month or ("12" if is_end else "01")
            # Day 31 of a shorter month is a day of the next one: a few more candidates, and no fewer.
            shifted = date(int(year), int(month), 1) + timedelta(days + (30 if is_end else 0))
    except (ValueError, OverflowError):
        return None
    return shifted.year * 10**4 + shifted.month * 100 + shifted.day
