"""Chunks of a tool in, questions whose answers are known out: what it calls its own texts, typed as people type.

The right answer is the document that the words came from. What stands in many documents asks for none of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

from bunko.evaluation.dataset import JudgedQuery
from bunko.evaluation.query_variants import AS_WRITTEN, VARIANT_KINDS, loanwords, variants
from bunko.indexes.embedded import bm25
from bunko.indexes.embedded.bm25 import QueryTerm
from bunko.indexes.embedded.snapshot import Snapshot
from bunko.library.tool_routing import make_questions
from bunko.protocols import Store
from bunko.records import ChunkRow
from bunko.search.keyphrases import extract_phrases
from bunko.text import analyzer, ngrams
from bunko.text.language import detect_language
from bunko.text.normalise import normalise

# A name says more than a mention does.
NAMED_GRADE, MENTIONED_GRADE = 3.0, 1.0
# Questions that so many documents answer are about none of them.
_MAX_ANSWERS = 3
# From each document: headings, and key phrases, by themselves and some of them together. A name stands once in each
# chunk below it, however long that is; what a text is about is repeated in it. Only both together keep a balance
# between settings that count repetition and settings that do not.
_HEADINGS_PER_DOCUMENT, _PHRASES_PER_DOCUMENT = 2, 3
NAMES, TOPICS = "names", "topics"
_VARIANTS_PER_TEXT = 2  # of each text, beside itself
_MIN_LENGTH, _MAX_LENGTH = 3, 80
_LOANWORD_CHARACTERS = 300  # characters of a chunk that are looked through for loanwords
# Chunks that are looked at for where a text stands; words of more stand nearly everywhere.
_MAX_ROWS = 60
_FULL_OVERLAP = 0.999

# Where a text stands, and how much it says about each document; None: in more than can be told.
MentionLookup = Callable[[str], Mapping[str, float] | None]


@dataclass(frozen=True, slots=True)
class KnownItem:
    """A question, and the document whose words it is made of."""

    query: JudgedQuery
    origin_uri: str
    family: str  # names: made from headings; topics: made from key phrases


def known_items(chunks: Sequence[ChunkRow], find_mentions: MentionLookup, *, limit: int) -> list[KnownItem]:
    """Return at most so many questions about the documents of some chunks, in every kind that their words allow."""
    english = loanwords(one.chunk.text_in_context(one.title)[:_LOANWORD_CHARACTERS] for one in chunks)
    used: Counter[str] = Counter()
    found: list[KnownItem] = []
    asked: set[str] = set()
    for text, family, origins in _query_texts(chunks):
        if len(found) >= limit:
            break
        answers = _answer_grades(text, origins, find_mentions)
        if answers is None:
            continue
        made = variants(text, english)
        # Kinds that few texts allow come first, so that each has its share.
        chosen = sorted(made, key=lambda kind: (used[kind], VARIANT_KINDS.index(kind)))[:_VARIANTS_PER_TEXT]
        for kind, written in [(AS_WRITTEN, text), *((kind, made[kind]) for kind in chosen)]:
            grades = answers if kind == AS_WRITTEN else _answer_grades(written, answers, find_mentions)
            if grades is None or written in asked:
                continue
            asked.add(written)
            used[kind] += 1
            number = len(found) + 1
            spoken = detect_language(written) or "other"
            query = JudgedQuery(str(number), written, grades, language=spoken, kind=kind)
            found.append(KnownItem(query, next(iter(origins)), family))
    return found[:limit]


def _query_texts(chunks: Sequence[ChunkRow]) -> list[tuple[str, str, dict[str, float]]]:
    """Return what documents call themselves and are about, with the documents that are, one text of each in turn."""
    documents: dict[str, list[ChunkRow]] = {}
    for one in chunks:
        documents.setdefault(one.uri, []).append(one)
    origins: dict[str, dict[str, float]] = {}
    rounds: list[list[tuple[str, str]]] = [[], []]
    for uri in sorted(documents, key=_shuffle_key):
        own = documents[uri]
        names = [*make_questions(own, limit=_HEADINGS_PER_DOCUMENT), "", ""]
        topics = [one.text for one in extract_phrases(own, limit=_PHRASES_PER_DOCUMENT)]
        together = " ".join(topics) if len(topics) > 1 else ""
        texts = ((names[0], NAMES), (together, TOPICS), (names[1], NAMES), ("".join(topics[:1]), TOPICS))
        for number, (text, family) in zip((0, 0, 1, 1), texts, strict=True):
            if not _MIN_LENGTH <= len(text) <= _MAX_LENGTH:
                continue
            known = origins.setdefault(text, {})
            if not known:
                rounds[number].append((text, family))
            known[uri] = max(NAMED_GRADE if family == NAMES else MENTIONED_GRADE, known.get(uri, 0.0))
    return [(*one, origins[one[0]]) for of_round in rounds for one in of_round]


def _answer_grades(text: str, origins: Mapping[str, float], find_mentions: MentionLookup) -> dict[str, float] | None:
    stands = find_mentions(text)
    if stands is None:
        return None
    found = dict(origins)
    for uri, grade in stands.items():
        found[uri] = max(grade, found.get(uri, 0.0))
    return found if len(found) <= _MAX_ANSWERS else None


def split_by_document(items: Sequence[KnownItem]) -> tuple[list[KnownItem], list[KnownItem]]:
    """Part questions by their documents, so that no document answers in both; what does is left out."""
    documents = sorted({uri for one in items for uri in one.query.grades}, key=_shuffle_key)
    first = set(documents[::2])
    one, other = [], []
    for item in items:
        inside = [uri in first for uri in item.query.grades]
        if all(inside):
            one.append(item)
        elif not any(inside):
            other.append(item)
    return one, other


def _shuffle_key(uri: str) -> bytes:
    # Neighbours in a folder are alike: each half should have its share of them.
    return sha256(uri.encode("utf-8", "surrogatepass")).digest()


class MentionFinder:
    """Says where in one state of a tool a text stands."""

    def __init__(self, store: Store, snapshot: Snapshot) -> None:
        self._store, self._snapshot, self._masks = store, snapshot, snapshot.masks(None)

    def find_mentions(self, text: str) -> dict[str, float] | None:
        """Return the documents that a text stands in, as a name or in passing; None where there are too many.

        A chunk with all its words says as much as one with the text itself: who is to say which of them was meant?
        """
        pairs = [QueryTerm(gram.key, 1.0, is_gram=True) for gram in ngrams.query_grams(text)]
        if not pairs:
            return {}
        rows = bm25.rank_gram_overlap(self._snapshot, pairs, _MAX_ROWS, min_share=_FULL_OVERLAP, masks=self._masks).rows
        spread = self._rows_with_all_words(text)
        if _MAX_ROWS in (len(rows), len(spread)):
            return None
        found: dict[str, float] = {one.uri: MENTIONED_GRADE for one in self._chunk_rows(spread)}
        sought = _fold_text(text)
        for one in self._chunk_rows(rows):
            if grade := _mention_grade(sought, one):
                found[one.uri] = max(grade, found.get(one.uri, 0.0))
        return found

    def _rows_with_all_words(self, text: str) -> list[int]:
        wanted = [QueryTerm(key, 1.0) for key in dict.fromkeys(analyzer.term_keys(text))]
        # Where a long text does not count less, what holds every word is among the first.
        rows = bm25.rank_terms(self._snapshot, wanted, _MAX_ROWS, k1=0.0, b=0.0, masks=self._masks).rows
        held = bm25.matches(self._snapshot, wanted, rows)
        return [row for row, has in zip(rows, held, strict=True) if has and all(has)]

    def _chunk_rows(self, rows: Sequence[int]) -> Iterable[ChunkRow]:
        return self._store.chunks([self._snapshot.chunk_id(row) for row in rows]).values()


def _mention_grade(folded_text: str, row: ChunkRow) -> float:
    if any(folded_text in _fold_text(name) for name in (row.title, *row.chunk.heading_path)):
        return NAMED_GRADE
    return MENTIONED_GRADE if folded_text in _fold_text(row.chunk.text) else 0.0


def _fold_text(text: str) -> str:
    return " ".join(normalise(text).casefold().split())
