"""Translated pairs in, a table of what words mean in the other language out.

usage: python training/bridge.py OUT.bin pairs_docs.jsonl.zst pairs_text.jsonl.zst pairs_lex.jsonl.zst
needs: bunko, zstandard; 8 GB of memory, three minutes on one core.

Words are aligned by IBM's first model, in both directions; a meaning counts by the geometric mean of the two
probabilities. Beside single words of Japanese, neighbours that stand together (非同期) are words too.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from pairs import lines

from bunko import array_file
from bunko.text import analyzer, bridge

# Words that build sentences: what they are aligned with is chance.
LIGHT = frozenset(
    """
    為る 居る 有る 在る 事 物 此の 其の 此れ 其れ 彼の 出来る 成る 様 為 又 的 因る 依る 無い 下さる で 言う 等 化
    付く つく 及び 性 そして より 此処 其処 行く 来る 遣る 貰う 頂く 呉れる 置く 仕舞う 見る 於く 就く 対する 関する
    伴う 通じる 於ける 因み 但し 更に 例えば 即ち 又は 若しくは
    he his him she her one all also onli more ani may than like up out some each same about other after befor now must
    longer be been just even much mani most veri such own both over under again then there here
    """.split()
)
LONGEST = 160  # characters of the Japanese side: a longer text aligns everything with everything
MOST_WORDS = 60
ROUNDS = 5
NOTHING = 1e-3  # the chance that a word is the translation of none
UNSURE = 0.5  # added to what a word was seen with: one seen once is not sure of anything
LEAST, SURE = 0.04, 0.3
MOST_MEANINGS = 5
STRETCH = 4.0  # a mean of a quarter is as sure as it gets
LEAST_WEIGHT = 0.2
PART = 0.6  # what a word of a compound is worth beside the whole
RELATED = 0.03  # of the pairs with a word, those that hold a meaning too
COMPOUND = 0.25  # from here on two neighbours have a meaning of their own


def main(out: Path, paths: list[Path]) -> None:
    """Learn the table and save it."""
    japanese, english = Side(), Side()
    seen: Counter[tuple[str, ...]] = Counter()
    for pair in lines(paths):
        if pair["kind"] not in ("parallel", "gloss", "synonym") or {pair["la"], pair["lb"]} != {"ja", "en"}:
            continue
        a, b = (pair["a"], pair["b"]) if pair["la"] == "ja" else (pair["b"], pair["a"])
        if len(a) > LONGEST:
            continue
        units, there = list(japanese_words(a)), set(english_words(b))
        if units and there:
            seen.update(units)
            japanese.add({"".join(unit) for unit in units})
            english.add(there)
    print(len(japanese.counts), "pairs,", len(japanese.names), "Japanese words,", len(english.names), "English")
    # 変数 is one word, even if it was once read as two.
    compounds = {"".join(unit): unit for unit in seen if len(unit) > 1 and seen[unit] > seen["".join(unit),]}
    found = aligned(japanese, english)
    table = chosen(*found, list(japanese.names), list(english.names), compounds, np.bincount(japanese.numbers))
    table = {word: some for word, some in table.items() if not redundant(word, table, compounds.get(word))}
    save(out, table)
    print(len(table), "words with", sum(map(len, table.values())), "meanings,", out.stat().st_size, "bytes")
    for word in ("検証", "非同期", "設定", "玉葱", "valid", "restart", "holiday", "sea", "run", "product"):
        print(word, table.get(word))


def japanese_words(text: str) -> Iterator[tuple[str, ...]]:
    """Return the words of a text, and each two that stand together."""
    for run in analyzer.runs(text):
        before = ""
        for terms in analyzer.terms_by_word(run):
            word = terms[0].spelling if terms and not terms[0].spelling.isascii() else ""
            word = "" if word in LIGHT else word
            if word:
                yield (word,)
            if word and before:
                yield before, word
            before = word


def english_words(text: str) -> Iterator[str]:
    """Return the words of a text."""
    for run in analyzer.runs(text):
        for term in analyzer.terms(run):
            word = term.spelling
            if term.role == "" and word.isascii() and not word.isdigit() and len(word) > 1 and word not in LIGHT:
                yield word


class Side:
    """The words of one side of all pairs, by number."""

    def __init__(self) -> None:
        self.names: dict[str, int] = {}
        self.numbers: list[int] = []
        self.counts: list[int] = []

    def add(self, some: set[str]) -> None:
        """Add one text's words."""
        kept = sorted(some)[:MOST_WORDS]
        self.numbers += [self.names.setdefault(word, len(self.names)) for word in kept]
        self.counts.append(len(kept))


