"""Number the passages that tools return, so that a model can cite them and the answer can be verified."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from bunko.interfaces.chat.servers import ToolOutput
from bunko.interfaces.text import UNTRUSTED_NOTE, more_results_hint, new_mark, single_line, wrap_excerpt
from bunko.library.tools.catalog import ADDRESS_SCHEME
from bunko.search.citations import parse_citation
from bunko.types.answers import AnswerSource

_MAX_RESULTS = 100  # of one call
_CURSOR = re.compile(r"[\w.:+/=-]{1,200}", re.ASCII)


class ShownSources:
    """The passages that a model was shown in a conversation, numbered from 1."""

    def __init__(self, sources: Iterable[AnswerSource] = ()) -> None:
        self._sources = {source.number: source for source in sources}
        self._numbers = {_key(source): source.number for source in self._sources.values()}
        self._last_number = max(self._sources, default=0)  # a number is given once, even if its source is forgotten

    def __iter__(self) -> Iterator[AnswerSource]:
        return iter(self._sources.values())

    def drop_before(self, number: int) -> None:
        """Forget the sources of exchanges that the model no longer sees."""
        self._keep(lambda key: key >= number)

    def drop_from(self, number: int) -> None:
        """Forget the sources of a question that got no answer."""
        self._keep(lambda key: key < number)
        self._last_number = min(self._last_number, number - 1)

    def _keep(self, is_kept: Callable[[int], bool]) -> None:
        self._sources = {number: source for number, source in self._sources.items() if is_kept(number)}
        self._numbers = {key: number for key, number in self._numbers.items() if is_kept(number)}

    @property
    def next_number(self) -> int:
        """The number of the next source."""
        return self._last_number + 1

    def message_for(self, tool_name: str, output: ToolOutput, *, server: str = "") -> str:
        """Return the output of a tool for the model: data between marks, each passage with its number."""
        if output.is_error:
            return _fence(f"{tool_name} failed. {UNTRUSTED_NOTE}", [("", output.text)])
        passages = [passage for passage in _passages(output) if passage["text"].strip()]
        if not passages:
            return _fence(f"No source to cite. {UNTRUSTED_NOTE}", [("", output.text)])
        sources = [self._add({**passage, "server": server}) for passage in passages]
        note = f"Cite what you use by its number, as in [{sources[0].number}]. {UNTRUSTED_NOTE}"
        blocks = []
        for source in sources:  # its number, its place, and what is known about it
            about = " > ".join(source.headings) or source.title
            facts = map(single_line, (source.citation, about, source.author, source.stated_date))
            blocks.append((f"[{source.number}] " + " | ".join(filter(None, facts)), source.text))
        shown = _fence(note, blocks)
        cursor = str((output.structured or {}).get("next_cursor") or "")
        # A text without its end looks whole. What is not a cursor may be an attempt to say something outside the marks.
        return f"{shown}\n\n{more_results_hint(cursor)}" if _CURSOR.fullmatch(cursor) else shown

    def _add(self, passage: Mapping[str, Any]) -> AnswerSource:
        source = AnswerSource(self.next_number, **passage)
        number = self._numbers.setdefault(_key(source), source.number)
        self._last_number = max(self._last_number, number)
        return self._sources.setdefault(number, source)


def _key(source: AnswerSource) -> tuple[str, ...]:
    # Without the tool, whose name may be the one that assistants see: the hash is of the whole document.
    return source.server, source.citation, source.hash, source.text


def _passages(output: ToolOutput) -> Iterator[dict[str, Any]]:
    """Yield the passages that a tool of bunko found or read, here or on another server."""
    structured = output.structured or {}
    results = structured.get("results")
    for result in (results if isinstance(results, list) else [structured])[:_MAX_RESULTS]:
        text = (result.get("content") or result.get("text")) if isinstance(result, dict) else None
        if isinstance(text, str) and result.get("citation"):
            citation, address = parse_citation(str(result["citation"])), str(result.get("uri") or "")
            host = urlsplit(address).netloc if address.startswith(f"{ADDRESS_SCHEME}://") else ""
            yield {
                # As assistants see it; the address of the document has it too.
                "tool": str(result.get("tool") or host or structured.get("tool") or ""),
                "uri": str(
                    result.get("path") or result.get("source") or (citation and citation.uri) or result["citation"]
                ),
                "citation": str(result["citation"]),
                "text": text,
                "hash": str(result.get("hash") or ""),
                "place": str(result.get("place") or ""),
                "title": str(result.get("title") or ""),
                "headings": _headings(result),
                "date": str(result.get("date") or ""),
                "trust": str(result.get("trust") or ""),
                "author": str(result.get("author") or ""),
            }


def _headings(result: Mapping[str, Any]) -> tuple[str, ...]:
    headings = result.get("headings") or result.get("heading_path")
    if isinstance(headings, list):
        return tuple(map(str, headings))
    heading = str(result.get("heading") or "").strip("#*= ")  # as in the source, with its marks
    return (heading,) if heading else ()


def _fence(note: str, blocks: list[tuple[str, str]]) -> str:
    mark = new_mark()
    return "\n\n".join([note, *(wrap_excerpt(mark, text, opening) for opening, text in blocks)])
