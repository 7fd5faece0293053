"""Chunks in, the phrases that best say what they are about out: each covers texts that the ones before it did not."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from bunko.records import Found
from bunko.text import analyzer
from bunko.text.language import language
from bunko.text.nouns import Noun, is_boilerplate, nouns, plain, verbs

# What a phrase earns where it stands: a title speaks for its document, a heading for its section.
_TITLE, _HEADING, _BODY = 3.0, 2.0, 1.0
# A chunk's beginning says what it is about; parsing all of a long one would cost more than it tells.
_READ = 600
# Only the best by themselves take part in the choice.
_CANDIDATES = 400
# A text that one phrase covers is worth this much to the next; a word used again costs as much.
_COVERED = 0.4
_REPEATED = 0.5
# How much of a phrase's count is taken off it for standing inside a longer one.
_NESTED = 0.7
# An English word found in a verb's place this often among its uses is a verb.
_VERB = 0.25
# A single English word rarely names a topic; a name or an acronym may.
_LENGTHS = {1: 0.3, 2: 1.0, 3: 1.0, 4: 0.9}
_NAME = 0.6


@dataclass(frozen=True, slots=True)
class Phrase:
    """A few words that say what some texts are about; the best weighs 1."""

    text: str
    weight: float
    language: Literal["ja", "en"]


@dataclass(slots=True)
class _Candidate:
    form: tuple[str, ...]
    spellings: Counter[str] = field(default_factory=Counter)
    places: dict[int, float] = field(default_factory=dict)  # which text → what standing there earns
    alone: set[int] = field(default_factory=set)  # the places where it is no part of a longer phrase
    longer: set[tuple[str, ...]] = field(default_factory=set)
    score: float = 0.0

    def text(self) -> str:
        """Return the usual spelling; in doubt the one without capitals, which are often a heading's."""
        return max(self.spellings, key=lambda one: (self.spellings[one], one.islower(), one))

    def count(self) -> float:
        return sum(self.places.values())


def phrases(chunks: Iterable[Found], *, against: Iterable[Iterable[Found]] = (), limit: int = 12) -> list[Phrase]:
    """Return the key phrases of some chunks, best first; `against` is what they are to be told from, tool by tool."""
    texts = _Texts()
    for chunk in chunks:
        texts.add(chunk)
    candidates = texts.candidates()
    others = [_Held(found) for found in against]
    for one in candidates:
        one.score = _worth(one, texts) * _distinct(one, texts.size, others)
    best = sorted((one for one in candidates if one.score > 0), key=lambda one: (-one.score, one.form))
    return _chosen(best[:_CANDIDATES], limit)


class _Texts:
    """Collects candidates from titles, headings and bodies; each is one place, so that repeating earns nothing."""

    def __init__(self) -> None:
        self.size = 0
        self._found: dict[str, _Candidate] = {}
        self._seen: set[tuple[int, str]] = set()
        self._verbs: Counter[str] = Counter()
        self._uses: Counter[str] = Counter()

    def add(self, one: Found) -> None:
        """Read one chunk with what stands above it."""
        self.size += 1
        chunk = one.chunk
        self._read(one.document_id, one.title, _TITLE)
        for heading in chunk.heading_path:
            if heading != one.title:
                self._read(one.document_id, heading, _HEADING)
        body = chunk.text
        if chunk.heading and body.startswith(chunk.heading):
            body = body[len(chunk.heading) :]
        self._read(one.document_id, plain(body[: 2 * _READ])[:_READ], _BODY)

    def candidates(self) -> list[_Candidate]:
        """Return what was found, without what is met only once where there is more."""
        found = list(self._found.values())
        repeated = [one for one in found if len(one.places) > 1]
        return repeated if len(repeated) >= 3 * _ENOUGH else found

    def is_verb(self, form: str) -> bool:
        """Say whether an English word stands where verbs do."""
        return self._verbs[form] > _VERB * self._uses[form]

    def find(self, form: tuple[str, ...]) -> _Candidate | None:
        """Return one candidate."""
        return self._found.get(_name(form))

    def _read(self, document: int, text: str, earns: float) -> None:
        if not text.strip() or is_boilerplate(text):
            return
        if earns != _BODY:
            text = plain(text)
        if (document, text) in self._seen:
            return  # the title again
        self._seen.add((document, text))
        place = len(self._seen)
        self._verbs.update(verbs(text))
        for noun in nouns(text):
            self._note(noun, place, earns)

    def _note(self, noun: Noun, place: int, earns: float) -> None:
        if len(noun.form) == 1:
            self._uses[noun.form[0]] += 1
        one = self._found.setdefault(_name(noun.form), _Candidate(noun.form))
        one.spellings[noun.text] += 1
        one.places[place] = earns
        one.longer.update(noun.longer)
        if not noun.longer:
            one.alone.add(place)


