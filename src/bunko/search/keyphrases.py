"""Chunks in, the phrases that best say what they are about out: each covers texts that the ones before it did not."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from bunko.records import ChunkRow
from bunko.text import analyzer
from bunko.text.language import detect_language
from bunko.text.nouns import Noun, is_boilerplate, nouns, plain_text, verbs

# What a phrase earns where it stands: a title speaks for its document, a heading for its section.
_TITLE_WEIGHT, _HEADING_WEIGHT, _BODY_WEIGHT = 3.0, 2.0, 1.0
# A chunk's beginning says what it is about; parsing all of a long one would cost more than it tells.
_MAX_BODY_CHARS = 600
# Only the best by themselves take part in the choice.
_MAX_CANDIDATES = 400
# A text that one phrase covers is worth this much to the next; a word used again costs as much.
_COVERED_TEXT_FACTOR = 0.4
_REPEATED_WORD_FACTOR = 0.5
# How much of a phrase's count is taken off it for standing inside a longer one.
_NESTED_DISCOUNT = 0.7
# An English word found in a verb's place this often among its uses is a verb.
_MIN_VERB_SHARE = 0.25
# A single English word rarely names a topic; a name or an acronym may.
_LENGTH_WEIGHTS = {1: 0.3, 2: 1.0, 3: 1.0, 4: 0.9}
_NAME_WEIGHT = 0.6


@dataclass(frozen=True, slots=True)
class Phrase:
    """A few words that say what some texts are about; the best weighs 1."""

    text: str
    weight: float
    language: Literal["ja", "en"]


@dataclass(slots=True)
class _PhraseCandidate:
    form: tuple[str, ...]
    spellings: Counter[str] = field(default_factory=Counter)
    text_weights: dict[int, float] = field(default_factory=dict)  # which text → what standing there earns
    standalone_texts: set[int] = field(default_factory=set)  # the places where it is no part of a longer phrase
    longer_forms: set[tuple[str, ...]] = field(default_factory=set)
    score: float = 0.0

    def text(self) -> str:
        """Return the usual spelling; in doubt the one without capitals, which are often a heading's."""
        return max(self.spellings, key=lambda one: (self.spellings[one], one.islower(), one))

    def total_weight(self) -> float:
        return sum(self.text_weights.values())


def extract_phrases(
    chunks: Iterable[ChunkRow], *, background: Iterable[Iterable[ChunkRow]] = (), limit: int = 12
) -> list[Phrase]:
    """Return the key phrases of some chunks, best first; `against` is what they are to be told from, tool by tool."""
    texts = _CandidateCollector()
    for chunk in chunks:
        texts.add(chunk)
    candidates = texts.candidates()
    others = [_BackgroundTerms(found) for found in background]
    for one in candidates:
        one.score = _base_score(one, texts) * _distinctiveness(one, texts.chunk_count, others)
    best = sorted((one for one in candidates if one.score > 0), key=lambda one: (-one.score, one.form))
    return _select_phrases(best[:_MAX_CANDIDATES], limit)


class _CandidateCollector:
    """Collects candidates from titles, headings and bodies; each is one place, so that repeating earns nothing."""

    def __init__(self) -> None:
        self.chunk_count = 0
        self._by_key: dict[str, _PhraseCandidate] = {}
        self._seen_texts: set[tuple[int, str]] = set()
        self._verb_counts: Counter[str] = Counter()
        self._word_counts: Counter[str] = Counter()

    def add(self, row: ChunkRow) -> None:
        """Read one chunk with what stands above it."""
        self.chunk_count += 1
        chunk = row.chunk
        self._read_text(row.document_id, row.title, _TITLE_WEIGHT)
        for heading in chunk.heading_path:
            if heading != row.title:
                self._read_text(row.document_id, heading, _HEADING_WEIGHT)
        body = chunk.text
        if chunk.heading and body.startswith(chunk.heading):
            body = body[len(chunk.heading) :]
        self._read_text(row.document_id, plain_text(body[: 2 * _MAX_BODY_CHARS])[:_MAX_BODY_CHARS], _BODY_WEIGHT)

    def candidates(self) -> list[_PhraseCandidate]:
        """Return what was found, without what is met only once where there is more."""
        found = list(self._by_key.values())
        repeated = [one for one in found if len(one.text_weights) > 1]
        return repeated if len(repeated) >= 3 * _PHRASES_PER_TOOL else found

    def is_verb(self, form: str) -> bool:
        """Say whether an English word stands where verbs do."""
        return self._verb_counts[form] > _MIN_VERB_SHARE * self._word_counts[form]

    def find(self, form: tuple[str, ...]) -> _PhraseCandidate | None:
        """Return one candidate."""
        return self._by_key.get(_phrase_key(form))

    def _read_text(self, document_id: int, text: str, weight: float) -> None:
        if not text.strip() or is_boilerplate(text):
            return
        if weight != _BODY_WEIGHT:
            text = plain_text(text)
        if (document_id, text) in self._seen_texts:
            return  # the title again
        self._seen_texts.add((document_id, text))
        place = len(self._seen_texts)
        self._verb_counts.update(verbs(text))
        for noun in nouns(text):
            self._add_noun(noun, place, weight)

    def _add_noun(self, noun: Noun, text_number: int, weight: float) -> None:
        if len(noun.forms) == 1:
            self._word_counts[noun.forms[0]] += 1
        one = self._by_key.setdefault(_phrase_key(noun.forms), _PhraseCandidate(noun.forms))
        one.spellings[noun.text] += 1
        one.text_weights[text_number] = weight
        one.longer_forms.update(noun.longer_forms)
        if not noun.longer_forms:
            one.standalone_texts.add(text_number)


