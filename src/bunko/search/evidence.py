"""Analyze a passage into sentences and clauses that claims can be compared with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from bunko.search.statements import Clause, Word, analyze_clauses
from bunko.search.word_match import best_match, match_strength
from bunko.text.quantities import Quantity
from bunko.text.sentences import sentence_ranges


@dataclass(frozen=True, slots=True)
class Evidence:
    """A passage, analyzed."""

    sentences: tuple[tuple[Clause, ...], ...]
    context: tuple[Clause, ...] = ()  # its title and headings, and the header of its table

    @property
    def clauses(self) -> list[Clause]:
        """All clauses in order."""
        return [clause for sentence in self.sentences for clause in sentence]


@lru_cache(256)
def analyze_passage(text: str, context: str = "") -> Evidence:
    """Analyze a passage; `context` has the title and the headings above it."""
    header, rows = _split_table(text)
    context_clauses = (*analyze_clauses(context), *analyze_clauses(header))
    sentences = [analyze_clauses(rows[start:end]) for start, end in sentence_ranges(rows)]
    names = [name for sentence in (*sentences, context_clauses) for clause in sentence for name in clause.names]
    sentences = [tuple(mark_names(clause, names) for clause in sentence) for sentence in sentences]
    return Evidence(tuple(sentence for sentence in sentences if sentence), context_clauses)


def mark_names(claim: Clause, names: Sequence[Word]) -> Clause:
    """Return a clause whose first word is a name if it is one elsewhere: every sentence begins with a capital."""
    first = claim.words[0] if claim.words else None
    if first is None or first.is_name or not first.text[:1].isupper():
        return claim
    name = replace(first, is_name=True)
    is_name = any(match_strength(name, other) for other in names)
    return replace(claim, words=(name, *claim.words[1:]), topic=name) if is_name else claim


def _split_table(text: str) -> tuple[str, str]:
    """Return the header of a Markdown table, if a text begins with one, and the rest."""
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
    """Return whether a quantity is among others, in whatever form."""
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
    words = [word.is_japanese for clause in clauses for word in clause.words]
    return 2 * sum(words) >= len(words)
