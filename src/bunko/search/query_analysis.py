"""Analyze a query into the index keys to look up."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from bunko.records import GRAM_WEIGHT, QueryTerm
from bunko.text import analyzer, bridge, ngrams
from bunko.text.light_words import MAX_LIGHT_WEIGHT, query_weight
from bunko.text.line_joins import join_lines

_MAX_TERMS = 128
# Weight of a reliable translation relative to the word itself: chosen on judged sets, see docs/quality.md.
CROSS_LANGUAGE_WEIGHT = 0.7


@dataclass(frozen=True, slots=True)
class QueryAnalysis:
    """The keys of a query with their spellings and roles."""

    terms: tuple[QueryTerm, ...]
    spellings: tuple[str, ...]
    # "" is a word of the query, light one that says little; loanword, bridge, synonym, part and gram are expansions.
    roles: tuple[str, ...]
    grams: tuple[ngrams.Gram, ...]


NO_ANALYSIS = QueryAnalysis((), (), (), ())


def analyse_query(query: str, *, loanwords: bool = True, cross_language_weight: float = 0.0) -> QueryAnalysis:
    """Return the keys of a query: its words, their expansions, then its character bigrams.

    `cross_language_weight` is the weight of a reliable translation relative to the word itself; 0 adds no translations.
    """
    collector = _TermCollector(loanwords=loanwords, translate=bool(cross_language_weight))
    for run in analyzer.runs(query):
        collector.add_run(run)
    term_infos = collector.words
    for role, meaning, group in collector.meanings:
        term_infos.setdefault(meaning.spelling, _TermInfo(role, cross_language_weight * meaning.weight, group))
    if all(info.role != "" for info in term_infos.values()):
        term_infos = {
            spelling: _TermInfo("", 1.0, info.group) if info.role == "light" else info
            for spelling, info in term_infos.items()
        }
    terms, spellings, roles = [], [], []
    for spelling, info in itertools.islice(term_infos.items(), _MAX_TERMS):
        terms.append(QueryTerm(analyzer.term_key(spelling), info.weight, group=info.group))
        spellings.append(spelling)
        roles.append(info.role)
    grams = ngrams.query_grams(join_lines(query))[:_MAX_TERMS]
    for gram in grams:
        if gram.is_distinctive:
            terms.append(QueryTerm(gram.key, GRAM_WEIGHT, is_gram=True))
            spellings.append(gram.spelling)
            roles.append("gram")
    return QueryAnalysis(tuple(terms), tuple(spellings), tuple(roles), tuple(grams))


class _TermInfo(NamedTuple):
    role: str
    weight: float
    group: int


class _TermCollector:
    """Collects the words of a query in order, with their meanings in the other language."""

    __slots__ = ("_groups", "_loanwords", "_translate", "meanings", "words")

    def __init__(self, *, loanwords: bool, translate: bool) -> None:
        self._loanwords, self._translate = loanwords, translate
        self._groups = itertools.count()
        self.words: dict[str, _TermInfo] = {}
        self.meanings: list[tuple[str, bridge.Meaning, int]] = []  # role, meaning, group

    def add_run(self, run: str) -> None:
        """Add the words of one run of text."""
        words = analyzer.terms_by_word(run)
        is_translated = False  # as the second word of a compound
        for terms, next_terms in itertools.zip_longest(words, words[1:], fillvalue=()):
            is_translated = self._add_word(terms, next_terms, translate=self._translate and not is_translated)

    def _add_word(
        self, terms: Sequence[analyzer.Term], next_terms: Sequence[analyzer.Term], *, translate: bool
    ) -> bool:
        """Add the terms of one word; return whether the next word was translated together with it."""
        is_question_word = bool(terms) and terms[0].spelling in analyzer.QUESTION_WORDS
        group = next(self._groups)
        is_compound = False
        weight = 1.0
        for term in terms:
            if term.role == "part":
                group = next(self._groups)
            if term.role != "loanword":
                weight = query_weight(term.spelling)
            if self._loanwords or term.role != "loanword":
                # A loanword and its English original share a group: only the one that scores higher in a text counts.
                role = "light" if term.role == "" and weight <= MAX_LIGHT_WEIGHT else term.role
                self.words.setdefault(term.spelling, _TermInfo(role, weight, group))
            if translate and not is_question_word and term.role != "loanword":
                is_compound = self._add_meanings(term.spelling, next_terms, group, weight)
        return is_compound

    def _add_meanings(self, spelling: str, next_terms: Sequence[analyzer.Term], group: int, weight: float) -> bool:
        """Add the meanings of a word, or of the compound it forms with the next; return whether it forms one.

        The meanings of a word count less where it does; those of a compound do not depend on its parts.
        """
        compound_meanings = bridge.meanings(spelling + next_terms[0].spelling) if next_terms else ()
        if compound_meanings:
            self.meanings += [("bridge", meaning, group) for meaning in compound_meanings]
            return True
        for role, meanings in (("bridge", bridge.meanings(spelling)), ("synonym", bridge.synonyms(spelling))):
            self.meanings += [(role, meaning._replace(weight=weight * meaning.weight), group) for meaning in meanings]
        return False
