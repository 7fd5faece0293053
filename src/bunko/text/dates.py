"""Parse dates written by people into ISO 8601."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, tzinfo
from functools import lru_cache

from bunko.errors import QueryError, SettingsError
from bunko.text.normalise import normalise

_RELATIVE_DATE = re.compile(
    r"(\d{1,4})\s*(?:([hdwmy])|(hour|day|week|month|year)s? ago|(時間|日|週間|[かカヵヶケ箇]月|年)前)"
)
_DATE = re.compile(
    r"(\d{4})(?:[-/.年](\d{1,2})(?:[-/.月](\d{1,2})日?)?)?[月年]?(?:[T ](\d{1,2}):(\d{2})(?::(\d{2}))?)?"
)
_ZONED_TIME = re.compile(r"(?i)\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d)?(?:Z|[-+]\d\d:?\d\d)")
_DAYS_AGO = {
    "today": 0, "yesterday": 1,
    "今日": 0, "きょう": 0, "本日": 0, "昨日": 1, "きのう": 1, "一昨日": 2, "おととい": 2,
}  # fmt: skip
_WEEKS_AGO = {"this week": 0, "last week": 1, "今週": 0, "先週": 1, "先々週": 2}
_MONTHS_AGO = {"this month": 0, "last month": 1, "今月": 0, "先月": 1, "先々月": 2}
_YEARS_AGO = {
    "this year": 0, "last year": 1, "今年": 0, "ことし": 0, "去年": 1, "昨年": 1, "一昨年": 2, "おととし": 2,
}  # fmt: skip
_UNIT_DAYS = {
    "d": 1, "w": 7, "m": 30, "y": 365, "day": 1, "week": 7, "month": 30, "year": 365,
    "日": 1, "週間": 7, "月": 30, "年": 365,
}  # fmt: skip

# The year before the first year of each era. Eras change within a year: 平成31年 and 令和元年 are both 2019.
_ERAS = {"明治": 1867, "大正": 1911, "昭和": 1925, "平成": 1988, "令和": 2018}
_ERA = rf"(?P<era>{'|'.join(_ERAS)})\s*(?P<year>\d{{1,2}}|元)\s*年"
_ERA_YEAR = re.compile(_ERA)

# Longer than any date with time, weekday and zone.
_MAX_DATE_CHARS = 64
_STATED_DATE = re.compile(
    r"(\d{4})(?:年?|\s*[-/.年]\s*(\d\d?)(?:月?|\s*[-/.月]\s*(\d\d?)日?(?:\s*\(\w{1,4}\))?))"
    r"(?:(?:[Tt]|\s+)(\d\d?)[:時](\d\d?)(?:分?|[:分](\d\d?)(?:\.\d+)?秒?)\s*(?:([-+]\d\d?)(?::?(\d\d))?|([Zz]))?)?"
)
_COMPACT_DATE = re.compile(r"(\d{4})(\d\d)(\d\d)")

# A full date inside a line, half or full width.
DAY_PATTERN = (
    rf"(?<!\d)(?:{_ERA.replace('?P<era>', '').replace('?P<year>', '')}|\d{{4}}\s?[-/.年－／．])"
    r"\s?\d{1,2}\s?[-/.月－／．]\s?\d{1,2}(?!\d)日?"
)
_DATE_IN_NAME = re.compile(r"(\d{4})(?:([-_.]?)(\d\d)\2(\d\d)(?!\d)|年(\d\d?)月(\d\d?)日)")


def resolve_date(text: str, now: datetime, *, is_end: bool = False) -> str:
    """Return 2024, 2024-01, 2024-01-15 or a full time; 2w and 2週間前 are the day two weeks ago, 12h is a time.

    Of a week, the result is Monday, or Sunday if the date is the end of a period. It has no zone and is in the zone of
    `now`; a time with a zone is converted to it.
    """
    normalised = convert_era_years(normalise(text)).strip()
    zone, now = now.tzinfo, now.replace(tzinfo=None)
    if date := _named_date(" ".join(normalised.lower().replace("-", " ").split()), now, is_end=is_end):
        return date
    if _ZONED_TIME.fullmatch(normalised):
        try:
            return _naive_iso(datetime.fromisoformat(normalised.upper()), zone)
        except (ValueError, OverflowError) as error:
            raise QueryError(f"{text!r} is not a date: {error}", hint="Write it as 2024-01-15.") from error
    if match := _RELATIVE_DATE.fullmatch(normalised.lower()):
        amount, unit = int(match[1]), (match[2] or match[3] or match[4]).lstrip("かカヵヶケ箇")
        try:
            if unit in ("h", "hour", "時間"):
                return (now - timedelta(hours=amount)).isoformat(timespec="seconds")
            # Whole days: most memos have no time, and those of the named day should match too.
            return (now - timedelta(days=amount * _UNIT_DAYS[unit])).date().isoformat()
        except OverflowError as error:
            raise QueryError(f"{text!r} is too long ago", hint="Use a nearer date.") from error
    match = _DATE.fullmatch(normalised)
    if match is None:
        raise QueryError(
            f"{text!r} is not a date",
            hint="Write 2024-01-15, 2024-01, 2024, 2024年1月15日, yesterday, last month, or 2w for two weeks ago.",
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


def _named_date(name: str, now: datetime, *, is_end: bool) -> str:
    """Return the day, month or year that words such as 先週 name, or an empty string."""
    if name in _DAYS_AGO:
        return (now - timedelta(days=_DAYS_AGO[name])).date().isoformat()
    if name in _WEEKS_AGO:
        monday = now - timedelta(weeks=_WEEKS_AGO[name], days=now.weekday())
        return (monday + timedelta(days=6 if is_end else 0)).date().isoformat()
    if name in _MONTHS_AGO:
        months = now.year * 12 + now.month - 1 - _MONTHS_AGO[name]
        return f"{months // 12:04d}-{months % 12 + 1:02d}"
    return f"{now.year - _YEARS_AGO[name]:04d}" if name in _YEARS_AGO else ""


def iso_date(date_text: str) -> str:
    """Return a date in a document as ISO 8601, as precise as it is given, or "" if it is not a date."""
    return "" if len(date_text) > _MAX_DATE_CHARS else _parse_date(date_text)


@lru_cache(1000)  # many memos have the same day
def _parse_date(date_text: str) -> str:
    text = convert_era_years(normalise(date_text)).strip()
    match = _STATED_DATE.fullmatch(text) or _COMPACT_DATE.fullmatch(text)
    if not match:
        return ""
    year, month, day, hour, minute, second, zone_hours, zone_minutes, utc = (*match.groups(), *[None] * 6)[:9]
    numbers = [int(part) for part in (year, month, day, hour, minute, second) if part]
    try:
        # The first moment of the period validates the numbers.
        moment = datetime(*[*numbers, 1, 1][: max(3, len(numbers))])  # type: ignore[arg-type]
    except ValueError:
        return ""
    if hour:
        zone = f"{int(zone_hours):+03d}:{zone_minutes or '00'}" if zone_hours else "+00:00" if utc else ""
        return moment.isoformat(timespec="seconds") + zone if day else ""
    return moment.date().isoformat()[: (4, 7, 10)[len(numbers) - 1]]


def date_in_name(path: str) -> str:
    """Return the date at the start of a file name, as in daily notes, or an empty string."""
    match = _DATE_IN_NAME.match(path.rpartition("/")[2])
    return iso_date("-".join(part for part in match.group(1, 3, 4, 5, 6) if part)) if match else ""


def local_date(date: str, zone: tzinfo | None) -> str:
    """Convert a date to a zone and return it without one; a date without a zone is returned unchanged."""
    if len(date) <= len("2024-01-15T09:30:00"):
        return date
    try:
        return _naive_iso(datetime.fromisoformat(date), zone)
    except (ValueError, OverflowError):
        return date


def time_zone(name: str | None) -> tzinfo | None:
    """Return the time zone of a name such as Asia/Tokyo; None, the zone of the system, if there is no name."""
    if not name:
        return None
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise SettingsError(
            f"There is no time zone {name!r}",
            hint="Set search.timezone to a name such as Asia/Tokyo or UTC. If the system knows none, install tzdata.",
        ) from error


def _naive_iso(when: datetime, zone: tzinfo | None) -> str:
    return when.astimezone(zone).replace(tzinfo=None).isoformat(timespec="seconds")


def convert_era_years(text: str) -> str:
    """Return a text with years of Japanese eras converted to Western years: 令和6年 becomes 2024年."""

    def western_year(match: re.Match[str]) -> str:
        return f"{_ERAS[match['era']] + (1 if match['year'] == '元' else int(match['year']))}年"

    return _ERA_YEAR.sub(western_year, text)
