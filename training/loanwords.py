"""Correct the dictionary's loanwords by what translated pairs say: レンダー is render, not lender.

usage: python training/loanwords.py OUT.tsv pairs_docs.jsonl.zst pairs_text.jsonl.zst pairs_lex.jsonl.zst
needs: bunko, zstandard; two minutes on one core.

A katakana word is written down with its English origin where the pairs contradict the dictionary: it names another
origin (キャッシュ: cash), or takes one word for several (アンインストール: 餡, インストール). The origin is the English
word that sounds like it and stands most often opposite it.
"""

from __future__ import annotations

import re
import sys
from collections import Counter, defaultdict
from functools import lru_cache
from pathlib import Path

from pairs import lines

from bunko.text import analyzer
from bunko.text.romaji import kana_to_romaji

MAX_CHARS = 160  # of the Japanese side, as in `bridge.py`
MIN_PAIRS = 5  # in which a word and its origin stand opposite each other
MIN_SHARE, MIN_SHORT_SHARE = 0.25, 0.5  # of the pairs with a word that have its origin; of one with two consonants
MAX_PAIRS = 30  # with a word, of one source: others than manuals of software have a say
MIN_RATIO = 5.5  # how much more often than the dictionary's origin
MIN_LIKENESS = 0.8  # of the sounds
MIN_JOINED_LIKENESS = 0.84  # a run of two words may sound like the first of them

_KATAKANA = re.compile("[ァ-ヺー]+")
_WORD = re.compile("[a-z]{3,}")
_NOTE = re.compile("[（(].*")  # UniDic explains some origins: rock（音楽）


class Evidence:
    """What stands opposite katakana words in translated pairs."""

    def __init__(self) -> None:
        self.pairs: Counter[str] = Counter()  # with a word
        self.words: dict[str, Counter[str]] = defaultdict(
            Counter
        )  # pairs with it and an English word that sounds like it
        self.stems: dict[str, Counter[str]] = defaultdict(Counter)  # pairs with it and the stem of such a word
        self.known: dict[str, Counter[str]] = defaultdict(Counter)  # origins of a word in the dictionary
        self.known_pairs: Counter[tuple[str, str]] = (
            Counter()
        )  # pairs with a word and such an origin, or one of a piece
        self._sources: Counter[tuple[str, str]] = Counter()

    def add(self, katakana: dict[str, str], english: set[str], source: str) -> None:
        """Add the words of one pair: those in katakana with their origins in the dictionary, and the English ones."""
        katakana = {word: known for word, known in katakana.items() if self._sources[word, source] < MAX_PAIRS}
        self._sources.update((word, source) for word in katakana)
        self.pairs.update(katakana.keys())
        stems = {analyzer.stem(word) for word in english}
        for word, known in katakana.items():
            alike = [other for other in english if likeness(word, other) >= MIN_LIKENESS]
            self.words[word].update(alike)
            self.stems[word].update({analyzer.stem(other) for other in alike})
            if known:
                self.known[word][known] += 1
            origins = {*self.known[word], *(origin for _, origin in map(split_lemma, parse(word)) if origin)}
            self.known_pairs.update((word, origin) for origin in origins if analyzer.stem(origin) in stems)

    def origin(self, word: str) -> str | None:
        """Return the English word that a katakana word comes from, if the pairs say so."""
        stem, pairs = max(self.stems[word].items(), key=lambda item: (item[1], item[0]), default=("", 0))
        needed = MIN_SHORT_SHARE if len(sounds_of_katakana(word)) < 3 else MIN_SHARE
        if pairs < max(MIN_PAIRS, needed * self.pairs[word]):
            return None
        same_stem = [other for other in self.words[word] if analyzer.stem(other) == stem]
        return max(same_stem, key=lambda other: (likeness(word, other), self.words[word][other], other))


def main(out: Path, paths: list[Path]) -> None:
    """Learn and save the corrections."""
    evidence = collect(paths)
    origins = {word: origin for word in evidence.pairs if (origin := correct_origin(word, evidence))}
    joined = {word: origin for word in evidence.pairs if (origin := join_pieces(word, evidence, origins))}
    rows = [f"{word}\t{origin}" for word, origin in origins.items()]
    rows += [f"{word}\t{origin}\tjoined" for word, origin in joined.items()]
    out.write_text("".join(f"{row}\n" for row in sorted(rows)), encoding="utf-8")
    print(len(evidence.pairs), "katakana words,", len(origins), "origins,", len(joined), "joined words")


def collect(paths: list[Path]) -> Evidence:
    """Return what translated pairs say about katakana words."""
    evidence = Evidence()
    for pair in lines(paths):
        if pair["kind"] not in ("parallel", "gloss", "synonym") or {pair["la"], pair["lb"]} != {"ja", "en"}:
            continue
        japanese, english = (pair["a"], pair["b"]) if pair["la"] == "ja" else (pair["b"], pair["a"])
        if len(japanese) <= MAX_CHARS and (katakana := katakana_words(japanese)):
            evidence.add(katakana, set(_WORD.findall(english.lower())) - analyzer.STOP_WORDS, pair["src"])
    return evidence


