"""Leave the places of a server's files out of messages to callers who may not know them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from bunko.errors import BunkoError
from bunko.types import Problem, Report
from bunko.types.records import IndexState

_HIDDEN = "…"
_FLAG = r" --(?:library|database|docs-dir|data-dir|config)"
_QUOTED = r"(?P<quote>['\"])(?:~?/|[A-Za-z]:[\\/]|\\\\)(?:(?!(?P=quote)).)*(?P=quote)"
# An absolute path. In an address, its slashes follow a colon, a slash or a letter; /api is an address of this server.
_BARE = r"(?<![\w.:/\\~…])(?:~?/(?!api/)[^\s'\"/]+/|~/|[A-Za-z]:[\\/]|\\\\)[^\s'\",;]*"
_PLACE = re.compile(rf"{_FLAG} (?:{_QUOTED}|\S+)|{_QUOTED.replace('quote', 'mark')}|{_BARE}")


class HiddenPlaces:
    """What a caller may not know of the places of files, in what is said to it."""

    def __init__(self, hidden: Sequence[str] = (), visible: Sequence[str] = (), *, hides_nothing: bool = False) -> None:
        # Paths without quotes may have blanks, so those that are known are looked for as they are.
        self._hidden = sorted((place for place in hidden if re.search(r"[/\\].", place)), key=len, reverse=True)
        self._visible, self._hides_nothing = tuple(filter(None, visible)), hides_nothing

    def text(self, text: str) -> str:
        """Return a message without these places."""
        if self._hides_nothing or not text:
            return text
        for place in self._hidden:
            text = text.replace(place, f"/{_HIDDEN}/")
        return _PLACE.sub(self._hide, text)

    def texts(self, texts: Sequence[str]) -> list[str]:
        """Return messages without these places."""
        return [self.text(text) for text in texts]

    def problems(self, problems: Sequence[Problem]) -> list[Problem]:
        """Return problems without these places."""
        return [replace(problem, uri=self.text(problem.uri), reason=self.text(problem.reason)) for problem in problems]

    def index_state(self, state: IndexState) -> IndexState:
        """Return the state of an index without these places."""
        return replace(state, problem=self.text(state.problem), hint=self.text(state.hint))

    def report(self, report: Report) -> Report:
        """Return the report of an import without these places."""
        failures = [
            replace(failure, message=self.text(failure.message), hint=self.text(failure.hint))
            for failure in report.failures
        ]
        return replace(
            report,
            problems=self.problems(report.problems),
            notices=self.texts(report.notices),
            skipped_folders=self.texts(report.skipped_folders),
            failures=failures,
        )

    def hide_in_error(self, error: BunkoError) -> None:
        """Leave these places out of an error."""
        error.message, error.hint = self.text(error.message), self.text(error.hint)
        error.args = (error.message,)

    def _hide(self, match: re.Match[str]) -> str:
        if match[0].startswith(" --"):
            return ""
        if match[0].strip("'\"").startswith(self._visible):
            return match[0]
        mark = match["mark"] or ""
        end = "" if mark else match[0][len(match[0].rstrip(".:)")) :]  # of the sentence
        return f"{mark}{_HIDDEN}{mark}{end}"
