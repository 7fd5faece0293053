"""Hits in, what they say together out: how many, from when to when, their tags, key phrases and telling sentences.

By rules alone: nothing is sent anywhere, and every sentence stands in one of the hits.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import log, sqrt

from bunko.records import Found
from bunko.search.keyphrases import phrases
from bunko.search.passages import looked_for
from bunko.text import analyzer, stopwords
from bunko.text.language import language
from bunko.text.nouns import plain
from bunko.text.sentences import ends
from bunko.types import Hit

_MOST_TAGS = 5
_MOST_PHRASES = 6
_LEAST, _MOST = 3, 5  # sentences; more than the least only where they say enough that is new
# Of a hit's text: a longer one is a document, and its beginning is read.
_READ = 4000
# Characters of a sentence that says something and can still be read at a glance.
_SHORTEST = {"ja": 8, "en": 20, "": 20}
_LONGEST = 200
# What asking for a term adds to it, what a sentence keeps of a term that another one said, and what standing first
# in its memo, where people say what it is about, adds to a sentence.
_ASKED, _SAID, _FIRST = 1.5, 0.25, 1.15
# Each further sentence of one hit counts less, so that others are heard.
_SAME = 0.6
# A further sentence must be worth this share of the best.
_WORTH = 0.45
# Lemmas that stand in sentences of every subject; the nouns of the kind are known elsewhere.
_EMPTY = stopwords.JAPANESE | frozenset(
    """
    為る 有る 居る 成る 出来る 言う 思う 見る 行く 来る 遣る 呉れる 貰う 置く 仕舞う 其れ 此れ 其の 此の 無い 良い 付く
    因る 於く
    """.split()
)
# An item of a list, a heading, a row or a quotation begins anew, however the line before it ended, and so does what
# stands below 【来週】 or a line that ends with a colon.
_ITEM = re.compile(r"\n(?=[ \t\u3000]*(?:[-*+・•◦●■□◆◇○#>|【]|\d{1,3}[.)．）]|[^\n]*:\s*(?:\n|\Z)))|(?<=[】:])\n")
_MARK = re.compile(r"^[\s\u3000]*(?:[-*+・•◦●■□◆◇○#>|]+(?:\s*\[[ xX]\])?|\d{1,3}[.)．）])[\s\u3000]*")
# ！ and ？ end a sentence before a word in letters too, which half-width ones would not.
_MARKED = re.compile(rf"(?<=[{analyzer.JAPANESE}][!?])(?=[A-Za-z0-9])")
_TAGS = re.compile(r"(?i)^(?:tags?|タグ)\s*[:：]")
_BETWEEN = re.compile(rf"(?<=[{analyzer.JAPANESE}、。，．])\s*\n\s*(?=[{analyzer.JAPANESE}「『（])")


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence, and which document or memo it is from."""

    text: str
    uri: str
    title: str
    date: str

    @property
    def place(self) -> str:
        """Where it stands, as people call it."""
        return " ".join(part for part in (self.date, self.title) if part) or self.uri


@dataclass(frozen=True, slots=True)
class Summary:
    """What some hits say together."""

    count: int  # of documents or memos
    since: str  # the earliest and the latest date; empty where there is none
    until: str
    tags: tuple[tuple[str, int], ...]
    phrases: tuple[str, ...]
    sentences: tuple[Sentence, ...]
    text: str = ""  # what a model made of the hits, instead of sentences
    model: str = ""


@dataclass(slots=True)
class _Candidate:
    sentence: Sentence
    rank: int  # of its hit, the best being 1
    order: int  # among those of its hit
    terms: frozenset[str]


def summary(hits: Sequence[Hit], query: str = "") -> Summary:
    """Return what hits, best first, say together; what the query asks for counts more."""
    asked = looked_for(query).weights
    documents = {(hit.tool, hit.uri): hit for hit in reversed(hits)}
    dates = sorted(hit.date for hit in documents.values() if hit.date)
    tags = Counter(tag for hit in documents.values() for tag in hit.tags)
    return Summary(
        len(documents),
        dates[0] if dates else "",
        dates[-1] if dates else "",
        tuple(sorted(tags.items(), key=lambda item: (-item[1], item[0]))[:_MOST_TAGS]),
        tuple(phrase.text for phrase in phrases(_found(hits), limit=_MOST_PHRASES)),
        tuple(_chosen(list(_candidates(hits, asked)), asked)),
    )