# Phrases that a description or a set of questions needs: with three times as many to choose from, chance is left out.
_ENOUGH = 12


def _name(form: Sequence[str]) -> str:
    # ロード バランサー and ロードバランサー are one phrase, file name and filename too.
    return "".join(form)


def _worth(one: _Candidate, texts: _Texts) -> float:
    count = one.count()
    nested = max((other.count() for form in one.longer if (other := texts.find(form))), default=0.0)
    if len(one.form) == 1:
        # Childhood, in the names of many diseases, is no topic of its own.
        nested = max(nested, count - sum(one.places[place] for place in one.alone))
    nested = min(nested, count)
    if one.text().isascii():
        nested *= nested / count  # the longer English one often ends with a verb: load balancer sends
    count -= _NESTED * nested
    return count * _shape(one, texts)


def _shape(one: _Candidate, texts: _Texts) -> float:
    """Return how well the form of a phrase suits a topic's name."""
    text = one.text()
    length = _LENGTHS.get(len(one.form), 0.8)
    if not text.isascii():
        # A katakana or kanji word of six characters says as much as two words.
        return max(length, min(1.0, len(text) / 6))
    if texts.is_verb(one.form[0]) or texts.is_verb(one.form[-1]) or text.split()[-1].endswith(("ly", "ed")):
        return 0.0
    return _NAME if len(one.form) == 1 and not text.islower() and not text.istitle() else length


class _Held:
    """Which words each chunk of another tool holds."""

    def __init__(self, chunks: Iterable[Found]) -> None:
        self._rows: dict[int, set[int]] = defaultdict(set)
        self._size = 0
        for one in chunks:
            self._size += 1
            for key in set(analyzer.keys(one.chunk.in_context(one.title)[: 2 * _READ])):
                self._rows[key].add(self._size)

    def share(self, keys: Sequence[int]) -> float:
        """Return the share of chunks that hold all of these words."""
        if not keys or not self._size:
            return 0.0
        return len(set.intersection(*(self._rows.get(key, set()) for key in keys))) / self._size


def _distinct(one: _Candidate, size: int, others: Sequence[_Held]) -> float:
    """Return how much a phrase belongs to these chunks rather than to others: 1 if only here."""
    keys = analyzer.keys(one.text())
    elsewhere = max((other.share(keys) for other in others), default=0.0)
    here = min(1.0, len(one.places) / max(1, size))
    share: float = here / (here + elsewhere) if elsewhere else 1.0
    return share * share


def _chosen(candidates: list[_Candidate], limit: int) -> list[Phrase]:
    """Take the best, then the best of what is left once the covered texts count less, and so on."""
    covered: dict[int, float] = defaultdict(lambda: 1.0)
    used: Counter[str] = Counter()
    taken: list[tuple[_Candidate, float]] = []
    left = list(candidates)

    def gain(one: _Candidate) -> float:
        fresh = sum(worth * covered[place] for place, worth in one.places.items()) / one.count()
        again = sum(used[form] for form in set(one.form)) / len(set(one.form))
        return one.score * fresh * float(_REPEATED**again)

    while left and len(taken) < limit:
        best = max(left, key=gain)
        taken.append((best, gain(best)))
        for place in best.places:
            covered[place] *= _COVERED
        used.update(set(best.form))
        name = _name(best.form).casefold()
        left = [one for one in left if name not in (other := _name(one.form).casefold()) and other not in name]
    top = taken[0][1] if taken else 1.0
    return [
        Phrase(text, round(weight / top, 4), "ja" if language(text) == "ja" else "en")
        for one, weight in taken
        for text in (one.text(),)
    ]
