"""Summarize hits by rules: their count, dates, tags, key phrases and most informative sentences.

No model is asked, and every sentence is quoted from one of the hits.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import log, sqrt

from bunko.search.keyphrases import extract_phrases
from bunko.search.passages import snippet_terms
from bunko.text import analyzer, stopwords
from bunko.text.language import JAPANESE_CHARS, detect_language
from bunko.text.nouns import plain_text
from bunko.text.sentences import LIST_MARKER, sentence_ranges
from bunko.types import Hit
from bunko.types.records import ChunkRow

_MAX_TAGS = 5
_MAX_PHRASES = 6
_MIN_SENTENCES, _MAX_SENTENCES = 3, 5  # more than the minimum only if they add enough
# Of a longer hit, which is a whole document, only the beginning is read.
_MAX_HIT_CHARS = 4000
# Length of a sentence that is informative and can still be read at a glance.
_MIN_SENTENCE_CHARS = {"ja": 8, "en": 20, "": 20}
_MAX_SENTENCE_CHARS = 200
# The bonus of a query term, the factor for a term that an earlier sentence contains, and the factor for the first
# sentence of a memo, where people say what it is about.
_QUERY_TERM_BONUS, _REPEATED_TERM_FACTOR, _FIRST_SENTENCE_FACTOR = 1.5, 0.25, 1.15
# Each further sentence of the same hit counts less, so that other hits get a turn.
_SAME_HIT_FACTOR = 0.6
# A sentence beyond the minimum must reach this share of the best score.
_MIN_SCORE_SHARE = 0.45
# Lemmas that occur in texts on any subject; nouns of this kind are in stopwords.JAPANESE.
_FILLER_LEMMAS = stopwords.JAPANESE | frozenset(
    """
    為る 有る 居る 成る 出来る 言う 思う 見る 行く 来る 遣る 呉れる 貰う 置く 仕舞う 其れ 此れ 其の 此の 無い 良い 付く
    因る 於く
    """.split()
)
_TAG_LINE = re.compile(r"(?i)^(?:tags?|タグ)\s*[:：]")
_JAPANESE_LINE_BREAK = re.compile(rf"(?<=[{JAPANESE_CHARS}、。，．])[^\S\n]*+\n\s*+(?=[{JAPANESE_CHARS}「『（])")


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence with the document or memo it is from."""

    text: str
    uri: str
    title: str
    date: str

    @property
    def source_label(self) -> str:
        """The date and title of the source, or its uri if it has neither."""
        return " ".join(part for part in (self.date, self.title) if part) or self.uri


@dataclass(frozen=True, slots=True)
class Summary:
    """A summary of hits."""

    count: int  # documents or memos
    since: str  # the earliest and the latest date; empty if no hit has one
    until: str
    tags: tuple[tuple[str, int], ...]
    phrases: tuple[str, ...]
    sentences: tuple[Sentence, ...]
    text: str = ""  # a model's summary, which replaces the sentences
    model: str = ""


@dataclass(slots=True)
class _SentenceCandidate:
    sentence: Sentence
    hit_rank: int  # the best hit has rank 1
    position: int  # among the sentences of its hit
    terms: frozenset[str]


def summarize_hits(hits: Sequence[Hit], query: str = "") -> Summary:
    """Summarize hits, given best first; terms of the query count more."""
    query_weights = snippet_terms(query).weights
    documents = {(hit.tool, hit.uri): hit for hit in reversed(hits)}
    dates = sorted(hit.date for hit in documents.values() if hit.date)
    tags = Counter(tag for hit in documents.values() for tag in hit.tags)
    return Summary(
        len(documents),
        dates[0] if dates else "",
        dates[-1] if dates else "",
        tuple(sorted(tags.items(), key=lambda item: (-item[1], item[0]))[:_MAX_TAGS]),
        tuple(phrase.text for phrase in extract_phrases(_chunk_rows(hits), limit=_MAX_PHRASES)),
        tuple(_select_sentences(list(_candidates(hits, query_weights)), query_weights)),
    )