def aligned(japanese: Side, english: Side) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return pairs of words seen together: their numbers, how often, and how sure they mean each other."""
    a, b = np.array(japanese.numbers), np.array(english.numbers)
    a_counts, b_counts = np.array(japanese.counts), np.array(english.counts)
    left, right, groups = _together(a, a_counts, b, b_counts)
    codes, places = np.unique(left * len(english.names) + right, return_inverse=True)
    seen = np.bincount(places)
    a_of, b_of = np.divmod(codes, len(english.names))
    forward = _learnt(places.astype(np.int32), groups, a_of, seen)
    left, right, groups = _together(b, b_counts, a, a_counts)
    places = np.searchsorted(codes, right * len(english.names) + left)
    backward = _learnt(places.astype(np.int32), groups, b_of, seen)
    return a_of, b_of, seen, np.sqrt(forward * backward)


def _together(a: np.ndarray, a_counts: np.ndarray, b: np.ndarray, b_counts: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return for every b of every pair all a it may be the translation of, and how many these are."""
    pair = np.repeat(np.arange(len(b_counts)), b_counts)
    groups = a_counts[pair]
    first = np.cumsum(a_counts) - a_counts
    inside = np.arange(groups.sum()) - np.repeat(np.cumsum(groups) - groups, groups)
    return a[np.repeat(first[pair], groups) + inside], np.repeat(b, groups), groups


def _learnt(places: np.ndarray, groups: np.ndarray, sources: np.ndarray, seen: np.ndarray) -> np.ndarray:
    """Return how probable each pair's target is, given its source."""
    starts = np.cumsum(groups) - groups
    chance = (seen / np.bincount(sources, weights=seen)[sources]).astype(np.float32)
    for _ in range(ROUNDS):
        share = chance[places]
        share /= np.repeat(np.add.reduceat(share, starts) + NOTHING, groups)
        expected = np.bincount(places, weights=share, minlength=len(seen))
        chance = (expected / (np.bincount(sources, weights=expected)[sources] + UNSURE)).astype(np.float32)
    return chance


def chosen(
    a_of: np.ndarray,
    b_of: np.ndarray,
    seen: np.ndarray,
    sure: np.ndarray,
    japanese: list[str],
    english: list[str],
    compounds: dict[str, tuple[str, ...]],
    counts: np.ndarray,
) -> dict[str, list[tuple[str, float]]]:
    """Return the meanings worth keeping in both directions, the surest first."""
    kept = ((sure > LEAST) & (seen >= 2)) | (sure > SURE)
    found: dict[str, dict[str, float]] = {}
    codes, often = a_of * len(english) + b_of, seen / counts[a_of]
    number = {word: at for at, word in enumerate(japanese)}

    def shares(part: str, b: int) -> bool:
        """Say whether a word of a compound has something to do with a meaning by itself: in 日本海, 日本 is no sea."""
        code = number[part] * len(english) + b if part in number else -1
        at = int(np.searchsorted(codes, code))
        return at < len(codes) and codes[at] == code and often[at] >= RELATED

    for a, b, value in zip(a_of[kept], b_of[kept], sure[kept], strict=True):
        weight = min(1.0, STRETCH * float(value))
        _keep(found, japanese[a], english[b], weight)
        # An index holds the words of a compound, each by itself.
        parts = compounds.get(japanese[a], (japanese[a],))
        for part in parts:
            if len(parts) == 1 or shares(part, b):
                _keep(found, english[b], part, weight if len(parts) == 1 else PART * weight)
    return {
        word: sorted(some.items(), key=lambda one: (-one[1], one[0]))[:MOST_MEANINGS] for word, some in found.items()
    }


def _keep(found: dict[str, dict[str, float]], word: str, meaning: str, weight: float) -> None:
    if weight >= LEAST_WEIGHT:
        meanings = found.setdefault(word, {})
        meanings[meaning] = max(meanings.get(meaning, 0.0), weight)


def redundant(word: str, table: dict[str, list[tuple[str, float]]], parts: tuple[str, ...] | None) -> bool:
    """Say whether a compound means what its parts mean, or nothing for sure; 非同期 is kept, since 同期 misleads."""
    if parts is None:
        return False
    if table[word][0][1] < COMPOUND * STRETCH:
        return True
    own = {meaning for meaning, _ in table[word]}
    return all(part in table and table[part][0][0] in own for part in parts)


def save(out: Path, table: dict[str, list[tuple[str, float]]]) -> None:
    """Write the table as `bunko.text.bridge` reads it."""
    names = sorted({meaning for some in table.values() for meaning, _ in some})
    number = {name: at for at, name in enumerate(names)}
    order = sorted(table, key=analyzer.term_key)
    written = [name.encode() for name in names]
    found = {
        "keys": np.array([analyzer.term_key(word) for word in order], np.uint64),
        "starts": np.cumsum([0, *(len(table[word]) for word in order)]).astype(np.uint32),
        "targets": np.array([number[meaning] for word in order for meaning, _ in table[word]], np.uint32),
        "weights": np.array([round(255 * weight) for word in order for _, weight in table[word]], np.uint8),
        "ends": np.cumsum([len(name) for name in written]).astype(np.uint32),
        "letters": np.frombuffer(b"".join(written), np.uint8),
    }
    array_file.save_arrays(
        out, found, format_version=bridge.FORMAT, stamp={"name": "bridge", "words": analyzer.VERSION}
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]), [Path(path) for path in sys.argv[2:]])
