"""Extract key phrases from chunks: each phrase covers texts that the better ones do not."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from bunko.readers.places import without_cells
from bunko.text import analyzer
from bunko.text.language import detect_language
from bunko.text.nouns import Noun, is_boilerplate, nouns, plain_text, verbs
from bunko.types.records import ChunkRow

# Weight of a phrase by its position: a title describes its document, a heading its section.
_TITLE_WEIGHT, _HEADING_WEIGHT, _BODY_WEIGHT = 3.0, 2.0, 1.0
# The beginning of a chunk tells its subject; parsing all of a long one costs more than it adds.
_MAX_BODY_CHARS = 600
# Only the candidates with the best scores take part in the selection.
_MAX_CANDIDATES = 400
# A name on a map: half as many characters if they are Japanese ones. It stands for some of the documents at least.
_MAX_NAME_WIDTH, _MIN_SHARE_OF_NAME, _MAX_WEIGHT_OF_NAME = 28, 0.06, 2.0
_WORD_WEIGHT_OF_NAME = 0.5  # of a single word in a title, which is enough where others stand around it
_BODY_WEIGHT_OF_NAME = 0.7  # of what is in no title
# What is left of code that stands in the midst of a text.
_CODE_WORDS = frozenset("class const def export from function import interface let return type var".split())
# Between 0, where names say what is frequent, and 1, where they say what is nowhere else, however rare it is here.
_DISTINCTNESS = 0.75
# Of the beginning of a text, which has to be parsed for thousands of documents.
_MAX_BEGINNING_CHARS = 240
# A text already covered by a phrase counts this much for the next; a phrase with a repeated word this much.
_COVERED_TEXT_FACTOR = 0.4
_REPEATED_WORD_FACTOR = 0.5
# The share of a phrase's count inside longer phrases that is subtracted.
_NESTED_DISCOUNT = 0.7
# An English word that is used as a verb at least this often is a verb.
_MIN_VERB_SHARE = 0.25
# A single English word rarely names a topic; a name or an acronym may.
_LENGTH_WEIGHTS = {1: 0.3, 2: 1.0, 3: 1.0, 4: 0.9}
_NAME_WEIGHT = 0.6


@dataclass(frozen=True, slots=True)
class Phrase:
    """A key phrase of some texts; the best has weight 1."""

    text: str
    weight: float
    language: Literal["ja", "en"]


@dataclass(slots=True)
class _PhraseCandidate:
    form: tuple[str, ...]
    spellings: Counter[str] = field(default_factory=Counter)
    text_weights: dict[int, float] = field(default_factory=dict)  # text number → weight of the phrase there
    standalone_texts: set[int] = field(default_factory=set)  # texts where it is not part of a longer phrase
    longer_forms: set[tuple[str, ...]] = field(default_factory=set)
    score: float = 0.0

    def text(self) -> str:
        """Return the most frequent spelling; among equals the lowercase one, as capitals often come from headings."""
        return max(self.spellings, key=lambda spelling: (self.spellings[spelling], spelling.islower(), spelling))

    def total_weight(self) -> float:
        return sum(self.text_weights.values())


def extract_phrases(
    chunks: Iterable[ChunkRow], *, background: Iterable[Iterable[ChunkRow]] = (), limit: int = 12
) -> list[Phrase]:
    """Return the key phrases of chunks, best first; `background` holds the chunks of other tools to compare with."""
    collector = _CandidateCollector()
    for chunk in chunks:
        collector.add(chunk)
    candidates = collector.candidates()
    backgrounds = [_BackgroundTerms(tool_chunks) for tool_chunks in background]
    for candidate in candidates:
        candidate.score = _base_score(candidate, collector) * _distinctiveness(
            candidate, collector.chunk_count, backgrounds
        )
    best = sorted(
        (candidate for candidate in candidates if candidate.score > 0),
        key=lambda candidate: (-candidate.score, candidate.form),
    )
    return _select_phrases(best[:_MAX_CANDIDATES], limit)


def name_groups(
    documents: Sequence[tuple[str, str]],
    levels: Sequence[tuple[Sequence[int], Mapping[int, str]]],
    language: Literal["ja", "en"],
) -> list[dict[int, str]]:
    """Return for each level the names of its groups: phrases that are frequent in one and rare in the others.

    `documents` are titles and beginnings of texts in a language. Each level says to which group each of them belongs,
    and which names groups have in another language. No name is like that of another group of its level, or of a coarser
    level before it around the same documents.
    """
    if not documents:
        return [{} for _ in levels]
    collector = _CandidateCollector()
    for number, (title, beginning) in enumerate(documents):
        collector.add_document(number, title, beginning)
    text = "\n".join(part[:_MAX_BEGINNING_CHARS] for document in documents for part in document)
    candidates = collector.candidates()
    form_weights = np.array([_name_weight(candidate, collector, language) for candidate in candidates], np.float32)
    row_of = {_phrase_key(candidate.form): row for row, candidate in enumerate(candidates)}
    document_of = collector.document_of_text
    uses: dict[tuple[int, int], float] = {}  # the weight of a phrase in a document, its title being read first
    for row, candidate in enumerate(candidates):
        for number, weight in candidate.text_weights.items():
            uses.setdefault((row, document_of[number]), min(weight, _MAX_WEIGHT_OF_NAME))
    rows, owners = np.array(list(uses), np.intp).reshape(-1, 2).T
    weights = np.array(list(uses.values()), np.float32)
    names: list[dict[int, str]] = []
    above: list[list[str]] = [[] for _ in documents]  # the names of the coarser groups around each document
    for level, other_names in levels:
        group_of = np.array(level, np.intp)
        members = [np.flatnonzero(group_of == group).tolist() for group in range(int(group_of.max(initial=0)) + 1)]
        counts = np.zeros((len(candidates), len(members)), np.float32)
        shares = np.zeros_like(counts)
        sizes = np.array([max(1, len(inside)) for inside in members], np.float32)
        np.add.at(counts, (rows, group_of[owners]), 1)
        np.add.at(shares, (rows, group_of[owners]), weights / sizes[group_of[owners]])
        rates = shares.copy()
        for row, candidate in enumerate(candidates):
            longer = [row_of[key] for form in candidate.longer_forms if (key := _phrase_key(form)) in row_of]
            if longer:
                rates[row] -= shares[longer].max(axis=0)
        rates = np.where(counts >= np.maximum(2, _MIN_SHARE_OF_NAME * sizes), np.maximum(rates, 0), 0)
        distinctness = rates / np.maximum(rates.sum(axis=1, keepdims=True), 1e-9)
        scores = rates * distinctness**_DISTINCTNESS * form_weights[:, None]
        used: dict[int, str] = {}
        for place in np.argsort(-scores, axis=None, kind="stable")[: _MAX_CANDIDATES * len(members)].tolist():
            row, group = divmod(place, len(members))
            if not scores[row, group]:
                break
            if group in used:
                continue
            name = candidates[row].text()
            others = [*used.values(), *(other for place, other in other_names.items() if place != group)]
            if any(_is_like(name, other) for other in (*others, *above[members[group][0]])) or _is_cut(name, text):
                continue
            used[group] = name
            for document in members[group]:
                above[document].append(name)
        names.append(used)
    return names


def _name_weight(candidate: _PhraseCandidate, collector: _CandidateCollector, language: str) -> float:
    """Return how well a phrase suits as a name."""
    text = candidate.text()
    is_foreign = language == "en" and not text.isascii()
    if is_foreign or _width(text) > _MAX_NAME_WIDTH or text.partition(" ")[0] in _CODE_WORDS:
        return 0.0
    weight = _form_weight(candidate, collector)
    is_in_title = max(candidate.text_weights.values()) == _TITLE_WEIGHT
    return max(weight, _WORD_WEIGHT_OF_NAME) if weight and is_in_title else weight * _BODY_WEIGHT_OF_NAME


_KATAKANA = "[ァ-ヺー]"


def _is_cut(name: str, text: str) -> bool:
    """Return whether a name is mostly a piece of longer words in katakana, which the dictionary does not have."""
    before = f"(?<!{_KATAKANA})" if re.match(_KATAKANA, name) else ""
    after = f"(?!{_KATAKANA})" if re.search(f"{_KATAKANA}$", name) else ""
    if not before and not after:
        return False
    return 2 * len(re.findall(before + re.escape(name) + after, text)) < text.count(name)


def _is_like(name: str, other: str) -> bool:
    """Return whether two names can hardly be told apart: equal, or one is most of the other."""
    shorter, longer = sorted((name.replace(" ", "").casefold(), other.replace(" ", "").casefold()), key=len)
    return shorter in longer and 2 * len(shorter) > len(longer)


def _width(text: str) -> int:
    return sum(1 if char.isascii() else 2 for char in text)


class _CandidateCollector:
    """Collects candidates from titles, headings and bodies; repetition within one text adds no weight."""

    def __init__(self) -> None:
        self.chunk_count = 0
        self.document_of_text = [-1]  # texts are counted from 1 on
        self._by_key: dict[str, _PhraseCandidate] = {}
        self._seen_texts: set[tuple[int, str]] = set()
        self._verb_counts: Counter[str] = Counter()
        self._word_counts: Counter[str] = Counter()

    def add_document(self, number: int, title: str, beginning: str) -> None:
        """Add a document by its title and the beginning of its text."""
        for text, weight in ((title, _TITLE_WEIGHT), (plain_text(beginning)[:_MAX_BEGINNING_CHARS], _BODY_WEIGHT)):
            self._read_text(number, text, weight)
            self.document_of_text += [number] * (len(self._seen_texts) + 1 - len(self.document_of_text))

    def add(self, row: ChunkRow) -> None:
        """Add a chunk with its title and headings."""
        self.chunk_count += 1
        chunk = row.chunk
        self._read_text(row.document_id, row.title, _TITLE_WEIGHT)
        for heading in chunk.heading_path:
            if heading != row.title:
                self._read_text(row.document_id, without_cells(heading), _HEADING_WEIGHT)
        body = chunk.text
        if chunk.heading and body.startswith(chunk.heading):
            body = body[len(chunk.heading) :]
        self._read_text(
            row.document_id, plain_text(without_cells(body[: 2 * _MAX_BODY_CHARS]))[:_MAX_BODY_CHARS], _BODY_WEIGHT
        )

    def candidates(self) -> list[_PhraseCandidate]:
        """Return the candidates; those that occur only once are dropped if enough others remain."""
        candidates = list(self._by_key.values())
        repeated = [candidate for candidate in candidates if len(candidate.text_weights) > 1]
        return repeated if len(repeated) >= 3 * _PHRASES_PER_TOOL else candidates

    def is_verb(self, form: str) -> bool:
        """Return whether an English word is mostly used as a verb."""
        return self._verb_counts[form] > _MIN_VERB_SHARE * self._word_counts[form]

    def find(self, form: tuple[str, ...]) -> _PhraseCandidate | None:
        """Return the candidate with this form, if any."""
        return self._by_key.get(_phrase_key(form))

    def _read_text(self, document_id: int, text: str, weight: float) -> None:
        if not text.strip() or is_boilerplate(text):
            return
        if weight != _BODY_WEIGHT:
            text = plain_text(text)
        if (document_id, text) in self._seen_texts:
            return  # for example a heading that repeats the title
        self._seen_texts.add((document_id, text))
        text_number = len(self._seen_texts)
        self._verb_counts.update(verbs(text))
        for noun in nouns(text):
            self._add_noun(noun, text_number, weight)

    def _add_noun(self, noun: Noun, text_number: int, weight: float) -> None:
        if len(noun.forms) == 1:
            self._word_counts[noun.forms[0]] += 1
        candidate = self._by_key.setdefault(_phrase_key(noun.forms), _PhraseCandidate(noun.forms))
        candidate.spellings[noun.text] += 1
        candidate.text_weights[text_number] = weight
        candidate.longer_forms.update(noun.longer_forms)
        if not noun.longer_forms:
            candidate.standalone_texts.add(text_number)


# Phrases needed for a description or a set of questions; with three times as many candidates, rare ones can be dropped.
_PHRASES_PER_TOOL = 12


def _phrase_key(form: Sequence[str]) -> str:
    # ロード バランサー and ロードバランサー are one phrase, and so are file name and filename.
    return "".join(form)


def _base_score(candidate: _PhraseCandidate, collector: _CandidateCollector) -> float:
    count = candidate.total_weight()
    nested_count = max(
        (longer.total_weight() for form in candidate.longer_forms if (longer := collector.find(form))), default=0.0
    )
    if len(candidate.form) == 1:
        # "Childhood", part of the names of many diseases, is not a topic by itself.
        nested_count = max(
            nested_count, count - sum(candidate.text_weights[text_number] for text_number in candidate.standalone_texts)
        )
    nested_count = min(nested_count, count)
    if candidate.text().isascii():
        nested_count *= nested_count / count  # a longer English phrase often ends with a verb: load balancer sends
    count -= _NESTED_DISCOUNT * nested_count
    return count * _form_weight(candidate, collector)


def _form_weight(candidate: _PhraseCandidate, collector: _CandidateCollector) -> float:
    """Return how well the form of a phrase suits the name of a topic."""
    text = candidate.text()
    length = _LENGTH_WEIGHTS.get(len(candidate.form), 0.8)
    if not text.isascii():
        # A katakana or kanji word of six characters is as specific as two English words.
        return max(length, min(1.0, len(text) / 6))
    if (
        collector.is_verb(candidate.form[0])
        or collector.is_verb(candidate.form[-1])
        or text.split()[-1].endswith(("ly", "ed"))
    ):
        return 0.0
    return _NAME_WEIGHT if len(candidate.form) == 1 and not text.islower() and not text.istitle() else length


class _BackgroundTerms:
    """The terms of the chunks of another tool."""

    def __init__(self, chunks: Iterable[ChunkRow]) -> None:
        self._chunks_by_term: dict[int, set[int]] = defaultdict(set)
        self._chunk_count = 0
        for row in chunks:
            self._chunk_count += 1
            for key in set(analyzer.term_keys(row.chunk.text_to_index(row.title)[: 2 * _MAX_BODY_CHARS])):
                self._chunks_by_term[key].add(self._chunk_count)

    def share_containing(self, keys: Sequence[int]) -> float:
        """Return the share of chunks that contain all of these terms."""
        if not keys or not self._chunk_count:
            return 0.0
        return len(set.intersection(*(self._chunks_by_term.get(key, set()) for key in keys))) / self._chunk_count


def _distinctiveness(candidate: _PhraseCandidate, chunk_count: int, backgrounds: Sequence[_BackgroundTerms]) -> float:
    """Return how specific a phrase is to these chunks: 1 if it occurs in no other tool."""
    keys = analyzer.term_keys(candidate.text())
    elsewhere = max((background.share_containing(keys) for background in backgrounds), default=0.0)
    here = min(1.0, len(candidate.text_weights) / max(1, chunk_count))
    share: float = here / (here + elsewhere) if elsewhere else 1.0
    return share * share


def _select_phrases(candidates: list[_PhraseCandidate], limit: int) -> list[Phrase]:
    """Select phrases greedily: after each one, the texts it covers count less for the rest."""
    text_factors: dict[int, float] = defaultdict(lambda: 1.0)
    word_uses: Counter[str] = Counter()
    selected: list[tuple[_PhraseCandidate, float]] = []
    remaining = list(candidates)

    def gain(candidate: _PhraseCandidate) -> float:
        coverage = (
            sum(weight * text_factors[text_number] for text_number, weight in candidate.text_weights.items())
            / candidate.total_weight()
        )
        repetition = sum(word_uses[form] for form in set(candidate.form)) / len(set(candidate.form))
        return candidate.score * coverage * float(_REPEATED_WORD_FACTOR**repetition)

    while remaining and len(selected) < limit:
        best = max(remaining, key=gain)
        selected.append((best, gain(best)))
        for text_number in best.text_weights:
            text_factors[text_number] *= _COVERED_TEXT_FACTOR
        word_uses.update(set(best.form))
        key = _phrase_key(best.form).casefold()
        remaining = [
            candidate
            for candidate in remaining
            if key not in (other_key := _phrase_key(candidate.form).casefold()) and other_key not in key
        ]
    top = selected[0][1] if selected else 1.0
    return [
        Phrase(text, round(weight / top, 4), "ja" if detect_language(text) == "ja" else "en")
        for candidate, weight in selected
        for text in (candidate.text(),)
    ]