# Phrases that a description or a set of questions needs: with three times as many to choose from, chance is left out.
_PHRASES_PER_TOOL = 12


def _phrase_key(form: Sequence[str]) -> str:
    # ロード バランサー and ロードバランサー are one phrase, file name and filename too.
    return "".join(form)


def _base_score(candidate: _PhraseCandidate, collector: _CandidateCollector) -> float:
    count = candidate.total_weight()
    nested = max(
        (other.total_weight() for form in candidate.longer_forms if (other := collector.find(form))), default=0.0
    )
    if len(candidate.form) == 1:
        # Childhood, in the names of many diseases, is no topic of its own.
        nested = max(nested, count - sum(candidate.text_weights[place] for place in candidate.standalone_texts))
    nested = min(nested, count)
    if candidate.text().isascii():
        nested *= nested / count  # the longer English one often ends with a verb: load balancer sends
    count -= _NESTED_DISCOUNT * nested
    return count * _form_weight(candidate, collector)


def _form_weight(candidate: _PhraseCandidate, collector: _CandidateCollector) -> float:
    """Return how well the form of a phrase suits a topic's name."""
    text = candidate.text()
    length = _LENGTH_WEIGHTS.get(len(candidate.form), 0.8)
    if not text.isascii():
        # A katakana or kanji word of six characters says as much as two words.
        return max(length, min(1.0, len(text) / 6))
    if (
        collector.is_verb(candidate.form[0])
        or collector.is_verb(candidate.form[-1])
        or text.split()[-1].endswith(("ly", "ed"))
    ):
        return 0.0
    return _NAME_WEIGHT if len(candidate.form) == 1 and not text.islower() and not text.istitle() else length


class _BackgroundTerms:
    """Which words each chunk of another tool holds."""

    def __init__(self, chunks: Iterable[ChunkRow]) -> None:
        self._chunks_by_term: dict[int, set[int]] = defaultdict(set)
        self._chunk_count = 0
        for one in chunks:
            self._chunk_count += 1
            for key in set(analyzer.term_keys(one.chunk.text_in_context(one.title)[: 2 * _MAX_BODY_CHARS])):
                self._chunks_by_term[key].add(self._chunk_count)

    def share_containing(self, keys: Sequence[int]) -> float:
        """Return the share of chunks that hold all of these words."""
        if not keys or not self._chunk_count:
            return 0.0
        return len(set.intersection(*(self._chunks_by_term.get(key, set()) for key in keys))) / self._chunk_count


def _distinctiveness(candidate: _PhraseCandidate, chunk_count: int, backgrounds: Sequence[_BackgroundTerms]) -> float:
    """Return how much a phrase belongs to these chunks rather than to others: 1 if only here."""
    keys = analyzer.term_keys(candidate.text())
    elsewhere = max((other.share_containing(keys) for other in backgrounds), default=0.0)
    here = min(1.0, len(candidate.text_weights) / max(1, chunk_count))
    share: float = here / (here + elsewhere) if elsewhere else 1.0
    return share * share


def _select_phrases(candidates: list[_PhraseCandidate], limit: int) -> list[Phrase]:
    """Take the best, then the best of what is left once the covered texts count less, and so on."""
    covered: dict[int, float] = defaultdict(lambda: 1.0)
    used: Counter[str] = Counter()
    taken: list[tuple[_PhraseCandidate, float]] = []
    left = list(candidates)

    def gain(one: _PhraseCandidate) -> float:
        fresh = sum(worth * covered[place] for place, worth in one.text_weights.items()) / one.total_weight()
        again = sum(used[form] for form in set(one.form)) / len(set(one.form))
        return one.score * fresh * float(_REPEATED_WORD_FACTOR**again)

    while left and len(taken) < limit:
        best = max(left, key=gain)
        taken.append((best, gain(best)))
        for place in best.text_weights:
            covered[place] *= _COVERED_TEXT_FACTOR
        used.update(set(best.form))
        name = _phrase_key(best.form).casefold()
        left = [one for one in left if name not in (other := _phrase_key(one.form).casefold()) and other not in name]
    top = taken[0][1] if taken else 1.0
    return [
        Phrase(text, round(weight / top, 4), "ja" if detect_language(text) == "ja" else "en")
        for one, weight in taken
        for text in (one.text(),)
    ]