def written(found: Summary) -> str:
    """Return a summary as lines for people."""
    span = found.since if found.since == found.until else f"{found.since} to {found.until}"
    lines = [f"{found.count} result{'' if found.count == 1 else 's'}" + (f", {span}" if span else "")]
    if found.tags:
        lines.append("tags: " + ", ".join(f"{tag} ({count})" for tag, count in found.tags))
    if found.phrases:
        lines.append("about: " + ", ".join(found.phrases))
    if found.text:
        lines += [f"written by {found.model}, which may be wrong:", found.text]
    return "\n".join([*lines, *(f"- {one.text} ({one.place})" for one in found.sentences)])


def _found(hits: Sequence[Hit]) -> Iterator[Found]:
    numbers: dict[tuple[str, str], int] = {}
    for hit in hits:
        number = numbers.setdefault((hit.tool, hit.uri), len(numbers))
        yield Found(0, number, hit.uri, hit.title, hit.date, hit.tags, hit.content_hash, hit.chunk)


def _candidates(hits: Sequence[Hit], asked: Mapping[str, float]) -> Iterator[_Candidate]:
    seen: set[str] = set()
    for rank, hit in enumerate(hits, 1):
        for order, text in enumerate(_sentences(hit.chunk.text[:_READ])):
            found = frozenset(
                term.spelling
                for run in analyzer.runs(text)
                for term in analyzer.terms(run)
                if not term.role and (term.spelling in asked or not _is_empty(term.spelling))
            )
            if len(found) > 1 and text not in seen:
                seen.add(text)
                yield _Candidate(Sentence(text, hit.uri, hit.title, hit.date), rank, order, found)


def _is_empty(spelling: str) -> bool:
    # Who asks for a cause wants to read of it, though texts of every subject speak of causes.
    return spelling in _EMPTY or spelling in stopwords.ENGLISH or spelling.isdecimal()


def _sentences(text: str) -> Iterator[str]:
    text = plain(text)
    borders = (match.start() for pattern in (_ITEM, _MARKED) for match in pattern.finditer(text))
    cuts = sorted({0, *ends(text), *borders, len(text)})
    for start, end in pairwise(cuts):
        one = " ".join(_BETWEEN.sub("", _MARK.sub("", text[start:end])).split())
        if _SHORTEST[language(one)] <= len(one) <= _LONGEST and not _TAGS.match(one):
            yield one


def _chosen(candidates: Sequence[_Candidate], asked: Mapping[str, float]) -> list[Sentence]:
    holders: dict[str, set[int]] = {}
    for one in candidates:
        for term in one.terms:
            holders.setdefault(term, set()).add(one.rank)
    worth = {term: log(1 + len(ranks)) + _ASKED * asked.get(term, 0.0) for term, ranks in holders.items()}
    left, chosen = list(candidates), list[_Candidate]()
    heard: Counter[int] = Counter()
    best = 0.0

    def score(one: _Candidate) -> float:
        # By the root of their number: a long sentence may say more, but not by being long. The best hit counts most.
        whole = sum(worth[term] for term in one.terms) / sqrt(3 + len(one.terms))
        return (
            whole * (_FIRST if one.order == 0 else 1.0) * float(_SAME ** heard[one.rank]) / (1 + 0.05 * (one.rank - 1))
        )

    while left and len(chosen) < _MOST:
        one = max(left, key=lambda other: (score(other), -other.rank, -other.order))
        best = max(best, score(one))
        if len(chosen) >= _LEAST and score(one) < _WORTH * best:
            break
        left.remove(one)
        chosen.append(one)
        heard[one.rank] += 1
        for term in one.terms:
            worth[term] *= _SAID
    return [one.sentence for one in sorted(chosen, key=lambda one: (one.rank, one.order))]
