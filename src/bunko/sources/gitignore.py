"""The text of a .gitignore comes in, patterns that say whether a path is ignored come out."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

_ANY_FOLDERS = "**"  # the one segment that spans several path components
_STAR = "*"
_CHARACTER_CLASSES = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "blank": " \\t",
    "cntrl": "\\x00-\\x1f\\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": "!-/:-@\\[-`{-~",
    "space": " \\t-\\r",
    "upper": "A-Z",
    "xdigit": "0-9A-Fa-f",
}


class PathPatterns:
    """The patterns of one .gitignore, in which the last one that matches decides.

    A path is matched by itself and not through its parents: who walks down a tree has asked about each of
    them before. So git does it, and it keeps what one .gitignore says of a folder from outweighing what
    another says of a file in it. Unlike in git, which compares bytes, `?` and `[…]` stand for a character.
    """

    def __init__(self, lines: Iterable[str]) -> None:
        self._positive: list[bool] = []
        names: list[tuple[int, str, bool]] = []
        paths: list[tuple[int, str, bool]] = []
        for line in lines:
            pattern = _trim_line(line)
            if pattern.startswith("#"):
                continue
            takes = not pattern.startswith("!")
            pattern = pattern if takes else pattern[1:]
            folders_only = pattern.endswith("/")
            pattern = pattern.removesuffix("/")
            kind = paths if "/" in pattern else names
            regex = _glob_regex(pattern.removeprefix("/"))
            if regex is not None:
                kind.append((len(self._positive), regex, folders_only))
                self._positive.append(takes)
        self._file_matchers = _combine_globs(names, is_folder=False), _combine_globs(paths, is_folder=False)
        self._folder_matchers = _combine_globs(names, is_folder=True), _combine_globs(paths, is_folder=True)

    def verdict(self, path: str, name: str, *, is_folder: bool) -> bool | None:
        """Say whether a path, relative to the .gitignore and ending in the name, is taken; None: no match."""
        names, paths = self._folder_matchers if is_folder else self._file_matchers
        last = -1
        if names is not None and (match := names[0].fullmatch(name)):
            last = names[1][match.lastindex or 0]
        if paths is not None and (match := paths[0].fullmatch(path)):
            last = max(last, paths[1][match.lastindex or 0])
        return None if last < 0 else self._positive[last]


@lru_cache(maxsize=256)
def parse_patterns(text: str) -> PathPatterns:
    """Return the patterns of a .gitignore, compiled once however often the folder is scanned."""
    return PathPatterns(line.removesuffix("\r") for line in text.removeprefix("\ufeff").split("\n"))


def _trim_line(line: str) -> str:
    stripped = line.rstrip(" ")
    backslashes = len(stripped) - len(stripped.rstrip("\\"))
    escaped = stripped != line and backslashes % 2 == 1
    return stripped + " " if escaped else stripped


def _combine_globs(
    globs: list[tuple[int, str, bool]], *, is_folder: bool
) -> tuple[re.Pattern[str], tuple[int, ...]] | None:
    # One expression for all patterns, the last first: the group that matched names the pattern that decides,
    # at the price of one call instead of one for each pattern.
    chosen = [(line, regex) for line, regex, folders_only in reversed(globs) if is_folder or not folders_only]
    if not chosen:
        return None
    expression = re.compile("|".join(f"({regex})" for _, regex in chosen), re.DOTALL)
    return expression, (-1, *(line for line, _ in chosen))


def _glob_regex(pattern: str) -> str | None:
    """Translate a glob; None if nothing can ever match it."""
    segments = _split_segments(pattern)
    if segments is None or not pattern:
        return None
    runs: list[list[str]] = [[]]
    for segment in segments:
        if segment == [_ANY_FOLDERS]:
            runs.append([])
        else:
            runs[-1].append(_segment_regex(segment))
    first, *others = ["/".join(run) for run in runs]
    if not others:
        return first
    *middle, last = others
    # Atomic groups: the leftmost place where a piece fits is as good as any later one, and never going back
    # keeps a pattern with many stars from taking forever.
    return "".join(
        [
            f"{first}/" if first else "",
            *(f"(?>(?:[^/]+/)*?{run}/)" for run in middle if run),
            f"(?:[^/]+/)*{last}" if last else ".+",
        ]
    )


def _segment_regex(pieces: list[str]) -> str:
    parts: list[str] = [""]
    for piece in pieces:
        if piece.startswith(_STAR):
            parts.append("")
        else:
            parts[-1] += piece
    first, *others = parts
    if not others:
        return first
    *middle, last = others
    return first + "".join(f"(?>[^/]*?{part})" for part in middle) + f"[^/]*{last}"


def _split_segments(pattern: str) -> list[list[str]] | None:
    """Cut a glob at its slashes into expressions for single characters and runs of stars."""
    segments: list[list[str]] = [[]]
    at = 0
    while at < len(pattern):
        character = pattern[at]
        at += 1
        if character == "/":
            segments.append([])
        elif character == _STAR:
            start = at - 1
            while pattern[at : at + 1] == _STAR:
                at += 1
            segments[-1].append(_STAR if at - start == 1 else _ANY_FOLDERS)
        elif character == "?":
            segments[-1].append("[^/]")
        elif character == "[":
            found = _bracket_regex(pattern, at)
            if found is None:
                return None
            expression, at = found
            segments[-1].append(expression)
        elif character == "\\":
            if at == len(pattern):
                return None
            segments[-1].append(re.escape(pattern[at]))
            at += 1
        else:
            segments[-1].append(re.escape(character))
    return segments


def _bracket_regex(pattern: str, at: int) -> tuple[str, int] | None:
    """Translate what follows a `[`, and say where it ends; None if it never does."""
    negated = pattern[at : at + 1] in ("!", "^")
    at += negated
    start = at
    allowed = ""
    while pattern[at : at + 1] != "]" or at == start:
        named = re.compile(r"\[:([^\]]*):\]").match(pattern, at)
        if named:
            if named[1] not in _CHARACTER_CLASSES:
                return None
            allowed += _CHARACTER_CLASSES[named[1]]
            at = named.end()
            continue
        low, at = _read_character(pattern, at)
        high = low
        if pattern[at : at + 1] == "-" and pattern[at + 1 : at + 2] not in ("", "]"):
            high, at = _read_character(pattern, at + 1)
        if not low or not high:
            return None
        # Git takes the low end of a range even where the range is the wrong way round.
        allowed += f"{re.escape(low)}-{re.escape(high if low <= high else low)}"
    return f"(?!/)[{'^' if negated else ''}{allowed}]", at + 1


def _read_character(pattern: str, at: int) -> tuple[str, int]:
    if pattern[at : at + 1] == "\\":
        at += 1
    return pattern[at : at + 1], at + 1
