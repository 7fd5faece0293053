"""Verify an answer: was each source shown, is it unchanged, and does it say what the sentence says?"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bunko.answers.answer_text import AnswerSentence, split_answer
from bunko.answers.evidence import Evidence, analyze_passage
from bunko.answers.plain_sentences import claims_nothing
from bunko.answers.support import Support, check_support, find_gaps, support_order
from bunko.types.answers import AnswerSource, CheckedCitation, CheckedSentence, CitationState

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
