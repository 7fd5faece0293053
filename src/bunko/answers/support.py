"""Check whether a passage says what a sentence claims: its words, names and numbers, in either language.

Words are compared, not meanings. A sentence that says the same in entirely different words is not recognised as
supported, and roles that word order alone expresses may be confused. So the checks prefer to doubt: a number, a name, a
negation or a comparison that differs is never supported, however many other words agree.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal

from bunko.answers import polarity
from bunko.answers.clauses import Clause, Word
from bunko.answers.evidence import Evidence, is_across, is_japanese, is_said, mark_names, matched_weight
from bunko.answers.quantities import Quantity
from bunko.answers.statements import analyze_clauses
from bunko.answers.word_match import SHARED_CHARACTERS, best_match, match_strength
from bunko.text import bridge
from bunko.types.answers import DENIAL

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


def find_conflicts(claim: Clause, window: Sequence[Clause], passage: Evidence) -> list[str]:
    """Return the conflicts in a passage: a negation, a comparison, or the same about another subject."""
    weights = [(matched_weight(claim, [clause]), clause) for clause in window]
    weights.sort(key=lambda item: -item[0])
    ranked = [clause for _, clause in weights]
    conflicts = []
    nearest = [clause for weight, clause in weights if weight >= weights[0][0] - 1e-9]
    if all(_denies(claim, clause) for clause in nearest) or any(_is_denied(word, window) for word in claim.words):
        conflicts.append(DENIAL)
    opposites = [polarity.opposite(claim.text, clause.text) for clause in nearest]
    if all(opposites):
        conflicts.append(opposites[0])
    if bound := polarity.missing_bound(claim.text, " ".join(clause.text for clause in window)):
        conflicts.append(bound)
    if not is_across(claim, ranked[:1]):
        conflicts += _replaced(claim, ranked[0])
        conflicts += _other_topic(claim, ranked[0], passage)
    conflicts += _misplaced(claim, passage)
    return conflicts


def _replaced(claim: Clause, clause: Clause) -> Iterator[str]:
    """Yield words in whose place, before the same word, a passage has another: network team, database team."""
    for word, following in pairwise(claim.words):
        if word.is_name or best_match(word, [clause])[0] or not _are_adjacent(word, following, claim):
            continue
        strength, other = best_match(following, [clause])
        position = clause.words.index(other) if other is not None and strength == 1.0 else 0
        before = clause.words[position - 1] if position else None
        if before and other and _are_adjacent(before, other, clause) and not best_match(before, [claim])[0]:
            yield word.text


def _other_topic(claim: Clause, clause: Clause, passage: Evidence) -> Iterator[str]:
    """Yield the topic of a claim if the passage never mentions it, and says the same about another: 役員は, 社員は."""
    topic, other = claim.topic, clause.topic
    if topic is None or other is None or not topic.is_japanese or best_match(other, [claim])[0]:
        return
    if not best_match(topic, [*passage.clauses, *passage.context])[0]:
        yield topic.text


def _are_adjacent(word: Word, following: Word, clause: Clause) -> bool:
    return f"{word.text}{following.text}" in clause.text or f"{word.text} {following.text}" in clause.text


def _is_denied(word: Word, clauses: Sequence[Clause]) -> bool:
    """Return whether clauses deny a word wherever they have it, or say it wherever the claim denies it."""
    matches = [
        other
        for clause in clauses
        for other in clause.candidates(word)
        if match_strength(word, other) >= SHARED_CHARACTERS
    ]
    return bool(matches) and all(other.is_negated != word.is_negated for other in matches)


def _denies(claim: Clause, clause: Clause) -> bool:
    """Return whether one clause denies what another claims."""
    agreeing_predicates = covered = 0
    for word in claim.words:
        strength, other = best_match(word, [clause])
        if other is None or strength < SHARED_CHARACTERS:
            continue
        covered += 1
        if word.is_negated != other.is_negated:
            return True
        agreeing_predicates += other.is_predicate or word.is_predicate
    if not covered or claim.negations % 2 == clause.negations % 2:
        return False
    is_japanese = any(word.is_japanese for word in (*claim.words, *clause.words))
    return not agreeing_predicates if is_japanese else covered < 0.75 * len(claim.words)


def _misplaced(claim: Clause, passage: Evidence) -> Iterator[str]:
    """Yield names and numbers that the passage connects with something else than the claim does."""
    yield from (name.text for name in names_of_others(claim.names, claim, passage))
    yield from (quantity.text for quantity in _values_of_others(claim, passage))
    if claim.topic is not None and not claim.topic.is_name and _is_about_another(claim.topic, claim, passage.clauses):
        yield claim.topic.text


def names_of_others(names: Sequence[Word], claim: Clause, passage: Evidence) -> list[Word]:
    """Return those of some names for which the rest of a claim stands only in clauses about other names."""
    other_words = [word for word in claim.words if not word.is_name and passage.strengths(word)]
    if not names or not (other_words or claim.quantities):
        return []
    scores = [0.0] * len(passage.clauses)
    for word in other_words:
        for index, strength in passage.strengths(word).items():
            scores[index] += strength
    scored = []
    for score, (clause, named) in zip(scores, passage.clauses_with_names, strict=True):
        score += sum(is_said(quantity, clause.quantities) for quantity in claim.quantities)
        scored.append((score, named))
    best = max(score for score, _ in scored)
    if best < 0.5 * (len(other_words) + len(claim.quantities)):
        return []
    nearest = [named for score, named in scored if score >= best - 1e-9]
    return [name for name in names if all(named is not None and not _has_name(named, name) for named in nearest)]


def _has_name(clause: Clause, name: Word) -> bool:
    return any(other.is_name and match_strength(name, other) for other in clause.candidates(name))


def _is_about_another(topic: Word, claim: Clause, clauses: Sequence[Clause]) -> bool:
    """Return whether a passage says something else about the topic of a claim, and the rest of it about another."""
    if not any(clause.topic is not None and match_strength(topic, clause.topic) == 1.0 for clause in clauses):
        return False
    remainder = Clause(claim.text, tuple(word for word in claim.words if word is not topic), claim.quantities, 0)
    if not remainder.words and not remainder.quantities:
        return False
    scores = [matched_weight(remainder, [clause]) for clause in clauses]
    nearest = [clause for clause, score in zip(clauses, scores, strict=True) if score >= max(scores) - 1e-9]

    def is_head(word: Word) -> bool:  # of a compound: trial keys are not keys in general
        return any(match_strength(word, head) == 1.0 and _are_adjacent(topic, head, claim) for head in remainder.words)

    return max(scores) > 0 and all(
        clause.topic is not None
        and not best_match(topic, [clause])[0]
        and (not best_match(clause.topic, [claim])[0] or is_head(clause.topic))
        for clause in nearest
    )


def _values_of_others(claim: Clause, passage: Evidence) -> Iterator[Quantity]:
    """Yield quantities of a claim whose words stand nearer to another value of the same unit."""
    words = Clause(claim.text, claim.words, (), 0)
    scored = []
    for clause in passage.clauses if claim.quantities else ():
        if clause.quantities:
            are_said = [is_said(quantity, clause.quantities) for quantity in claim.quantities]
            scored.append((clause, matched_weight(words, [clause]), are_said))
    for index, quantity in enumerate(claim.quantities):
        agreeing, competing = [], []
        for clause, weight, are_said in scored:
            if are_said[index]:
                agreeing.append(weight + (sum(are_said) - 1))
            elif any(quantity.competes_with(other) for other in clause.quantities):
                competing.append(weight + sum(are_said))
        if agreeing and competing and max(competing) > max(agreeing):
            yield quantity
