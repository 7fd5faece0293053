"""Analyze a query into the index keys to look up."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from bunko.text import analyzer, bridge, ngrams
from bunko.text.line_joins import join_lines
from bunko.text.normalise import normalise
from bunko.text.stopwords import MAX_LIGHT_WEIGHT, query_weight
from bunko.types.ranking import DEFAULT_RANKING, RankingOptions
from bunko.types.records import QueryTerm

_MAX_TERMS = 128


@dataclass(frozen=True)
class QueryAnalysis:
    """The keys of a query with their spellings and roles."""

    terms: tuple[QueryTerm, ...] = ()
    spellings: tuple[str, ...] = ()
    # "" is a word of the query, light one that says little; loanword, bridge, synonym, part and gram are expansions.
    roles: tuple[str, ...] = ()
    text: str = ""

    @cached_property
    def grams(self) -> tuple[ngrams.Gram, ...]:
        """All n-grams of the query, also of letters; most searches find enough without them."""
        return tuple(ngrams.query_grams(self.text)[:_MAX_TERMS])


NO_ANALYSIS = QueryAnalysis()


def analyse_query(query: str, options: RankingOptions = DEFAULT_RANKING) -> QueryAnalysis:
    """Return the keys of a query: its words, their expansions, then its character bigrams."""
    bridge_weight = options.bridge_weight if options.bridge else 0.0
    collector = _TermCollector(
        loanwords=options.loanwords, translate=bridge_weight > 0, light_words=options.light_words
    )
    for run in analyzer.runs(query):
        collector.add_run(run)
    words = collector.words
    if "" not in (info.role for info in words.values()):
        words = {
            spelling: _TermInfo("", 1.0, info.group) if info.role == "light" else info
            for spelling, info in words.items()
        }
    meanings: dict[str, _TermInfo] = {}
    for role, spelling, weight, group in collector.meanings:
        if spelling not in words:
            meanings.setdefault(spelling, _TermInfo(role, bridge_weight * weight, group))
    term_infos = [(spelling, analyzer.term_key(spelling), info) for spelling, info in words.items()]
    if options.loanwords:
        term_infos += [
            (spelling, analyzer.origin_key(spelling), info._replace(role="loanword"))
            for spelling, info in words.items()
            if info.role != "loanword" and spelling.isascii() and spelling.isalpha()
        ]
    term_infos += [(spelling, analyzer.term_key(spelling), info) for spelling, info in meanings.items()]
    term_infos = term_infos[:_MAX_TERMS]
    terms = [QueryTerm(key, info.weight, False, info.group) for _, key, info in term_infos]
    spellings = [spelling for spelling, _, _ in term_infos]
    text = join_lines(query)
    grams = _distinctive_grams(text) if options.character_pairs else []
    terms += [QueryTerm(gram.key, options.character_pairs, True) for gram in grams]
    spellings += [gram.spelling for gram in grams]
    roles = [info.role for _, _, info in term_infos] + ["gram"] * len(grams)
    return QueryAnalysis(tuple(terms), tuple(spellings), tuple(roles), text)


def _distinctive_grams(text: str) -> list[ngrams.Gram]:
    """Return the n-grams that count beside the words of a query: those of Japanese, among the first of all."""
    if text.isascii():
        return []
    if len(normalise(text).lower()) > _MAX_TERMS:  # it has at most as many n-grams as characters
        return [gram for gram in ngrams.query_grams(text)[:_MAX_TERMS] if gram.is_distinctive]
    return ngrams.distinctive_grams(text)


class _TermInfo(NamedTuple):
    role: str
    weight: float
    group: int


class _TermCollector:
    """Collects the words of a query in order, with their meanings in the other language."""

    __slots__ = ("_groups", "_light_words", "_loanwords", "_translate", "meanings", "words")

    def __init__(self, *, loanwords: bool, translate: bool, light_words: float) -> None:
        self._loanwords, self._translate, self._light_words = loanwords, translate, light_words
        self._groups = itertools.count()
        self.words: dict[str, _TermInfo] = {}
        self.meanings: list[tuple[str, str, float, int]] = []  # role, spelling, weight, group

    def add_run(self, run: str) -> None:
        """Add the words of one run of text."""
        words = analyzer.terms_by_word(run)
        is_translated = False  # as the second word of a compound
        is_after = False
        for terms, next_terms in itertools.pairwise((*words, ())):
            is_translated = bool(terms) and self._add_word(
                run, terms, next_terms, translate=self._translate and not is_translated, is_after=is_after
            )
            is_after = bool(terms)

    def _add_word(
        self,
        run: str,
        terms: Sequence[analyzer.Term],
        next_terms: Sequence[analyzer.Term],
        *,
        translate: bool,
        is_after: bool,
    ) -> bool:
        """Add the terms of one word; return whether the next word was translated together with it."""
        is_question_word = terms[0].spelling in analyzer.QUESTION_WORDS
        group = next(self._groups)
        is_compound = False
        weight = 1.0
        for spelling, role in terms:
            if role == "part":
                group = next(self._groups)
            is_loanword = role == "loanword"
            if not is_loanword:
                weight = query_weight(spelling) ** self._light_words
            if (self._loanwords or not is_loanword) and spelling not in self.words:
                # A loanword and its English original share a group: only the one that scores higher in a text counts.
                is_light = role == "" and weight <= MAX_LIGHT_WEIGHT
                self.words[spelling] = _TermInfo("light" if is_light else role, weight, group)
            if translate and not is_question_word and not is_loanword:
                is_compound = self._add_meanings(run, spelling, next_terms, group, weight, is_after=is_after)
        return is_compound

    def _add_meanings(
        self,
        run: str,
        spelling: str,
        next_terms: Sequence[analyzer.Term],
        group: int,
        weight: float,
        *,
        is_after: bool,
    ) -> bool:
        """Add the meanings of a word, or of the compound it forms with the next; return whether it forms one.

        The meanings of a word count less where it does; those of a compound do not depend on its parts.
        """
        compound_meanings = bridge.meanings(spelling + next_terms[0].spelling) if next_terms else ()
        if compound_meanings:
            self.meanings += [("bridge", *meaning, group) for meaning in compound_meanings]
            return True
        word = (
            bridge.form_spelling(run, spelling)
            if spelling.isascii()
            else bridge.part_spelling(spelling, is_after=is_after, is_before=bool(next_terms))
        )
        for role, meanings in (("bridge", bridge.meanings(word)), ("synonym", bridge.synonyms(word))):
            for meaning, certainty in meanings:
                self.meanings.append((role, meaning, weight * certainty, group))
        for half in bridge.halves(word):
            half_group = next(self._groups)
            self.meanings += [("bridge", *meaning, half_group) for meaning in bridge.meanings(half)]
        return False