def katakana_words(text: str) -> dict[str, str]:
    """Return the katakana words of a text with their origins in the dictionary: whole runs, and words within them."""
    words: dict[str, str] = {}
    for run in analyzer.runs(text):
        katakana = [part for part in _KATAKANA.findall(run) if len(part) > 2]
        words.update(dict.fromkeys(katakana, ""))
        if katakana:
            pieces = [split_lemma(line.partition("\t")[2]) for line in analyzer.parse_uncorrected(run)]
            words.update((lemma, known) for lemma, known in pieces if len(lemma) > 2 and _KATAKANA.fullmatch(lemma))
    return words


def correct_origin(word: str, evidence: Evidence) -> str | None:
    """Return the origin of a word of the dictionary if the dictionary has another one, or none."""
    origin = evidence.origin(word)
    pieces = parse(word)
    if origin is None or len(pieces) > 1 or split_lemma(pieces[0])[0] != word:
        return None
    wrong = [known for known in evidence.known[word] if analyzer.stem(known) != analyzer.stem(origin)]
    if evidence.known[word] and not wrong:
        return None
    pairs = evidence.stems[word][analyzer.stem(origin)]
    for known in wrong:
        if evidence.known_pairs[word, known] * MIN_RATIO > pairs or likeness(word, origin) < likeness(word, known):
            return None
    return origin


def join_pieces(word: str, evidence: Evidence, origins: dict[str, str]) -> str | None:
    """Return the origin of a word that the dictionary takes for several, at least one of them wrongly."""
    origin, pieces = evidence.origin(word), parse(word)
    if origin is None or len(pieces) < 2 or likeness(word, origin) < MIN_JOINED_LIKENESS:
        return None
    for lemma, known in map(split_lemma, pieces):
        is_part = any(part and part[:-1] in origin for part in (known, origins.get(lemma)))
        is_opposite = evidence.known_pairs[word, known] >= MIN_SHARE * evidence.pairs[word]
        if not is_part and not is_opposite:
            return origin
    return None


@lru_cache(100_000)
def parse(word: str) -> tuple[str, ...]:
    """Return the lemmas of the pieces that the dictionary takes a word for."""
    return tuple(line.partition("\t")[2] for line in analyzer.parse_uncorrected(word) if line)


@lru_cache(100_000)
def split_lemma(lemma: str) -> tuple[str, str]:
    """Return a lemma of the dictionary without its origin, and the origin if it is a word in Western letters."""
    word, _, origin = lemma.partition("-")
    origin = _NOTE.sub("", origin).lower()
    return word, origin if origin.isascii() else ""


@lru_cache(2_000_000)
def likeness(katakana: str, english: str) -> float:
    """Return how much a katakana word sounds like an English one, 0 to 1."""
    first = sounds_of_katakana(katakana)
    return max(ratio(first, second) for second in sounds_of_english(english))


@lru_cache(100_000)
def sounds_of_katakana(word: str) -> str:
    """Return the consonants of a katakana word, those that English cannot tell apart as one."""
    return fold(kana_to_romaji(word).replace("ch", "t").replace("ts", "t").replace("sh", "s"))


@lru_cache(200_000)
def sounds_of_english(word: str) -> tuple[str, ...]:
    """Return the consonants of an English word, once for each way it may be read."""
    word = word.replace("ph", "f").replace("ck", "k").replace("wh", "w").replace("th", "s").replace("sh", "s")
    word = re.sub("g(?=[eiy])", "j", re.sub("c(?=[eiy])", "s", word)).replace("x", "ks").replace("q", "k")
    singular = word.removesuffix("s")
    readings = {form.replace("ch", sound) for form in (word, singular) for sound in "tks"}
    # An r that no vowel follows is silent: サーバー, and so is an r before a last e: コア.
    readings |= {re.sub("r(?![aiouy]|e.)", "", reading) for reading in readings}
    return tuple(sorted({fold(reading.replace("c", "k")) for reading in readings}))


def fold(letters: str) -> str:
    """Return the consonants of a word, with the ones that katakana cannot tell apart as one."""
    letters = re.sub("m(?=[^aiueoy])", "n", re.sub(r"(.)\1+", r"\1", letters))
    return letters.translate(str.maketrans("lvzjf", "rbssh", "aiueoyw"))


def ratio(first: str, second: str) -> float:
    """Return how alike two short strings are, by the number of changes between them."""
    if first == second:
        return 1.0 if len(first) > 1 else 0.0
    longest = max(len(first), len(second))
    if min(len(first), len(second)) < 3 or first[0] != second[0] or longest - len(min(first, second, key=len)) > 2:
        return 0.0
    row = list(range(len(second) + 1))
    for i, a in enumerate(first, 1):
        previous, row[0] = row[0], i
        for j, b in enumerate(second, 1):
            previous, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, previous + (a != b))
    return 1 - row[-1] / longest


if __name__ == "__main__":
    main(Path(sys.argv[1]), [Path(path) for path in sys.argv[2:]])
