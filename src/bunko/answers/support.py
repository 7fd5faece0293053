"""Check whether a passage says what a sentence claims: its words, names and numbers, in either language.

Words are compared, not meanings. A sentence that says the same in entirely different words is not recognised as
supported, and roles that word order alone expresses may be confused. So the checks prefer to doubt: a number, a name, a
negation or a comparison that differs is never supported, however many other words agree.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from bunko.answers.clauses import Clause, Word
from bunko.answers.contradictions import find_conflicts, names_of_others
from bunko.answers.evidence import Evidence, is_across, is_japanese, is_said, mark_names
from bunko.answers.statements import analyze_clauses
from bunko.answers.word_match import SHARED_CHARACTERS, best_match
from bunko.text import bridge

SupportStatus = Literal["supported", "partly", "unsupported"]

# Tuned on one half of the judged pairs in tests/fixtures/answers, measured on the other: see docs/ask.md.
MIN_SUPPORTED = 0.7  # the weight of the words that are found, as a share of all
MIN_SUPPORTED_ACROSS = 0.6  # if the passage is in the other language: many words have no known translation
MIN_PARTLY = 0.4
_ELSEWHERE = 0.7  # factor for a word that stands elsewhere in the passage, or in the headings above it
# What an answer may have before its first sentence, which claims nothing.
_LABEL = re.compile(
    r"\A[*_\s]*(?:回答|答え?|結論|要約|まとめ|補足|(?i:answer|a|conclusion|summary|in short|note))[*_]*\s*[:：][*_]*\s*"
)
_UNKNOWN_WEIGHT = 0.35  # of a word without a known translation, in a passage in the other language


@dataclass(frozen=True, slots=True)
class Support:
    """What a passage says about a sentence."""

    status: SupportStatus
    coverage: float  # the share of its words that the passage has, 0 to 1
    missing: tuple[str, ...] = ()  # words, names and numbers that it lacks, or says otherwise


@dataclass(slots=True)
class _Comparison:
    """A clause of a sentence beside the part of a passage that is most like it."""

    coverage: float
    threshold: float = MIN_SUPPORTED
    missing_words: list[str] = field(default_factory=list)
    missing_names: list[str] = field(default_factory=list)
    missing_quantities: list[str] = field(default_factory=list)
    conflicts: list[str] = field(default_factory=list)

    @property
    def is_contradicted(self) -> bool:
        """Whether a number or a statement of the passage differs."""
        return bool(self.missing_quantities or self.conflicts)

    @property
    def missing(self) -> list[str]:
        return list(
            dict.fromkeys([*self.missing_quantities, *self.conflicts, *self.missing_names, *self.missing_words])
        )

    @property
    def is_supported(self) -> bool:
        """Whether the passage says all that counts."""
        return not self.is_contradicted and not self.missing_names and self.coverage >= self.threshold


def check_support(sentence: str, passages: Sequence[Evidence]) -> Support:
    """Return how far any of some passages supports a sentence, or all of them together do, clause by clause."""
    clauses = analyze_clauses(_LABEL.sub("", sentence))
    if not clauses or not passages:
        return Support("unsupported", 0.0)
    best = max((_check_passage(clauses, passage) for passage in passages), key=support_order)
    if best.status == "supported" or len(passages) == 1 or len(clauses) == 1:
        return best
    parts = [max((_check_passage((clause,), passage) for passage in passages), key=support_order) for clause in clauses]
    if all(part.status == "supported" for part in parts):
        return Support("supported", min(part.coverage for part in parts))
    return best


def find_gaps(sentence: str, passages: Sequence[Evidence], *, amounts: bool = True) -> list[str]:
    """Return the names and numbers of a sentence that none of some passages has.

    Without `amounts`, only numbers that name something count, such as a version: 30 days may be a condition.
    """
    everywhere = [clause for passage in passages for clause in (*passage.clauses, *passage.context)]
    quantities = [quantity for clause in everywhere for quantity in clause.quantities]
    gaps = []
    for clause in analyze_clauses(sentence):
        gaps += [
            quantity.text
            for quantity in clause.quantities
            if not is_said(quantity, quantities) and (amounts or (quantity.kind == "amount" and not quantity.unit))
        ]
        gaps += [name.text for name in clause.names if not best_match(name, everywhere)[0]]
    return gaps


def support_order(support: Support) -> tuple[int, float]:
    """Return a key that sorts the best support last."""
    return ("unsupported", "partly", "supported").index(support.status), support.coverage


def _check_passage(clauses: Sequence[Clause], passage: Evidence) -> Support:
    clauses = [mark_names(clause, passage.names) for clause in clauses]
    comparisons = [_compare(clause, passage) for clause in clauses]
    joined = _joined(clauses)
    whole = _compare(joined, passage)
    # Of a sentence about one name, all clauses are about it.
    names = {name.spellings: name for clause in clauses for name in clause.names}
    misplaced = [name.text for name in names_of_others([*names.values()], joined, passage)]
    is_contradicted = any(comparison.is_contradicted for comparison in comparisons) or (
        len(names) == 1 and bool(misplaced)
    )
    missing = tuple(dict.fromkeys(item for comparison in comparisons for item in comparison.missing))
    if len(names) == 1:
        missing = tuple(dict.fromkeys((*missing, *misplaced)))
    has_names = not any(comparison.missing_names for comparison in comparisons)
    if whole.coverage >= whole.threshold and has_names and not is_contradicted:
        return Support("supported", whole.coverage, tuple(whole.missing_words))
    if any(comparison.is_supported for comparison in comparisons) and len(clauses) > 1:
        return Support("partly", whole.coverage, missing)
    if whole.coverage >= MIN_PARTLY and not is_contradicted:
        return Support("partly", whole.coverage, missing)
    return Support("unsupported", whole.coverage, missing)


def _joined(clauses: Sequence[Clause]) -> Clause:
    return Clause(
        " ".join(clause.text for clause in clauses),
        tuple(word for clause in clauses for word in clause.words),
        tuple(quantity for clause in clauses for quantity in clause.quantities),
        sum(clause.negations for clause in clauses),
    )


def _compare(claim: Clause, passage: Evidence) -> _Comparison:
    """Compare a clause with the sentence of a passage, or two sentences in a row, that has most of it."""
    if not passage.windows:
        return _Comparison(0.0, missing_words=[word.text for word in claim.words])
    strengths = [passage.strengths(word) for word in claim.words]
    elsewhere = [
        max([best_match(word, passage.context)[0], *by_clause.values()])
        for word, by_clause in zip(claim.words, strengths, strict=True)
    ]
    window = [passage.clauses[number] for number in _best_window(claim, strengths, passage)]
    comparison = _Comparison(0.0, MIN_SUPPORTED_ACROSS if is_across(claim, window) else MIN_SUPPORTED)
    total = matched = 0.0
    for word, outside in zip(claim.words, elsewhere, strict=True):
        strength = max(best_match(word, window)[0], _ELSEWHERE * outside)
        weight = word.weight
        if not strength and _is_unknown(word, window):
            weight *= _UNKNOWN_WEIGHT
        total += weight
        matched += weight * strength
        if strength < _ELSEWHERE * SHARED_CHARACTERS:
            (comparison.missing_names if word.is_name else comparison.missing_words).append(word.text)
    quantities = [quantity for clause in (*window, *passage.context) for quantity in clause.quantities]
    for quantity in claim.quantities:
        is_found = is_said(quantity, quantities)
        total, matched = total + 1, matched + is_found
        if not is_found:
            comparison.missing_quantities.append(quantity.text)
    comparison.coverage = matched / total if total else 0.0
    comparison.conflicts += find_conflicts(claim, window, passage)
    return comparison


def _best_window(claim: Clause, strengths: Sequence[dict[int, float]], passage: Evidence) -> range:
    """Return the numbers of the clauses that have most of a claim, in a sentence or two; `strengths` is by word."""
    scores = [0.0] * len(passage.windows)
    for word, by_clause in zip(claim.words, strengths, strict=True):
        best: dict[int, float] = {}
        for clause_number, strength in by_clause.items():
            for number in passage.windows_of_clauses[clause_number]:
                best[number] = max(strength, best.get(number, 0.0))
        for number, strength in best.items():
            scores[number] += word.weight * strength
    if claim.quantities:
        for number, window in enumerate(passage.windows):
            quantities = [quantity for index in window for quantity in passage.clauses[index].quantities]
            scores[number] += sum(is_said(quantity, quantities) for quantity in claim.quantities)
    ranked = [(scores[number], -len(window), number) for number, window in enumerate(passage.windows)]
    return passage.windows[max(ranked)[2]]


def _is_unknown(word: Word, window: Sequence[Clause]) -> bool:
    """Return whether a word is in another language than a passage and no translation of it is known."""
    return (
        word.is_japanese != is_japanese(window)
        and not word.is_name
        and not any(bridge.meanings(spelling) for spelling in word.spellings)
    )
