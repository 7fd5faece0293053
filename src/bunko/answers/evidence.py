"""Analyze a passage into sentences and clauses that claims can be compared with."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import accumulate

from bunko.answers.clauses import Clause, MatchKey, Word, match_keys
from bunko.answers.quantities import Quantity
from bunko.answers.statements import analyze_clauses
from bunko.answers.word_match import best_match
from bunko.text.sentences import sentence_ranges


@dataclass(frozen=True)
class Evidence:
    """A passage, analyzed."""

    sentences: tuple[tuple[Clause, ...], ...]
    context: tuple[Clause, ...] = ()  # its title and headings, and the header of its table

    @cached_property
    def clauses(self) -> tuple[Clause, ...]:
        """All clauses in order."""
        return tuple(clause for sentence in self.sentences for clause in sentence)

    @cached_property
    def _clauses_by_key(self) -> dict[MatchKey, list[int]]:
        """The numbers of the clauses that have a word with each key."""
        numbers: dict[MatchKey, list[int]] = {}
        for number, clause in enumerate(self.clauses):
            for key in {key for word in clause.words for key in match_keys(word)}:
                numbers.setdefault(key, []).append(number)
        return numbers

    def strengths(self, word: Word) -> dict[int, float]:
        """Return the certainty that clauses have a word, by their number; those without it are left out."""
        numbers = {number for key in match_keys(word) for number in self._clauses_by_key.get(key, ())}
        strengths = {number: best_match(word, [self.clauses[number]])[0] for number in sorted(numbers)}
        return {number: strength for number, strength in strengths.items() if strength}

    @cached_property
    def windows(self) -> list[range]:
        """The numbers of the clauses of each sentence, and of each two sentences in a row."""
        ends = [0, *accumulate(len(sentence) for sentence in self.sentences)]
        windows: list[range] = []
        for index, start in enumerate(ends[:-1]):
            windows += [range(start, end) for end in ends[index + 1 : index + 3]]
        return windows

    @cached_property
    def windows_of_clauses(self) -> list[list[int]]:
        """The numbers of the windows that each clause is in."""
        numbers: list[list[int]] = [[] for _ in self.clauses]
        for number, window in enumerate(self.windows):
            for clause_number in window:
                numbers[clause_number].append(number)
        return numbers

    @cached_property
    def names(self) -> Clause:
        """The names in all clauses, as one that words can be looked up in."""
        return join_names(self.clauses)

    @cached_property
    def clauses_with_names(self) -> list[tuple[Clause, Clause | None]]:
        """The clauses with the one whose names they are about: itself, or else one before it."""
        result: list[tuple[Clause, Clause | None]] = []
        named: Clause | None = None
        for clause in self.clauses:
            named = clause if clause.names else named
            result.append((clause, named))
        return result


@lru_cache(128)
def analyze_passage(text: str, context: str = "") -> Evidence:
    """Analyze a passage; `context` has the title and the headings above it."""
    header, rows = _split_table(text)
    context_clauses = (*analyze_clauses(context), *analyze_clauses(header))
    sentences = [analyze_clauses(rows[start:end]) for start, end in sentence_ranges(rows)]
    names = join_names(clause for sentence in (*sentences, context_clauses) for clause in sentence)
    sentences = [tuple(mark_names(clause, names) for clause in sentence) for sentence in sentences]
    return Evidence(tuple(sentence for sentence in sentences if sentence), context_clauses)


def join_names(clauses: Iterable[Clause]) -> Clause:
    """Return the names in some clauses as one clause."""
    return Clause("", tuple(name for clause in clauses for name in clause.names), (), 0)


def mark_names(claim: Clause, names: Clause) -> Clause:
    """Return a clause whose first word is a name if it is one elsewhere: every sentence begins with a capital."""
    first = claim.words[0] if claim.words else None
    if first is None or first.is_name or not first.text[:1].isupper():
        return claim
    name = replace(first, is_name=True)
    is_name = bool(best_match(name, [names])[0])
    return replace(claim, words=(name, *claim.words[1:]), topic=name) if is_name else claim


def _split_table(text: str) -> tuple[str, str]:
    """Return the header of the first Markdown table in a text, and the text without it; empty if it has none."""
    lines = text.split("\n")
    for index, line in enumerate(lines[1:], 1):
        stripped = line.strip()
        if stripped.startswith("|") and set(stripped) <= set("|-: \t") and "-" in stripped:
            return lines[index - 1], "\n".join([*lines[: index - 1], *lines[index + 1 :]])
    return "", text


def matched_weight(claim: Clause, window: Sequence[Clause]) -> float:
    """Return the weight of the words and quantities of a claim that some clauses have."""
    quantities = [quantity for clause in window for quantity in clause.quantities]
    words = sum(word.weight * best_match(word, window)[0] for word in claim.words)
    return words + sum(is_said(quantity, quantities) for quantity in claim.quantities)


def is_said(quantity: Quantity, quantities: Sequence[Quantity]) -> bool:
    """Return whether a quantity is among others, in any form."""
    if quantity.kind != "date":
        return any(quantity.agrees_with(other) for other in quantities)
    # All parts that the sentence names must be said, though perhaps apart: the year may stand in a heading.
    agreeing = [other for other in quantities if quantity.agrees_with(other)]
    if not agreeing:
        return False
    for position, part in enumerate(quantity.value):
        is_named = any(other.kind == "date" and other.value[position] == part for other in quantities)
        if part and not is_named and not (position == 0 and any(other.value[0] == part for other in agreeing)):
            return False
    return True


def is_across(claim: Clause, window: Sequence[Clause]) -> bool:
    """Return whether a claim and some clauses are in different languages."""
    return bool(claim.words) and is_japanese([claim]) != is_japanese(window)


def is_japanese(clauses: Sequence[Clause]) -> bool:
    """Return whether most words of some clauses are Japanese."""
    return 2 * sum(clause.japanese_count for clause in clauses) >= sum(len(clause.words) for clause in clauses)
