"""What people write for a date in, ISO 8601 out."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from bunko.errors import QueryError
from bunko.text.normalise import normalise

_RELATIVE = re.compile(r"(\d{1,4})\s*(h|d|w|m|y)")
_DATE = re.compile(
    r"(\d{4})(?:[-/.年](\d{1,2})(?:[-/.月](\d{1,2})日?)?)?[月年]?(?:[T ](\d{1,2}):(\d{2})(?::(\d{2}))?)?"
)
_DAYS = {"d": 1, "w": 7, "m": 30, "y": 365}


def moment(text: str, now: datetime) -> str:
    """Return 2024, 2024-01, 2024-01-15 or a full time; 2w means two weeks before now, 2024年1月15日 is understood."""
    written = normalise(text).strip()
    if match := _RELATIVE.fullmatch(written.lower()):
        number, unit = int(match[1]), match[2]
        back = timedelta(hours=number) if unit == "h" else timedelta(days=number * _DAYS[unit])
        try:
            return (now - back).isoformat(timespec="seconds")
        except OverflowError as error:
            raise QueryError(f"{text!r} lies before all dates", hint="Use a nearer date.") from error
    match = _DATE.fullmatch(written)
    if match is None:
        raise QueryError(
            f"{text!r} is not a date",
            hint="Write 2024-01-15, 2024-01, 2024, 2024年1月15日, or 2w for two weeks ago.",
        )
    year, month, day, hour, minute, second = (int(part) if part else None for part in match.groups())
    try:
        datetime(year or 1, month or 1, day or 1, hour or 0, minute or 0, second or 0)
    except ValueError as error:
        raise QueryError(f"{text!r} is not a date: {error}", hint="Write it as 2024-01-15.") from error
    iso = f"{year:04d}"
    if month is not None:
        iso += f"-{month:02d}"
    if day is not None:
        iso += f"-{day:02d}"
    if hour is not None:
        iso += f"T{hour:02d}:{minute:02d}:{second or 0:02d}"
    return iso
