"""Learn a table of word translations from translated pairs.

usage: python training/bridge.py OUT.bin pairs_docs.jsonl.zst pairs_text.jsonl.zst pairs_lex.jsonl.zst
needs: bunko, zstandard; 8 GB of memory, three minutes on one core.

Words are aligned with IBM model 1, in both directions; the weight of a translation is the geometric mean of the two
probabilities. Pairs of neighbouring Japanese words (非同期) count as words too. Two Japanese words with the same
translation are no synonyms if different forms of it stand opposite them: 公園 is park, 駐車 is parking.
"""

from __future__ import annotations

import itertools
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from pairs import lines

from bunko.runtime import array_file
from bunko.text import analyzer, bridge

# Function words: their alignments are chance.
FUNCTION_WORDS = frozenset(
    """
    為る 居る 有る 在る 事 物 此の 其の 此れ 其れ 彼の 出来る 成る 様 為 又 的 因る 依る 無い 下さる で 言う 等 化
    付く つく 及び 性 そして より 此処 其処 行く 来る 遣る 貰う 頂く 呉れる 置く 仕舞う 見る 於く 就く 対する 関する
    伴う 通じる 於ける 因み 但し 更に 例えば 即ち 又は 若しくは
    he his him she her one all also onli more ani may than like up out some each same about other after befor now must
    longer be been just even much mani most veri such own both over under again then there here
    """.split()
)
MAX_CHARS = 160  # characters of the Japanese side: in a longer text everything aligns with everything
MAX_WORDS = 60
ROUNDS = 5
NULL_PROBABILITY = 1e-3  # the probability that a word translates nothing
SMOOTHING = 0.5  # a word seen once has no certain translation
MIN_CERTAINTY, HIGH_CERTAINTY = 0.04, 0.3
MAX_MEANINGS = 5
STRETCH = 4.0  # a mean of a quarter counts as certain
MIN_WEIGHT = 0.2
PART_WEIGHT = 0.6  # weight of a part of a compound relative to the whole
MIN_RELATED_SHARE = 0.03  # least share of the pairs with a word that have the translation too
MIN_FORMS = 5  # pairs with a word and its translation, to know its forms
MIN_SHARED_FORMS = 0.3  # least overlap of the forms of a translation that stand opposite two synonyms
MIN_COMPOUND_CERTAINTY = 0.25  # least certainty of the translation of a compound


