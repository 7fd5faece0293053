"""Match paths against .gitignore patterns."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

_ANY_FOLDERS = "**"  # the one segment that spans several path components
_STAR = "*"
_MAX_PATTERN_CHARS = 4096  # as long as a path may be
_BATCH_SIZE = 100  # patterns in one expression; few files have more
_Matcher = tuple[re.Pattern[str], tuple[int, ...]]  # an expression, and the number of the pattern in each of its groups
# A letter comes first, so that v1.2 names no ending.
_NAMED_ENDING = re.compile(r"(?<=[^/.])\.[a-zA-Z]\w{0,15}\Z")
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
    """The patterns of one .gitignore, of which the last match decides.

    A path is matched by itself and not by its parents: a walk down the tree has checked each of them before.
    Git does the same, so that the pattern of one .gitignore for a folder does not override the pattern of
    another for a file in it. Unlike in git, which compares bytes, `?` and `[…]` match a character.
    """

    def __init__(self, lines: Iterable[str]) -> None:
        self._lines = tuple(lines)
        self._positive: list[bool] = []
        names: list[tuple[int, str, bool]] = []
        paths: list[tuple[int, str, bool]] = []
        for line in self._lines:
            pattern = line.rstrip(" ")
            backslashes = len(pattern) - len(pattern.rstrip("\\"))
            if pattern != line and backslashes % 2 == 1:  # the first of the spaces is escaped
                pattern += " "
            if pattern.startswith("#") or len(pattern) > _MAX_PATTERN_CHARS:
                continue
            is_positive = not pattern.startswith("!")
            pattern = pattern if is_positive else pattern[1:]
            folders_only = pattern.endswith("/")
            pattern = pattern.removesuffix("/")
            group = paths if "/" in pattern else names
            regex = _glob_regex(pattern.removeprefix("/"))
            if regex is not None:
                group.append((len(self._positive), regex, folders_only))
                self._positive.append(is_positive)
        self._file_matchers = _combine_globs(names, is_folder=False), _combine_globs(paths, is_folder=False)
        self._folder_matchers = _combine_globs(names, is_folder=True), _combine_globs(paths, is_folder=True)
        self.has_file_patterns = any(self._file_matchers)  # or else all of them are for folders

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PathPatterns) and self._lines == other._lines

    def __hash__(self) -> int:
        return hash(self._lines)

    def verdict(self, path: str, name: str, *, is_folder: bool) -> bool | None:
        """Return False if a negated (`!`) pattern decides about a path, True for another one, None if none matches.

        `path` is relative to the .gitignore and ends in `name`.
        """
        names, paths = self._folder_matchers if is_folder else self._file_matchers
        last = max(_last_match(names, name), _last_match(paths, path))
        return None if last < 0 else self._positive[last]


def named_endings(patterns: Iterable[str]) -> tuple[str, ...]:
    """Return the endings that patterns name, in lower case: .py for *.py or src/main.py, none for a folder."""
    matches = (_NAMED_ENDING.search(pattern.strip()) for pattern in patterns if not pattern.startswith("!"))
    return tuple(dict.fromkeys(match[0].lower() for match in matches if match))


# Every scan of a folder pays for each of them.
MAX_PATTERNS = 20_000


@lru_cache(maxsize=256)
def parse_patterns(text: str) -> PathPatterns:
    """Return the patterns of a .gitignore, cached between scans."""
    lines = text.removeprefix("\ufeff").split("\n", MAX_PATTERNS)[:MAX_PATTERNS]
    return PathPatterns(line.removesuffix("\r") for line in lines)


def _combine_globs(globs: list[tuple[int, str, bool]], *, is_folder: bool) -> list[_Matcher]:
    # One expression for many patterns, the last first: the number of the matching group tells which pattern decides,
    # with one call instead of one for each pattern. Other threads have to wait during a call, so it has a limit.
    patterns = [(line, regex) for line, regex, folders_only in reversed(globs) if is_folder or not folders_only]
    return [
        (
            re.compile("|".join(f"({regex})" for _, regex in batch), re.DOTALL),
            (-1, *(line for line, _ in batch)),
        )
        for start in range(0, len(patterns), _BATCH_SIZE)
        if (batch := patterns[start : start + _BATCH_SIZE])
    ]


def _last_match(matchers: list[_Matcher], text: str) -> int:
    """Return the number of the last pattern that matches, or -1."""
    for expression, numbers in matchers:
        if match := expression.fullmatch(text):
            return numbers[match.lastindex or 0]
    return -1


def _glob_regex(pattern: str) -> str | None:
    """Translate a glob to a regular expression; None if it can never match."""
    segments = _split_segments(pattern)
    if segments is None or not pattern:
        return None
    runs: list[list[str]] = [[]]
    for segment in segments:
        if segment == [_ANY_FOLDERS]:
            runs.append([])
        else:
            runs[-1].append(_segment_regex(segment))
    first, *following = ["/".join(run) for run in runs]
    if not following:
        return first
    *middle, last = following
    # Atomic groups: the leftmost match of a run is as good as any later one, and without backtracking a pattern
    # with many stars cannot take exponential time.
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
    first, *following = parts
    if not following:
        return first
    *middle, last = following
    return first + "".join(f"(?>[^/]*?{part})" for part in middle) + f"[^/]*{last}"


def _split_segments(pattern: str) -> list[list[str]] | None:
    """Split a glob at its slashes into lists of expressions for single characters and runs of stars."""
    segments: list[list[str]] = [[]]
    position = 0
    while position < len(pattern):
        character = pattern[position]
        position += 1
        if character == "/":
            segments.append([])
        elif character == _STAR:
            start = position - 1
            while pattern[position : position + 1] == _STAR:
                position += 1
            segments[-1].append(_STAR if position - start == 1 else _ANY_FOLDERS)
        elif character == "?":
            segments[-1].append("[^/]")
        elif character == "[":
            bracket = _bracket_regex(pattern, position)
            if bracket is None:
                return None
            expression, position = bracket
            segments[-1].append(expression)
        elif character == "\\":
            if position == len(pattern):
                return None
            segments[-1].append(re.escape(pattern[position]))
            position += 1
        else:
            segments[-1].append(re.escape(character))
    return segments


def _bracket_regex(pattern: str, position: int) -> tuple[str, int] | None:
    """Translate a bracket expression and return it with its end; None if it is never closed."""
    negated = pattern[position : position + 1] in ("!", "^")
    position += negated
    start = position
    allowed = ""
    while pattern[position : position + 1] != "]" or position == start:
        end = pattern.find("]", position + 2) if pattern.startswith("[:", position) else -1
        if end > position + 2 and pattern[end - 1] == ":":
            name = pattern[position + 2 : end - 1]
            if name not in _CHARACTER_CLASSES:
                return None
            allowed += _CHARACTER_CLASSES[name]
            position = end + 1
            continue
        low, position = _read_character(pattern, position)
        high = low
        if pattern[position : position + 1] == "-" and pattern[position + 1 : position + 2] not in ("", "]"):
            high, position = _read_character(pattern, position + 1)
        if not low or not high:
            return None
        # For a reversed range, git matches only its first character.
        allowed += f"{re.escape(low)}-{re.escape(high if low <= high else low)}"
    return f"(?!/)[{'^' if negated else ''}{allowed}]", position + 1


def _read_character(pattern: str, position: int) -> tuple[str, int]:
    if pattern[position : position + 1] == "\\":
        position += 1
    return pattern[position : position + 1], position + 1
