"""Chunks of a tool in, questions whose answers are known out: what it calls its own texts, typed as people type.

The right answer is the document that the words came from. What stands in many documents asks for none of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

from bunko.evaluation.dataset import Query
from bunko.evaluation.query_variants import KINDS, WRITTEN, loanwords, variants
from bunko.indexes.embedded import bm25
from bunko.indexes.embedded.bm25 import Wanted
from bunko.indexes.embedded.snapshot import Snapshot
from bunko.library.tool_routing import questions
from bunko.protocols import Store
from bunko.records import Found
from bunko.search.keyphrases import phrases
from bunko.text import analyzer, ngrams
from bunko.text.language import language
from bunko.text.normalise import normalise

# A name says more than a mention does.
NAMED, MENTIONED = 3.0, 1.0
# Questions that so many documents answer are about none of them.
_MOST_ANSWERS = 3
# From each document: headings, and key phrases, by themselves and some of them together. A name stands once in each
# chunk below it, however long that is; what a text is about is repeated in it. Only both together keep a balance
# between settings that count repetition and settings that do not.
_HEADINGS, _PHRASES = 2, 3
NAMES, TOPICS = "names", "topics"
_VARIANTS = 2  # of each text, beside itself
_SHORTEST, _LONGEST = 3, 80
_READ = 300  # characters of a chunk that are looked through for loanwords
# Chunks that are looked at for where a text stands; words of more stand nearly everywhere.
_LOOKED = 60
_ALL = 0.999

# Where a text stands, and how much it says about each document; None: in more than can be told.
Standing = Callable[[str], Mapping[str, float] | None]


@dataclass(frozen=True, slots=True)
class Known:
    """A question, and the document whose words it is made of."""

    query: Query
    origin: str
    family: str  # names: made from headings; topics: made from key phrases


def known_items(chunks: Sequence[Found], standing: Standing, *, most: int) -> list[Known]:
    """Return at most so many questions about the documents of some chunks, in every kind that their words allow."""
    english = loanwords(one.chunk.in_context(one.title)[:_READ] for one in chunks)
    used: Counter[str] = Counter()
    found: list[Known] = []
    asked: set[str] = set()
    for text, family, origins in _spoken(chunks):
        if len(found) >= most:
            break
        answers = _answers(text, origins, standing)
        if answers is None:
            continue
        made = variants(text, english)
        # Kinds that few texts allow come first, so that each has its share.
        chosen = sorted(made, key=lambda kind: (used[kind], KINDS.index(kind)))[:_VARIANTS]
        for kind, written in [(WRITTEN, text), *((kind, made[kind]) for kind in chosen)]:
            grades = answers if kind == WRITTEN else _answers(written, answers, standing)
            if grades is None or written in asked:
                continue
            asked.add(written)
            used[kind] += 1
            number = len(found) + 1
            spoken = language(written) or "other"
            query = Query(str(number), written, grades, language=spoken, kind=kind)
            found.append(Known(query, next(iter(origins)), family))
    return found[:most]


def _spoken(chunks: Sequence[Found]) -> list[tuple[str, str, dict[str, float]]]:
    """Return what documents call themselves and are about, with the documents that are, one text of each in turn."""
    documents: dict[str, list[Found]] = {}
    for one in chunks:
        documents.setdefault(one.uri, []).append(one)
    origins: dict[str, dict[str, float]] = {}
    rounds: list[list[tuple[str, str]]] = [[], []]
    for uri in sorted(documents, key=_shuffled):
        own = documents[uri]
        names = [*questions(own, most=_HEADINGS), "", ""]
        topics = [one.text for one in phrases(own, limit=_PHRASES)]
        together = " ".join(topics) if len(topics) > 1 else ""
        texts = ((names[0], NAMES), (together, TOPICS), (names[1], NAMES), ("".join(topics[:1]), TOPICS))
        for number, (text, family) in zip((0, 0, 1, 1), texts, strict=True):
            if not _SHORTEST <= len(text) <= _LONGEST:
                continue
            known = origins.setdefault(text, {})
            if not known:
                rounds[number].append((text, family))
            known[uri] = max(NAMED if family == NAMES else MENTIONED, known.get(uri, 0.0))
    return [(*one, origins[one[0]]) for of_round in rounds for one in of_round]


def _answers(text: str, origins: Mapping[str, float], standing: Standing) -> dict[str, float] | None:
    stands = standing(text)
    if stands is None:
        return None
    found = dict(origins)
    for uri, grade in stands.items():
        found[uri] = max(grade, found.get(uri, 0.0))
    return found if len(found) <= _MOST_ANSWERS else None


def halves(items: Sequence[Known]) -> tuple[list[Known], list[Known]]:
    """Part questions by their documents, so that no document answers in both; what does is left out."""
    documents = sorted({uri for one in items for uri in one.query.grades}, key=_shuffled)
    first = set(documents[::2])
    one, other = [], []
    for item in items:
        inside = [uri in first for uri in item.query.grades]
        if all(inside):
            one.append(item)
        elif not any(inside):
            other.append(item)
    return one, other


def _shuffled(uri: str) -> bytes:
    # Neighbours in a folder are alike: each half should have its share of them.
    return sha256(uri.encode("utf-8", "surrogatepass")).digest()


class Places:
    """Says where in one state of a tool a text stands."""

    def __init__(self, store: Store, snapshot: Snapshot) -> None:
        self._store, self._snapshot, self._masks = store, snapshot, snapshot.masks(None)

    def of(self, text: str) -> dict[str, float] | None:
        """Return the documents that a text stands in, as a name or in passing; None where there are too many.

        A chunk with all its words says as much as one with the text itself: who is to say which of them was meant?
        """
        pairs = [Wanted(gram.key, 1.0, gram=True) for gram in ngrams.of_query(text)]
        if not pairs:
            return {}
        rows = bm25.overlap(self._snapshot, pairs, _LOOKED, least=_ALL, masks=self._masks).rows
        spread = self._with_every_word(text)
        if _LOOKED in (len(rows), len(spread)):
            return None
        found: dict[str, float] = {one.uri: MENTIONED for one in self._chunks(spread)}
        sought = _folded(text)
        for one in self._chunks(rows):
            if grade := _grade(sought, one):
                found[one.uri] = max(grade, found.get(one.uri, 0.0))
        return found

    def _with_every_word(self, text: str) -> list[int]:
        wanted = [Wanted(key, 1.0) for key in dict.fromkeys(analyzer.keys(text))]
        # Where a long text does not count less, what holds every word is among the first.
        rows = bm25.rank(self._snapshot, wanted, _LOOKED, k1=0.0, b=0.0, masks=self._masks).rows
        held = bm25.matches(self._snapshot, wanted, rows)
        return [row for row, has in zip(rows, held, strict=True) if has and all(has)]

    def _chunks(self, rows: Sequence[int]) -> Iterable[Found]:
        return self._store.chunks([self._snapshot.chunk_id(row) for row in rows]).values()


def _grade(sought: str, one: Found) -> float:
    if any(sought in _folded(name) for name in (one.title, *one.chunk.heading_path)):
        return NAMED
    return MENTIONED if sought in _folded(one.chunk.text) else 0.0


def _folded(text: str) -> str:
    return " ".join(normalise(text).casefold().split())
