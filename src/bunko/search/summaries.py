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

from bunko.records import ChunkRow
from bunko.search.keyphrases import extract_phrases
from bunko.search.passages import snippet_terms
from bunko.text import analyzer, stopwords
from bunko.text.language import detect_language
from bunko.text.nouns import plain_text
from bunko.text.sentences import sentence_ends
from bunko.types import Hit

_MAX_TAGS = 5
_MAX_PHRASES = 6
_MIN_SENTENCES, _MAX_SENTENCES = 3, 5  # sentences; more than the least only where they say enough that is new
# Of a hit's text: a longer one is a document, and its beginning is read.
_MAX_HIT_CHARS = 4000
# Characters of a sentence that says something and can still be read at a glance.
_MIN_SENTENCE_CHARS = {"ja": 8, "en": 20, "": 20}
_MAX_SENTENCE_CHARS = 200
# What asking for a term adds to it, what a sentence keeps of a term that another one said, and what standing first
# in its memo, where people say what it is about, adds to a sentence.
_QUERY_TERM_BONUS, _REPEATED_TERM_FACTOR, _FIRST_SENTENCE_FACTOR = 1.5, 0.25, 1.15
# Each further sentence of one hit counts less, so that others are heard.
_SAME_HIT_FACTOR = 0.6
# A further sentence must be worth this share of the best.
_MIN_SCORE_SHARE = 0.45
# Lemmas that stand in sentences of every subject; the nouns of the kind are known elsewhere.
_FILLER_LEMMAS = stopwords.JAPANESE | frozenset(
    """
    為る 有る 居る 成る 出来る 言う 思う 見る 行く 来る 遣る 呉れる 貰う 置く 仕舞う 其れ 此れ 其の 此の 無い 良い 付く
    因る 於く
    """.split()
)
# An item of a list, a heading, a row or a quotation begins anew, however the line before it ended, and so does what
# stands below 【来週】 or a line that ends with a colon.
_ITEM_BORDER = re.compile(
    r"\n(?=[ \t\u3000]*(?:[-*+・•◦●■□◆◇○#>|【]|\d{1,3}[.)．）]|[^\n]*:\s*(?:\n|\Z)))|(?<=[】:])\n"
)
_LIST_MARKER = re.compile(r"^[\s\u3000]*(?:[-*+・•◦●■□◆◇○#>|]+(?:\s*\[[ xX]\])?|\d{1,3}[.)．）])[\s\u3000]*")
# ！ and ？ end a sentence before a word in letters too, which half-width ones would not.
_JAPANESE_SENTENCE_END = re.compile(rf"(?<=[{analyzer.JAPANESE_CHARS}][!?])(?=[A-Za-z0-9])")
_TAG_LINE = re.compile(r"(?i)^(?:tags?|タグ)\s*[:：]")
_JAPANESE_LINE_BREAK = re.compile(
    rf"(?<=[{analyzer.JAPANESE_CHARS}、。，．])\s*\n\s*(?=[{analyzer.JAPANESE_CHARS}「『（])"
)


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence, and which document or memo it is from."""

    text: str
    uri: str
    title: str
    date: str

    @property
    def source_label(self) -> str:
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
class _SentenceCandidate:
    sentence: Sentence
    hit_rank: int  # of its hit, the best being 1
    position: int  # among those of its hit
    terms: frozenset[str]


def summarize_hits(hits: Sequence[Hit], query: str = "") -> Summary:
    """Return what hits, best first, say together; what the query asks for counts more."""
    asked = snippet_terms(query).weights
    documents = {(hit.tool, hit.uri): hit for hit in reversed(hits)}
    dates = sorted(hit.date for hit in documents.values() if hit.date)
    tags = Counter(tag for hit in documents.values() for tag in hit.tags)
    return Summary(
        len(documents),
        dates[0] if dates else "",
        dates[-1] if dates else "",
        tuple(sorted(tags.items(), key=lambda item: (-item[1], item[0]))[:_MAX_TAGS]),
        tuple(phrase.text for phrase in extract_phrases(_chunk_rows(hits), limit=_MAX_PHRASES)),
        tuple(_select_sentences(list(_candidates(hits, asked)), asked)),
    )


def format_summary(summary: Summary) -> str:
    """Return a summary as lines for people."""
    span = summary.since if summary.since == summary.until else f"{summary.since} to {summary.until}"
    lines = [f"{summary.count} result{'' if summary.count == 1 else 's'}" + (f", {span}" if span else "")]
    if summary.tags:
        lines.append("tags: " + ", ".join(f"{tag} ({count})" for tag, count in summary.tags))
    if summary.phrases:
        lines.append("about: " + ", ".join(summary.phrases))
    if summary.text:
        lines += [f"written by {summary.model}, which may be wrong:", summary.text]
    return "\n".join([*lines, *(f"- {one.text} ({one.source_label})" for one in summary.sentences)])


def _chunk_rows(hits: Sequence[Hit]) -> Iterator[ChunkRow]:
    numbers: dict[tuple[str, str], int] = {}
    for hit in hits:
        number = numbers.setdefault((hit.tool, hit.uri), len(numbers))
        yield ChunkRow(0, number, hit.uri, hit.title, hit.date, hit.tags, hit.content_hash, hit.chunk)


def _candidates(hits: Sequence[Hit], query_weights: Mapping[str, float]) -> Iterator[_SentenceCandidate]:
    seen: set[str] = set()
    for rank, hit in enumerate(hits, 1):
        for order, text in enumerate(_split_sentences(hit.chunk.text[:_MAX_HIT_CHARS])):
            found = frozenset(
                term.spelling
                for run in analyzer.runs(text)
                for term in analyzer.terms(run)
                if not term.role and (term.spelling in query_weights or not _is_filler(term.spelling))
            )
            if len(found) > 1 and text not in seen:
                seen.add(text)
                yield _SentenceCandidate(Sentence(text, hit.uri, hit.title, hit.date), rank, order, found)


def _is_filler(spelling: str) -> bool:
    # Who asks for a cause wants to read of it, though texts of every subject speak of causes.
    return spelling in _FILLER_LEMMAS or spelling in stopwords.ENGLISH or spelling.isdecimal()


def _split_sentences(text: str) -> Iterator[str]:
    text = plain_text(text)
    borders = (match.start() for pattern in (_ITEM_BORDER, _JAPANESE_SENTENCE_END) for match in pattern.finditer(text))
    cuts = sorted({0, *sentence_ends(text), *borders, len(text)})
    for start, end in pairwise(cuts):
        one = " ".join(_JAPANESE_LINE_BREAK.sub("", _LIST_MARKER.sub("", text[start:end])).split())
        if _MIN_SENTENCE_CHARS[detect_language(one)] <= len(one) <= _MAX_SENTENCE_CHARS and not _TAG_LINE.match(one):
            yield one


def _select_sentences(candidates: Sequence[_SentenceCandidate], query_weights: Mapping[str, float]) -> list[Sentence]:
    holders: dict[str, set[int]] = {}
    for one in candidates:
        for term in one.terms:
            holders.setdefault(term, set()).add(one.hit_rank)
    worth = {
        term: log(1 + len(ranks)) + _QUERY_TERM_BONUS * query_weights.get(term, 0.0) for term, ranks in holders.items()
    }
    left, chosen = list(candidates), list[_SentenceCandidate]()
    heard: Counter[int] = Counter()
    best = 0.0

    def score(one: _SentenceCandidate) -> float:
        # By the root of their number: a long sentence may say more, but not by being long. The best hit counts most.
        whole = sum(worth[term] for term in one.terms) / sqrt(3 + len(one.terms))
        return (
            whole
            * (_FIRST_SENTENCE_FACTOR if one.position == 0 else 1.0)
            * float(_SAME_HIT_FACTOR ** heard[one.hit_rank])
            / (1 + 0.05 * (one.hit_rank - 1))
        )

    while left and len(chosen) < _MAX_SENTENCES:
        one = max(left, key=lambda other: (score(other), -other.hit_rank, -other.position))
        best = max(best, score(one))
        if len(chosen) >= _MIN_SENTENCES and score(one) < _MIN_SCORE_SHARE * best:
            break
        left.remove(one)
        chosen.append(one)
        heard[one.hit_rank] += 1
        for term in one.terms:
            worth[term] *= _REPEATED_TERM_FACTOR
    return [one.sentence for one in sorted(chosen, key=lambda one: (one.hit_rank, one.position))]