def main(out: Path, paths: list[Path]) -> None:
    """Learn and save the table."""
    japanese, english = SideWords(), SideWords()
    unit_counts: Counter[tuple[str, ...]] = Counter()
    english_forms: list[dict[str, str]] = []  # of each pair: the words as they are written, by their stems
    for pair in lines(paths):
        if pair["kind"] not in ("parallel", "gloss", "synonym") or {pair["la"], pair["lb"]} != {"ja", "en"}:
            continue
        japanese_text, english_text = (pair["a"], pair["b"]) if pair["la"] == "ja" else (pair["b"], pair["a"])
        if len(japanese_text) > MAX_CHARS:
            continue
        units, forms = list(japanese_words(japanese_text)), dict(english_words(english_text))
        if units and forms:
            unit_counts.update(units)
            japanese.add({"".join(unit) for unit in units})
            english.add(set(forms))
            english_forms.append({stem: form for stem, form in forms.items() if stem in english.last})
    print(len(japanese.counts), "pairs,", len(japanese.names), "Japanese words,", len(english.names), "English")
    # 変数 is one word, even if it was once split into two.
    compounds = {
        "".join(unit): unit for unit in unit_counts if len(unit) > 1 and unit_counts[unit] > unit_counts["".join(unit),]
    }
    alignment = align_words(japanese, english)
    table = select_translations(
        *alignment, list(japanese.names), list(english.names), compounds, np.bincount(japanese.numbers)
    )
    table = {word: meanings for word, meanings in table.items() if not is_redundant(word, table, compounds.get(word))}
    unlike = find_unlike(table, count_forms(table, japanese, english_forms))
    save(out, table, unlike)
    print(len(unlike), "pairs are no synonyms:", *(f"{a}/{b}" for a, b in unlike[:: max(1, len(unlike) // 100)]))
    print(len(table), "words with", sum(map(len, table.values())), "meanings,", out.stat().st_size, "bytes")
    for word in ("検証", "非同期", "設定", "玉葱", "valid", "restart", "holiday", "sea", "run", "product"):
        print(word, table.get(word))


def japanese_words(text: str) -> Iterator[tuple[str, ...]]:
    """Yield the words of a text, and each pair of neighbours."""
    for run in analyzer.runs(text):
        before = ""
        for terms in analyzer.terms_by_word(run):
            word = terms[0].spelling if terms and not terms[0].spelling.isascii() else ""
            word = "" if word in FUNCTION_WORDS else word
            if word:
                yield (word,)
            if word and before:
                yield before, word
            before = word


def english_words(text: str) -> Iterator[tuple[str, str]]:
    """Yield the stems of a text, each with the word as it is written."""
    for run in analyzer.runs(text):
        for term in analyzer.terms(run):
            word = term.spelling
            if (
                term.role == ""
                and word.isascii()
                and not word.isdigit()
                and len(word) > 1
                and word not in FUNCTION_WORDS
            ):
                yield word, run.lower()


class SideWords:
    """The words of one side of all pairs, as ids."""

    def __init__(self) -> None:
        self.names: dict[str, int] = {}
        self.numbers: list[int] = []
        self.counts: list[int] = []
        self.last: frozenset[str] = frozenset()  # the words of the last text that count

    def add(self, words: set[str]) -> None:
        """Add the words of one text."""
        selected = sorted(words)[:MAX_WORDS]
        self.last = frozenset(selected)
        self.numbers += [self.names.setdefault(word, len(self.names)) for word in selected]
        self.counts.append(len(selected))


def align_words(japanese: SideWords, english: SideWords) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return co-occurring word pairs: their ids, their counts, and the certainty that they translate each other."""
    a, b = np.array(japanese.numbers), np.array(english.numbers)
    a_counts, b_counts = np.array(japanese.counts), np.array(english.counts)
    first, second, groups = _cooccurrences(a, a_counts, b, b_counts)
    codes, pair_indices = np.unique(first * len(english.names) + second, return_inverse=True)
    pair_counts = np.bincount(pair_indices)
    a_of, b_of = np.divmod(codes, len(english.names))
    forward = _learn_probabilities(pair_indices.astype(np.int32), groups, a_of, pair_counts)
    first, second, groups = _cooccurrences(b, b_counts, a, a_counts)
    pair_indices = np.searchsorted(codes, second * len(english.names) + first)
    backward = _learn_probabilities(pair_indices.astype(np.int32), groups, b_of, pair_counts)
    return a_of, b_of, pair_counts, np.sqrt(forward * backward)


def _cooccurrences(a: np.ndarray, a_counts: np.ndarray, b: np.ndarray, b_counts: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return every combination of words a and b of the same pair, and the number of candidates a for each b."""
    pair = np.repeat(np.arange(len(b_counts)), b_counts)
    groups = a_counts[pair]
    first = np.cumsum(a_counts) - a_counts
    inside = np.arange(groups.sum()) - np.repeat(np.cumsum(groups) - groups, groups)
    return a[np.repeat(first[pair], groups) + inside], np.repeat(b, groups), groups


def _learn_probabilities(
    pair_indices: np.ndarray, groups: np.ndarray, sources: np.ndarray, pair_counts: np.ndarray
) -> np.ndarray:
    """Return the probability of the target of each pair, given its source."""
    starts = np.cumsum(groups) - groups
    probability = (pair_counts / np.bincount(sources, weights=pair_counts)[sources]).astype(np.float32)
    for _ in range(ROUNDS):
        share = probability[pair_indices]
        share /= np.repeat(np.add.reduceat(share, starts) + NULL_PROBABILITY, groups)
        expected = np.bincount(pair_indices, weights=share, minlength=len(pair_counts))
        probability = (expected / (np.bincount(sources, weights=expected)[sources] + SMOOTHING)).astype(np.float32)
    return probability


def select_translations(
    a_of: np.ndarray,
    b_of: np.ndarray,
    pair_counts: np.ndarray,
    certainty: np.ndarray,
    japanese: list[str],
    english: list[str],
    compounds: dict[str, tuple[str, ...]],
    counts: np.ndarray,
) -> dict[str, list[tuple[str, float]]]:
    """Return the translations worth keeping in both directions, most certain first."""
    selected = ((certainty > MIN_CERTAINTY) & (pair_counts >= 2)) | (certainty > HIGH_CERTAINTY)
    translations: dict[str, dict[str, float]] = {}
    codes, relative_counts = a_of * len(english) + b_of, pair_counts / counts[a_of]
    word_ids = {word: index for index, word in enumerate(japanese)}

    def shares(part: str, b: int) -> bool:
        """Return whether a part of a compound shares a translation by itself: in 日本海, 日本 is no sea."""
        code = word_ids[part] * len(english) + b if part in word_ids else -1
        index = int(np.searchsorted(codes, code))
        return index < len(codes) and codes[index] == code and relative_counts[index] >= MIN_RELATED_SHARE

    for a, b, value in zip(a_of[selected], b_of[selected], certainty[selected], strict=True):
        weight = min(1.0, STRETCH * float(value))
        _add_translation(translations, japanese[a], english[b], weight)
        # An index has the words of a compound separately.
        parts = compounds.get(japanese[a], (japanese[a],))
        for part in parts:
            if len(parts) == 1 or shares(part, b):
                _add_translation(translations, english[b], part, weight if len(parts) == 1 else PART_WEIGHT * weight)
    return {
        word: sorted(meanings.items(), key=lambda item: (-item[1], item[0]))[:MAX_MEANINGS]
        for word, meanings in translations.items()
    }


def _add_translation(translations: dict[str, dict[str, float]], word: str, meaning: str, weight: float) -> None:
    if weight >= MIN_WEIGHT:
        meanings = translations.setdefault(word, {})
        meanings[meaning] = max(meanings.get(meaning, 0.0), weight)


def is_redundant(word: str, table: dict[str, list[tuple[str, float]]], parts: tuple[str, ...] | None) -> bool:
    """Return whether a compound adds nothing to its parts, or is uncertain; 非同期 is kept, since 同期 misleads."""
    if parts is None:
        return False
    if table[word][0][1] < MIN_COMPOUND_CERTAINTY * STRETCH:
        return True
    meanings = {meaning for meaning, _ in table[word]}
    return all(part in table and table[part][0][0] in meanings for part in parts)


def count_forms(
    table: dict[str, list[tuple[str, float]]], japanese: SideWords, english_forms: list[dict[str, str]]
) -> dict[tuple[str, str], Counter[str]]:
    """Return for each Japanese word and translation in which forms the translation stands opposite the word."""
    names = list(japanese.names)
    translations = [
        frozenset(meaning for meaning, _ in table.get(name, ()) if meaning.isascii()) if not name.isascii() else ()
        for name in names
    ]
    counts: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    start = 0
    for count, forms in zip(japanese.counts, english_forms, strict=True):
        for number in japanese.numbers[start : start + count]:
            for stem in translations[number]:
                if stem in forms:
                    counts[names[number], stem][forms[stem]] += 1
        start += count
    return counts


def find_unlike(
    table: dict[str, list[tuple[str, float]]], forms: dict[tuple[str, str], Counter[str]]
) -> list[tuple[str, str]]:
    """Return pairs of Japanese words that share a translation, but not its forms."""
    alike: set[tuple[str, str]] = set()
    unlike: set[tuple[str, str]] = set()
    for stem, words in table.items():
        known = [word for word, _ in words if (word, stem) in forms] if stem.isascii() else []
        for a, b in itertools.combinations(sorted(known), 2):
            (alike if share_forms(forms[a, stem], forms[b, stem]) else unlike).add((a, b))
    return sorted(unlike - alike)


def share_forms(first: Counter[str], second: Counter[str]) -> bool:
    """Return whether two words have much the same forms of a translation opposite them, as far as known."""
    if min(first.total(), second.total()) < MIN_FORMS:
        return True
    shares = ({form: count / counts.total() for form, count in counts.items()} for counts in (first, second))
    a, b = shares
    return sum(min(share, b.get(form, 0.0)) for form, share in a.items()) >= MIN_SHARED_FORMS


def save(out: Path, table: dict[str, list[tuple[str, float]]], unlike: list[tuple[str, str]]) -> None:
    """Write the table in the format of `bunko.text.bridge`."""
    names = sorted({meaning for meanings in table.values() for meaning, _ in meanings})
    name_ids = {name: index for index, name in enumerate(names)}
    order = sorted(table, key=analyzer.term_key)
    encoded_names = [name.encode() for name in names]
    arrays = {
        "keys": np.array([analyzer.term_key(word) for word in order], np.uint64),
        "starts": np.cumsum([0, *(len(table[word]) for word in order)]).astype(np.uint32),
        "targets": np.array([name_ids[meaning] for word in order for meaning, _ in table[word]], np.uint32),
        "weights": np.array([round(255 * weight) for word in order for _, weight in table[word]], np.uint8),
        "ends": np.cumsum([len(name) for name in encoded_names]).astype(np.uint32),
        "letters": np.frombuffer(b"".join(encoded_names), np.uint8),
        "unlike": np.array(sorted(bridge.pair_key(a, b) for a, b in unlike), np.uint64),
    }
    array_file.save_arrays(
        out, arrays, format_version=bridge.FORMAT, stamp={"name": "bridge", "words": analyzer.VERSION}
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]), [Path(path) for path in sys.argv[2:]])
