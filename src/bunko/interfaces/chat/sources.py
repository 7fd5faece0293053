"""Number the passages that tools return, so that a model can cite them and the answer can be verified."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from bunko.interfaces.chat.servers import ToolOutput
from bunko.interfaces.text import UNTRUSTED_NOTE, new_mark, single_line, wrap_excerpt
from bunko.search.citations import parse_citation
from bunko.types.answers import AnswerSource

_MAX_RESULTS = 100  # of one call


class ShownSources:
    """The passages that a model was shown in a conversation, numbered from 1."""

    def __init__(self) -> None:
        self._sources: dict[int, AnswerSource] = {}
        self._numbers: dict[tuple[str, str, str], int] = {}  # by tool, citation and text

    def __iter__(self) -> Iterator[AnswerSource]:
        return iter(self._sources.values())

    def drop_before(self, number: int) -> None:
        """Forget the sources of exchanges that the model no longer sees."""
        self._sources = {key: source for key, source in self._sources.items() if key >= number}
        self._numbers = {key: value for key, value in self._numbers.items() if value >= number}

    @property
    def next_number(self) -> int:
        """The number of the next source."""
        return max(self._sources, default=0) + 1

    def message_for(self, tool_name: str, output: ToolOutput) -> str:
        """Return the output of a tool for the model: data between marks, each passage with its number."""
        if output.is_error:
            return f"{tool_name} failed: {output.text}"
        passages = [passage for passage in _passages(output) if passage["text"].strip()]
        if not passages:
            return _fence(f"No source to cite. {UNTRUSTED_NOTE}", [("", output.text)])
        numbers = [self._add(passage) for passage in passages]
        blocks = [
            (f"[{number}] {single_line(passage['citation'])}", passage["text"])
            for number, passage in zip(numbers, passages, strict=True)
        ]
        return _fence(f"Cite what you use by its number, as in [{numbers[0]}]. {UNTRUSTED_NOTE}", blocks)

    def _add(self, passage: Mapping[str, Any]) -> int:
        key = (passage["tool"], passage["citation"], passage["text"])
        if key not in self._numbers:
            number = self.next_number
            self._numbers[key] = number
            self._sources[number] = AnswerSource(number, **passage)
        return self._numbers[key]


def _passages(output: ToolOutput) -> Iterator[dict[str, Any]]:
    """Yield the passages in the results of a tool of bunko, here or on another server."""
    results = (output.structured or {}).get("results")
    for result in (results if isinstance(results, list) else [])[:_MAX_RESULTS]:
        text = (result.get("content") or result.get("text")) if isinstance(result, dict) else None
        if isinstance(text, str) and result.get("citation"):
            headings = result.get("headings")
            yield {
                "tool": str(result.get("tool") or ""),
                "uri": _document_uri(result),
                "citation": str(result["citation"]),
                "text": text,
                "hash": str(result.get("hash") or ""),
                "place": str(result.get("place") or ""),
                "title": str(result.get("title") or ""),
                "headings": tuple(map(str, headings)) if isinstance(headings, list) else (),
                "date": str(result.get("date") or ""),
                "trust": str(result.get("trust") or ""),
            }


def _document_uri(result: Mapping[str, Any]) -> str:
    """Return the path or URL of a result's document; short results name it in their citation only."""
    citation = parse_citation(str(result["citation"]))
    return str(result.get("path") or result.get("source") or (citation and citation.uri) or result["citation"])


def _fence(note: str, blocks: list[tuple[str, str]]) -> str:
    mark = new_mark()
    return "\n\n".join([note, *(wrap_excerpt(mark, text, opening) for opening, text in blocks)])