def format_summary(summary: Summary) -> str:
    """Return a summary as text."""
    span = summary.since if summary.since == summary.until else f"{summary.since} to {summary.until}"
    lines = [f"{summary.count} result{'' if summary.count == 1 else 's'}" + (f", {span}" if span else "")]
    if summary.tags:
        lines.append("tags: " + ", ".join(f"{tag} ({count})" for tag, count in summary.tags))
    if summary.phrases:
        lines.append("about: " + ", ".join(summary.phrases))
    if summary.text:
        lines += [f"written by {summary.model}, which may be wrong:", summary.text]
    return "\n".join([*lines, *(f"- {sentence.text} ({sentence.source_label})" for sentence in summary.sentences)])


def _chunk_rows(hits: Sequence[Hit]) -> Iterator[ChunkRow]:
    document_ids: dict[tuple[str, str], int] = {}
    for hit in hits:
        document_id = document_ids.setdefault((hit.tool, hit.uri), len(document_ids))
        yield ChunkRow(0, document_id, hit.uri, hit.title, hit.date, hit.tags, hit.content_hash, hit.chunk)


def _candidates(hits: Sequence[Hit], query_weights: Mapping[str, float]) -> Iterator[_SentenceCandidate]:
    texts: set[str] = set()
    for rank, hit in enumerate(hits, 1):
        for position, text in enumerate(_split_sentences(hit.chunk.text[:_MAX_HIT_CHARS])):
            terms = frozenset(
                term.spelling
                for run in analyzer.runs(text)
                for term in analyzer.terms(run)
                if not term.role and (term.spelling in query_weights or not _is_filler(term.spelling))
            )
            if len(terms) > 1 and text not in texts:
                texts.add(text)
                yield _SentenceCandidate(Sentence(text, hit.uri, hit.title, hit.date), rank, position, terms)


def _is_filler(spelling: str) -> bool:
    # Not checked for query terms: "cause" is a filler in general, but not for a user who searches for it.
    return spelling in _FILLER_LEMMAS or spelling in stopwords.ENGLISH or spelling.isdecimal()


def _split_sentences(text: str) -> Iterator[str]:
    text = plain_text(text)
    for start, end in sentence_ranges(text):
        sentence = " ".join(_JAPANESE_LINE_BREAK.sub("", LIST_MARKER.sub("", text[start:end])).split())
        min_chars = _MIN_SENTENCE_CHARS[detect_language(sentence)]
        if min_chars <= len(sentence) <= _MAX_SENTENCE_CHARS and not _TAG_LINE.match(sentence):
            yield sentence


def _select_sentences(candidates: Sequence[_SentenceCandidate], query_weights: Mapping[str, float]) -> list[Sentence]:
    hit_ranks: dict[str, set[int]] = {}
    for candidate in candidates:
        for term in candidate.terms:
            hit_ranks.setdefault(term, set()).add(candidate.hit_rank)
    term_weights = {
        term: log(1 + len(ranks)) + _QUERY_TERM_BONUS * query_weights.get(term, 0.0)
        for term, ranks in hit_ranks.items()
    }
    remaining, selected = list(candidates), list[_SentenceCandidate]()
    uses_per_hit: Counter[int] = Counter()
    best = 0.0

    def score(candidate: _SentenceCandidate) -> float:
        # Divided by the root of the term count: length alone must not win. Sentences of better hits count more.
        term_score = sum(term_weights[term] for term in candidate.terms) / sqrt(3 + len(candidate.terms))
        return (
            term_score
            * (_FIRST_SENTENCE_FACTOR if candidate.position == 0 else 1.0)
            * float(_SAME_HIT_FACTOR ** uses_per_hit[candidate.hit_rank])
            / (1 + 0.05 * (candidate.hit_rank - 1))
        )

    while remaining and len(selected) < _MAX_SENTENCES:
        candidate = max(remaining, key=lambda candidate: (score(candidate), -candidate.hit_rank, -candidate.position))
        best = max(best, score(candidate))
        if len(selected) >= _MIN_SENTENCES and score(candidate) < _MIN_SCORE_SHARE * best:
            break
        remaining.remove(candidate)
        selected.append(candidate)
        uses_per_hit[candidate.hit_rank] += 1
        for term in candidate.terms:
            term_weights[term] *= _REPEATED_TERM_FACTOR
    return [
        candidate.sentence
        for candidate in sorted(selected, key=lambda candidate: (candidate.hit_rank, candidate.position))
    ]
