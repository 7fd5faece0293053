"""Find contradictions of a claim in a passage: a negation, an opposite, or the same about another subject."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from bunko.answers import polarity
from bunko.answers.clauses import Clause, Word
from bunko.answers.evidence import Evidence, is_across, is_said, matched_weight
from bunko.answers.quantities import Quantity
from bunko.answers.word_match import SHARED_CHARACTERS, best_match, match_strength
from bunko.types.answers import DENIAL


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
