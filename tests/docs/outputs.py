"""Compare the outputs that a page shows with what its commands print, and write their numbers anew."""

from __future__ import annotations

import math
import os
import re
from pathlib import Path

IS_UPDATE = os.environ.get("BUNKO_UPDATE_SNAPSHOTS") == "1"
STALE = "Run `make docs` and commit {page}."

_ELLIPSIS, _TIME, _RULE = "…", r"\d{4}-\d\d-\d\d \d\d:\d\d|\d\d:\d\d:\d\d|just now|\d+ min ago", "[━─]+"
_SIZE, _NUMBER = r"\b[\d.]+ k?B\b", r"-?\b\d+\.\d+\b"
_VARYING = re.compile(
    rf"(?P<rest>{_ELLIPSIS})|(?P<time>{_TIME})|(?P<rule>{_RULE})|(?P<size>{_SIZE})|(?P<number>{_NUMBER})"
)


def renew(shown: str, printed: str, *, is_table: bool = False) -> str | None:
    """Return an output with the decimal numbers and sizes that were printed; None if anything else differs.

    An ellipsis stands for what the page leaves out, and times may differ. In a table, so may the width of columns.
    """
    pattern, end = "", 0
    for match in _VARYING.finditer(shown):
        pattern += _literal(shown[end : match.start()], is_table)
        pattern += {"rest": "(.*?)", "time": f"({_TIME})", "rule": f"({_RULE})", "size": f"({_SIZE})"}.get(
            match.lastgroup or "", f"({_NUMBER})"
        )
        end = match.end()
    pattern += _literal(shown[end:], is_table)
    found = re.fullmatch(pattern, printed.strip(), re.S)
    if found is None:
        return None
    values = iter(found.groups())
    return _VARYING.sub(
        lambda match: value if (value := next(values)) and match.lastgroup in ("size", "number") else match[0], shown
    )


def _literal(text: str, is_table: bool) -> str:
    if not is_table:
        return re.escape(text)
    # Between two columns or lines may be any number of blanks.
    words = r"\s+".join(map(re.escape, text.split()))
    return rf"{_blanks(text[:1])}{words}{_blanks(text[-1:])}"


def _blanks(end: str) -> str:
    return r"\s*" if end.isspace() else ""


def is_close(shown: str, renewed: str) -> bool:
    """Return whether the numbers of two outputs are the same, but for what another machine makes of them."""
    pairs = list(zip(_VARYING.finditer(shown), _VARYING.finditer(renewed), strict=True))
    return all(
        # Another processor may round a score elsewhere, and another SQLite fill its pages less.
        math.isclose(_value(old[0]), _value(new[0]), rel_tol=0.1 if old.lastgroup == "size" else 0, abs_tol=0.0021)
        for old, new in pairs
        if old.lastgroup in ("size", "number")
    )


def _value(text: str) -> float:
    number, _, unit = text.partition(" ")
    return float(number) * (1000 if unit == "kB" else 1)


def check_output(pages: list[Path], command: str, shown: str, printed: str, *, is_table: bool = False) -> None:
    """Compare the output of a command with what pages show; with BUNKO_UPDATE_SNAPSHOTS=1, write its numbers there."""
    shown = shown.strip()
    renewed = renew(shown, printed, is_table=is_table)
    assert renewed is not None, f"{command} printed:\n{printed}"
    if IS_UPDATE:
        replace_text(pages, shown, renewed)
    else:
        names = " and ".join(path.name for path in pages)
        assert is_close(shown, renewed), f"{STALE.format(page=names)} {command} printed:\n{printed}"


def replace_text(pages: list[Path], old: str, new: str) -> None:
    """Write a text in the place of another in all pages that have it."""
    for path in pages:
        text = path.read_text(encoding="utf-8")
        if old and old != new and old in text:
            path.write_text(text.replace(old, new), encoding="utf-8")
