"""Complete the explanations of hits with what only their texts tell: the fields of terms, and the best sentence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from bunko.embedders import embed_and_check
from bunko.errors import EmbedderError
from bunko.protocols import Embedder
from bunko.search.nearest_sentence import nearest_heading, nearest_sentence
from bunko.search.passages import split_author
from bunko.text import analyzer
from bunko.text.normalise import normalise
from bunko.text.sentences import sentence_ranges
from bunko.types import Hit, TermScore

# A longer sentence is a table or a list of data, and its beginning says enough.
_MAX_SENTENCE_CHARS = 300
# Sentences of a hit that are compared with the query by their vectors.
_MAX_COMPARED = 40


def explain_texts(hits: Sequence[Hit], query: str, embedder: Embedder | None) -> list[Hit]:
    """Return hits whose explanations name the fields of their terms and their best sentence.

    Without a term, sentences are compared with the query by an embedder, unless that sends them to a server.
    """
    return [_explain(hit, query, embedder) for hit in hits]


def _explain(hit: Hit, query: str, embedder: Embedder | None) -> Hit:
    if hit.explanation is None:
        return hit
    fields = [(name, _Words(text)) for name, text in _fields(hit)]
    terms = tuple(
        replace(term, fields=tuple(dict.fromkeys(name for name, words in fields if words.contain(term))))
        for term in hit.explanation.term_scores
    )
    sentences = _sentences(hit.chunk.text, hit.chunk.heading)
    best = _best_by_terms(sentences, terms)
    if not best and sentences and embedder is not None and not embedder.is_remote:
        best = _best_by_vectors(sentences[:_MAX_COMPARED], query, embedder)
    nearest = nearest_sentence(hit) or nearest_heading(hit)
    return replace(
        hit,
        explanation=replace(
            hit.explanation,
            term_scores=terms,
            best_sentence=_shorten(best),
            nearest_sentence=nearest,
            sentence_score=hit.explanation.sentence_score if nearest else None,
        ),
    )


def _fields(hit: Hit) -> list[tuple[str, str]]:
    """Return the parts of a hit that are indexed; its text without its headings."""
    chunk = hit.chunk
    headings = set(chunk.heading_path)
    text = "\n".join(line for line in chunk.text.splitlines() if line.strip("# \t") not in headings)
    author, own_headings = split_author(hit)
    fields = [("title", hit.title), ("author", author), *(("heading", heading) for heading in own_headings)]
    return [*fields, ("text", text)]


class _Words:
    """The words of a text, to look terms up in."""

    def __init__(self, text: str) -> None:
        self._keys = frozenset(analyzer.term_keys(text))
        self._text = normalise(text).lower()

    def contain(self, term: TermScore) -> bool:
        return term.term in self._text if term.role == "gram" else analyzer.term_key(term.term) in self._keys


def _sentences(text: str, heading: str) -> list[str]:
    body = text.removeprefix(heading) if heading and text != heading else text
    sentences = (body[start:end].strip() for start, end in sentence_ranges(body))
    return [sentence for sentence in sentences if any(char.isalnum() for char in sentence)]


def _best_by_terms(sentences: Sequence[str], terms: Sequence[TermScore]) -> str:
    """Return the first sentence whose terms add most to the score; empty if none has any."""
    best_sentence, best_score = "", 0.0
    for sentence in sentences:
        words = _Words(sentence)
        score = sum(term.score for term in terms if words.contain(term))
        if score > best_score:
            best_sentence, best_score = sentence, score
    return best_sentence


def _best_by_vectors(sentences: Sequence[str], query: str, embedder: Embedder) -> str:
    """Return the sentence that is nearest to the query."""
    try:
        similarities = embed_and_check(embedder, list(sentences)) @ embed_and_check(embedder, [query], query=True)[0]
    except EmbedderError:  # the search itself has told of it
        return ""
    return sentences[int(similarities.argmax())]


def _shorten(sentence: str) -> str:
    return sentence if len(sentence) <= _MAX_SENTENCE_CHARS else sentence[:_MAX_SENTENCE_CHARS].rstrip() + "…"
