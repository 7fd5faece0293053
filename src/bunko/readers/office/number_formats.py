"""Show the numbers of a spreadsheet as people see them: dates, times, percentages, numbers without rounding noise."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Literal

from bunko.readers.office.package import children, local_name

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

# Or digits to fill up with zeros, as in a postal code.
NumberKind = Literal["number", "date", "time", "datetime", "duration", "percent"] | int

_DATE_IDS = frozenset((*range(14, 18), *range(27, 32), 34, 35, 36, *range(50, 59)))
_TIME_IDS = frozenset((18, 19, 20, 21, 32, 33, 45, 47))
_FORMATS_BY_ID: dict[int, NumberKind] = {
    **dict.fromkeys(_DATE_IDS, "date"), **dict.fromkeys(_TIME_IDS, "time"), 22: "datetime", 46: "duration",
    9: "percent", 10: "percent",
}  # fmt: skip
# What is not a code: quoted text, escaped characters, colours and conditions, and the placeholders of widths.
_LITERALS = re.compile(r'"[^"]*"|\\.|_.|\*.|\[(?!h+\]|m+\]|s+\])[^\]]*\]', re.IGNORECASE)
_FIRST_DAY = {False: datetime(1899, 12, 30), True: datetime(1904, 1, 1)}
_MAX_DAYS = 2_958_466  # the end of the year 9999


def read_number_kinds(styles: Element) -> list[NumberKind]:
    """Return the kind of number that each cell style of a workbook shows."""
    codes = {node.get("numFmtId", ""): node.get("formatCode", "") for node in children(styles, "numFmts")}
    kinds: list[NumberKind] = []
    for style in children(styles, "cellXfs"):
        if local_name(style) == "xf":
            format_id = style.get("numFmtId", "")
            code = codes.get(format_id)
            known = (
                _FORMATS_BY_ID.get(int(format_id), "number")
                if format_id.isdecimal() and len(format_id) < 6
                else "number"
            )
            kinds.append(known if code is None else kind_of_format(code))
    return kinds


def kind_of_format(code: str) -> NumberKind:
    """Return the kind of number that a format code shows."""
    first = re.sub(r"e[-+]", "", _LITERALS.sub("", code).split(";")[0].lower())
    if re.fullmatch(r"0{2,20}", first):
        return len(first)
    if "[h" in first or "[m" in first or "[s" in first:
        return "duration"
    has_time = "h" in first or "s" in first
    # m is a month, or minutes beside hours; 年 and e (the year of an era) stand for themselves.
    has_date = any(letter in first for letter in "ydeg") or ("m" in first and not has_time)
    if "%" in first:
        return "percent"
    if "general" in first:
        return "number"
    if has_date:
        return "datetime" if has_time else "date"
    return "time" if has_time else "number"


def format_number(text: str, kind: NumberKind, *, since_1904: bool) -> str:
    """Return a number as it is shown; a text that is no number stays as it is."""
    if len(text) > 40:
        return text
    try:
        number = float(text)
    except ValueError:
        return text
    if kind == "percent":
        return f"{_plain_number(number * 100)}%"
    if kind == "duration":
        if not abs(number) < _MAX_DAYS:
            return _plain_number(number)
        seconds = round(abs(number) * 86_400)
        return f"{'-' if number < 0 else ''}{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    if kind in ("date", "time", "datetime"):
        return _format_date(number, str(kind), since_1904=since_1904) or _plain_number(number)
    plain = _plain_number(number)
    return plain.zfill(kind) if isinstance(kind, int) and plain.isdecimal() else plain


def _plain_number(number: float) -> str:
    """Return a number with the 15 digits that spreadsheets keep: 0.1 + 0.2 is 0.3."""
    text = f"{number:.15g}"
    return text if "e" not in text else repr(float(text))


def _format_date(days: float, kind: str, *, since_1904: bool) -> str:
    if not 0 <= days < _MAX_DAYS:
        return ""
    # Before March 1900 the calendar of spreadsheets is off by one: they take 1900 for a leap year.
    shift = 1 if not since_1904 and 1 <= days < 60 else 0
    moment = _FIRST_DAY[since_1904] + timedelta(days=int(days) + shift, seconds=round(days % 1 * 86_400))
    time = f"{moment:%H:%M:%S}" if moment.second else f"{moment:%H:%M}"
    if kind == "time" and days < 1:
        return time
    day = moment.date().isoformat()
    return day if kind == "date" and time == "00:00" else f"{day} {time}"
