"""Describe an answer to a question: its sentences, the passages it is from, and what was checked."""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from bunko.types import Answer, Hit


# plain: nothing to verify, such as a greeting, a heading, or "the library does not say".
SentenceStatus = Literal["supported", "partly", "unsupported", "plain"]
# The passage as it is now; not_shown: no such source was shown, so the citation is invented.
# unchecked: the server that it is from does not answer.
CitationState = Literal["same", "moved", "changed", "deleted", "unchecked", "not_shown"]

# Among what a sentence's sources lack: they deny what it claims, or claim what it denies.
DENIAL = "not"


@dataclass(frozen=True, slots=True)
class AnswerSource:
    """A passage that an answer may cite, as it was shown."""

    number: int  # counted from 1
    tool: str
    uri: str
    citation: str  # path:L12-L30
    text: str
    hash: str  # of the document and the lines; empty if the document changed since the search
    place: str = ""  # its page, slide or cells
    title: str = ""
    headings: tuple[str, ...] = ()
    date: str = ""
    trust: str = ""  # web: written by strangers
    server: str = ""  # the MCP server that it is from; empty: this library
    author: str = ""  # of a memo

    @property
    def context(self) -> str:
        """What stands above the passage: its title, date, author and headings."""
        return "\n\n".join(part for part in (self.title, self.stated_date, self.author, *self.headings) if part)

    @property
    def stated_date(self) -> str:
        """The date of the document; one with a time is only that of the file."""
        return "" if "T" in self.date else self.date

    @property
    def location(self) -> str:
        """Where the passage is, for people: with its page, slide or cell if it has one, else with its lines.

        A passage of another MCP server has its name before it.
        """
        location = f"{self.uri}:{self.place}" if self.place else self.citation
        return f"{self.server}: {location}" if self.server else location


@dataclass(frozen=True, slots=True)
class CheckedCitation:
    """A citation of a sentence, and whether it holds."""

    label: str  # as it is written: [1], notes.md:L3
    number: int  # of the source; 0 if no such source was shown
    state: CitationState
    supports: bool = False  # the passage says what the sentence says
    added: bool = False  # not cited by the writer, but found by bunko

    @property
    def holds(self) -> bool:
        """Whether the passage was shown and is unchanged."""
        return self.state in ("same", "moved")


@dataclass(frozen=True, slots=True)
class CheckedSentence:
    """A sentence of an answer, without its citations, and how far the sources support it."""

    text: str
    status: SentenceStatus
    citations: tuple[CheckedCitation, ...] = ()
    missing: tuple[str, ...] = ()  # words, names and numbers that the cited passages lack or contradict, and DENIAL
    best_source: int = 0  # the number of the source that supports it best; 0 if none does
    before: str = ""  # line breaks and the list marker before the sentence

    @property
    def holds(self) -> bool:
        """Whether a reader may rely on the sentence, or need not."""
        return self.status in ("supported", "plain")


@dataclass(slots=True)
class CheckedAnswer:
    """An answer to a question whose sentences were compared with their sources."""

    question: str
    sentences: list[CheckedSentence]
    sources: list[AnswerSource]  # all that were shown, best first
    model: str = ""  # that wrote the answer; empty: the sentences are quoted from the sources
    notices: list[str] = field(default_factory=list)
    prompt_tokens: int = 0  # that the model read and wrote
    answer_tokens: int = 0
    cost: float = 0.0  # by the prices in the settings

    @property
    def is_found(self) -> bool:
        """Whether the library answers the question: some sentence is supported, at least in part."""
        return any(sentence.status in ("supported", "partly") for sentence in self.sentences)

    @property
    def cited_sources(self) -> list[AnswerSource]:
        """The sources that the sentences cite, in order of their numbers."""
        numbers = {citation.number for sentence in self.sentences for citation in sentence.citations if citation.holds}
        return [source for source in self.sources if source.number in numbers]


_MAX_CHARS = 300  # of a text: the cell of a notebook stays short


def html_table(answer: Answer) -> str:
    """Return one row for each hit, and the notices above; a document cannot add markup of its own."""
    notices = "".join(f"<p>{escape(notice)}</p>" for notice in answer.notices)
    head = "".join(f"<th>{name}</th>" for name in ("", "score", "citation", "heading", "text"))
    rows = "".join(_row(number, hit) for number, hit in enumerate(answer.hits, 1))
    caption = f"<caption>{escape(answer.query)}</caption>"
    return f"{notices}<table>{caption}<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def _row(number: int, hit: Hit) -> str:
    text = hit.text if len(hit.text) <= _MAX_CHARS else f"{hit.text[:_MAX_CHARS].rstrip()}…"
    headings = " › ".join(hit.chunk.headings(hit.title))
    cells = (str(number), f"{hit.score:.4f}", hit.citation, headings, text)
    aligned = "".join(f'<td style="text-align: left">{escape(cell)}</td>' for cell in cells)
    return f"<tr>{aligned}</tr>"
