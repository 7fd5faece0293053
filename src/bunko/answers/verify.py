"""Read the sentences and citations of an answer, and verify each by the sources that it names."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from bunko.answers.evidence import Evidence, analyze_passage
from bunko.answers.plain_sentences import claims_nothing
from bunko.answers.support import Support, check_support, find_gaps, support_order
from bunko.search.citations import parse_citation
from bunko.text.normalise import normalise
from bunko.text.sentences import LIST_MARKER, sentence_ranges
from bunko.types.answers import AnswerSource, CheckedCitation, CheckedSentence, CitationState

# [1], [1, 2], [1-3], ［1］, 【1】, [^1], [source 1], 【1†notes】, and what a link to one adds.
_NUMBERS = re.compile(
    r"[\[［【]\^?(?:(?:source|sources|passage|出典|資料)\s*)?(?P<numbers>[\d０-９]{1,3}(?:\s*[,、，;-]\s*[\d０-９]{1,3})*)"
    r"(?:†[^\]］】\n]{0,80})?[\]］】](?:\([^()\s]{0,500}\))?"
)
_LOCATION = re.compile(
    r"(?<![^\s()\[\]（）［］【】`、。])[(\[（［【`]{0,3}"
    r"(?P<location>[^\s()\[\]（）［］【】`、。]+:(?:L\d{1,9}(?:-L?\d{1,9})?|p\d{1,6}))[)\]）］】`]{0,3}"
)
_CODE = re.compile(r"(?ms)^[ \t]*(```+|~~~+).*?(?:^[ \t]*\1[ \t]*$|\Z)|`[^`\n]+`")
_TABLE_ROW = re.compile(r"\n?[ \t]*\|.*\|[ \t]*\Z")
_TABLE_RULE = re.compile(r"\n?[ \t]*\|[-|: \t]+\|[ \t]*\Z")
_RANGE = re.compile(r"(\d+)\s*-\s*(\d+)")
_MAX_RANGE = 20
_SPACE_BEFORE_STOP = re.compile(r"[ \t]+(?=[.,;:!?。、！？])")
_AFTER_QUOTATION = re.compile(r"[とはがをにのもでっ]")
_BLANK_LINE = re.compile(r"\n[ \t\u3000]*\n")


@dataclass(frozen=True, slots=True)
class GivenCitation:
    """A citation as the writer of an answer gave it."""

    label: str
    number: int  # of the source; 0 if none was shown for it


@dataclass(slots=True)
class AnswerSentence:
    """A sentence of an answer with its own citations, or those it shares."""

    text: str
    before: str
    citations: list[GivenCitation] = field(default_factory=list)
    is_layout: bool = False  # a heading, the header of a table, or a line that introduces a list
    block: int = 0  # the paragraph or list item it is in
    shares_citations: bool = False  # they stand at another sentence of the paragraph or item


def split_answer(text: str, sources: Sequence[AnswerSource]) -> list[AnswerSentence]:
    """Return the sentences of an answer."""
    stripped, located = _take_citations(text.replace("\r\n", "\n"), sources)
    sentences: list[AnswerSentence] = []
    ends: list[int] = []
    block = 0
    is_item, skipped = False, ""
    for start, end in _ranges(stripped):
        raw = skipped + stripped[start:end]
        if not raw.strip():
            skipped = raw
            continue
        sentence, skipped = _build_sentence(raw), ""
        starts_item = "\n" in sentence.before and bool(sentence.before.strip() or _TABLE_ROW.match(raw))
        if _BLANK_LINE.search(sentence.before) or starts_item or (is_item and "\n" in sentence.before) or not sentences:
            block += 1
        is_item = starts_item or (is_item and "\n" not in sentence.before)
        sentence.block = block
        sentences.append(sentence)
        ends.append(end - len(raw) + len(raw.rstrip()))
    for offset, citations in located:
        index = next((index for index, end in enumerate(ends) if offset <= end), len(ends) - 1)
        if sentences:
            sentences[index].citations += [
                citation for citation in citations if citation not in sentences[index].citations
            ]
    for header, rule in pairwise(sentences):
        if _TABLE_RULE.match(rule.text) and header.text.startswith("|"):
            header.is_layout = True
    _share_citations(sentences)
    return sentences


def _ranges(text: str) -> Iterator[tuple[int, int]]:
    """Yield the ranges of sentences; a code block is one."""
    position = 0
    for block in _CODE.finditer(text):
        if block[1]:
            yield from _sentence_ranges(text, position, block.start())
            yield block.start(), block.end()
            position = block.end()
    yield from _sentence_ranges(text, position, len(text))


def _sentence_ranges(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    pending = -1  # where a sentence begins that goes on after its quotation: 彼は「終わった。」と言った。
    for first, last in sentence_ranges(text[start:end]):
        first, last = start + first if pending < 0 else pending, start + last
        if text[last - 1 : last] in ("」", "』") and _AFTER_QUOTATION.match(text, last, end):
            pending = first
            continue
        pending = -1
        yield first, last


def _build_sentence(raw: str) -> AnswerSentence:
    marker = None if _TABLE_ROW.match(raw.rstrip()) else LIST_MARKER.match(raw)
    leading = marker.end() if marker else len(raw) - len(raw.lstrip())
    body = _SPACE_BEFORE_STOP.sub("", raw[leading:].strip())
    before = raw[:leading]
    is_layout = "#" in before or body.endswith((":", "：")) or _TABLE_RULE.match(raw.rstrip()) is not None
    return AnswerSentence(body, before, is_layout=is_layout)


def _share_citations(sentences: Sequence[AnswerSentence]) -> None:
    """Let sentences without citations share those at the end of their paragraph, or of the line above their list."""
    following: AnswerSentence | None = None
    for sentence in reversed(sentences):
        if sentence.citations:
            following = sentence
        elif following is not None and following.block == sentence.block:
            sentence.citations, sentence.shares_citations = list(following.citations), True
    lead: AnswerSentence | None = None
    for sentence in sentences:
        if sentence.text.endswith((":", "：")):
            lead = sentence if sentence.citations else None
        elif lead is not None and sentence.before.strip() and not sentence.citations:
            sentence.citations, sentence.shares_citations = list(lead.citations), True
        elif not sentence.before.strip():
            lead = None


def _take_citations(text: str, sources: Sequence[AnswerSource]) -> tuple[str, list[tuple[int, list[GivenCitation]]]]:
    """Return a text without its citations, and where in it they stood."""
    code_ranges = [
        (match.start(), match.end()) for match in _CODE.finditer(text) if not _is_location(match[0], sources)
    ]
    matches = sorted(_find_citations(text, sources), key=lambda item: (item[0], -item[1]))
    parts: list[str] = []
    located: list[tuple[int, list[GivenCitation]]] = []
    position = length = 0
    for start, end, citations in matches:
        if start < position or any(low <= start < high for low, high in code_ranges):
            continue
        text_before = text[position:start]
        at_line_start = not text_before.rpartition("\n")[2].strip() and ("\n" in text_before or not parts)
        # Spaces before a citation go with it, so that the full stop after it is next to its word again.
        text_before = text_before if at_line_start else text_before.rstrip(" \t")
        parts.append(text_before)
        length += len(text_before)
        located.append((length + 1 if at_line_start else length, citations))
        position = end
    parts.append(text[position:])
    return "".join(parts), located


def _is_location(code: str, sources: Sequence[AnswerSource]) -> bool:
    inside = code.strip("`")
    return any(inside in (source.citation, source.location) for source in sources) or bool(_LOCATION.fullmatch(inside))


def _find_citations(text: str, sources: Sequence[AnswerSource]) -> Iterator[tuple[int, int, list[GivenCitation]]]:
    source_numbers = {source.number for source in sources}
    for match in _NUMBERS.finditer(text):
        numbers = _parse_numbers(normalise(match["numbers"]))
        yield (
            match.start(),
            match.end(),
            [GivenCitation(f"[{number}]", number if number in source_numbers else 0) for number in numbers],
        )
    for source in sources:
        for location in {source.citation, source.location}:
            for match in re.finditer(rf"[(\[（［【`]{{0,3}}{re.escape(location)}(?![\d-])[)\]）］】`]{{0,3}}", text):
                yield match.start(), match.end(), [GivenCitation(location, source.number)]
    for match in _LOCATION.finditer(text):
        yield match.start(), match.end(), [GivenCitation(match["location"], _find_source(match["location"], sources))]


def _parse_numbers(text: str) -> list[int]:
    text = _RANGE.sub(lambda match: _expand(int(match[1]), int(match[2])), text)
    return list(dict.fromkeys(int(number) for number in re.findall(r"\d+", text)))


def _expand(first: int, last: int) -> str:
    if not first <= last <= first + _MAX_RANGE:
        return f"{first},{last}"
    return ",".join(map(str, range(first, last + 1)))


def _find_source(location: str, sources: Sequence[AnswerSource]) -> int:
    """Return the number of the source that a citation of some of its lines means; 0 if there is none."""
    cited = parse_citation(location)
    for source in sources:
        passage = parse_citation(source.citation)
        if (
            cited
            and passage
            and cited.uri == passage.uri
            and passage.first <= cited.first
            and cited.last <= passage.last
        ):
            return source.number if cited.first else 0
    return 0


_MAX_CHECKED_CHARS = 1000


def verify_sentences(
    text: str,
    sources: Sequence[AnswerSource],
    check_source: Callable[[AnswerSource], CitationState],
    *,
    question: str = "",
) -> list[CheckedSentence]:
    """Return the sentences of an answer, each compared with the sources that it cites.

    A source that a sentence does not cite is added to its citations if it says what no cited source does.
    """
    return _Verifier(sources, check_source, question).verify(split_answer(text, sources))


class _Verifier:
    """Compares sentences with the sources of one answer."""

    def __init__(
        self, sources: Sequence[AnswerSource], check_source: Callable[[AnswerSource], CitationState], question: str
    ) -> None:
        self._sources = {source.number: source for source in sources}
        self._check_source, self._question = check_source, question
        self._states: dict[int, CitationState] = {}
        self._supports: dict[tuple[str, tuple[int, ...]], Support] = {}

    def verify(self, sentences: Sequence[AnswerSentence]) -> list[CheckedSentence]:
        return [self._verify_sentence(sentence) for sentence in sentences]

    def _verify_sentence(self, sentence: AnswerSentence) -> CheckedSentence:
        if len(sentence.text) > _MAX_CHECKED_CHARS:  # data, or an attempt to keep us busy
            return CheckedSentence(sentence.text, "unsupported", before=sentence.before)
        if self._is_plain(sentence):
            return CheckedSentence(sentence.text, "plain", before=sentence.before)
        single = {number: self._support(sentence.text, [number]) for number in self._sources}
        best = max(single, key=lambda number: support_order(single[number]), default=0)
        cited = [citation.number for citation in sentence.citations if citation.number and self._holds(citation.number)]
        support = self._support(sentence.text, cited)
        citations = [
            CheckedCitation(
                citation.label,
                citation.number,
                self._state(citation.number) if citation.number else "not_shown",
                supports=citation.number in cited and self._contributes(citation.number, cited, support, single),
            )
            for citation in sentence.citations
        ]
        status, missing = support.status, support.missing if cited or not best else single[best].missing
        if status != "supported" and best and single[best].status == "supported" and self._holds(best):
            status, missing = "supported", ()
            citations.append(CheckedCitation(f"[{best}]", best, self._state(best), supports=True, added=True))
        if sentence.shares_citations:  # the citations of a whole paragraph: those that are not about this sentence go
            citations = [citation for citation in citations if citation.supports or not citation.number] or citations
        best_source = best if best and single[best].status != "unsupported" else 0
        return CheckedSentence(
            sentence.text, status, tuple(citations), missing if status != "supported" else (), best_source,
            sentence.before,
        )  # fmt: skip

    def _contributes(self, number: int, cited: Sequence[int], support: Support, single: dict[int, Support]) -> bool:
        """Return whether a source supports a sentence alone, or a part of one that all of its sources support."""
        if single[number].status == "supported":
            return True
        return support.status == "supported" and len(cited) > 1 and single[number].status == "partly"

    def _support(self, text: str, numbers: Sequence[int]) -> Support:
        key = text, tuple(numbers)
        if key not in self._supports:
            self._supports[key] = check_support(text, [self._evidence(number) for number in numbers])
        return self._supports[key]

    def _evidence(self, number: int) -> Evidence:
        source = self._sources[number]
        return analyze_passage(source.text, source.context)

    def _holds(self, number: int) -> bool:
        return self._state(number) in ("same", "moved")

    def _state(self, number: int) -> CitationState:
        if number not in self._states:
            self._states[number] = self._check_source(self._sources[number])
        return self._states[number]

    def _is_plain(self, sentence: AnswerSentence) -> bool:
        """Return whether there is nothing to verify; names and numbers must be in a source or in the question."""
        known = [*(self._evidence(number) for number in self._sources), analyze_passage(self._question)]
        return claims_nothing(sentence.text, is_layout=sentence.is_layout, known=known) and not find_gaps(
            sentence.text, known
        )
