"""Learn a table of word translations from translated pairs.

usage: python training/bridge.py OUT.bin pairs_docs.jsonl.zst pairs_text.jsonl.zst pairs_lex.jsonl.zst
needs: bunko, zstandard; 4 GB of memory, three minutes on one core.

Words are aligned with IBM model 1, first in each direction, then in both at once: a word counts as the translation of
another in a pair as far as both directions say so (Liang, Taskar and Klein, 2006). Two Japanese words with the same
translation are no synonyms if different forms of it stand opposite them: 公園 is park, 駐車 is parking.

A Japanese unit is a word, two neighbouring words (再|起動), or a single kanji beside another word (再-, -票), which is
another word than the kanji alone. An English unit is a stem with the ending of its form (restor/ation, park/ing).
"""

from __future__ import annotations

import itertools
import re
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import NamedTuple

import numpy as np
from pairs import lines

from bunko.runtime import array_file
from bunko.text import analyzer, bridge

# Function words have no translation. Those of the second lists still take part in the alignment: in "if you want" and
# したい場合, 場合 is the if, so that it is not taken for "want".
JAPANESE_FUNCTION_WORDS = frozenset(
    """
    為る 居る 有る 在る 事 物 此の 其の 此れ 其れ 彼の 出来る 成る 様 為 又 的 因る 依る 無い 下さる で 言う 等 化
    付く つく 及び 性 そして より 此処 其処 行く 来る 遣る 貰う 頂く 呉れる 置く 仕舞う 見る 於く 就く 対する 関する
    伴う 通じる 於ける 因み 但し 更に 例えば 即ち 又は 若しくは
    """.split()
)
ALIGNED_JAPANESE = frozenset(
    "無い 言う 行く 来る 見る 出来る 成る 様 為 依る 因る 又 等 下さる 此れ 其れ 対する 関する 化 置く 貰う".split()
)
ALIGNED_AUXILIARIES = frozenset("たい ない られる れる".split())
ENGLISH_FUNCTION_WORDS = frozenset(
    """
    he his him she her one all also onli more ani may than like up out some each about must longer just even much mani
    most veri both then here might whose among unless due otherwis otherwise however howev therefore although though
    while until upon onto toward towards whether because since during within without between
    """.split()
)
ALIGNED_ENGLISH = ENGLISH_FUNCTION_WORDS | frozenset(
    """
    if when how why who what where which can could should not no you your we our my me will would they their
    """.split()
)
NEGATIONS = frozenset("非不無未反")  # these only count with what they stand before, which means the opposite
MARK = "\0"  # before a function word that is only there to be aligned
MAX_CHARS = 160  # characters of the Japanese side: in a longer text everything aligns with everything
MAX_WORDS = 60
MAX_SENSE_WORDS = 5  # of a sense of a dictionary: a longer one explains, and does not translate
MAX_REPEATS, MAX_SENSE_REPEATS = 3, 2  # pairs with the same Japanese words, which are a template; the same sense
ROUNDS, JOINT_ROUNDS = 3, 3
NULL_PROBABILITY = 1e-3  # the probability that a word translates nothing
SMOOTHING = 0.5  # a word seen once has no certain translation
MIN_LINK = 0.1  # least probability of a translation in a pair that counts as seen there
MIN_SEEN = 0.3  # least sum of them over all pairs
PRIOR = 2.0  # pairs that a word translates nothing in, before any is seen
# A translation has to be seen in two sources, or be in a dictionary, or be that of most occurrences of the word.
MIN_PAIRS = 1.5
MIN_IN_DICTIONARY, MIN_DICTIONARY_SHARE = 1.0, 0.1
MIN_ONE_SOURCE_PAIRS, MIN_ONE_SOURCE_SHARE = 3.0, 0.5
MAX_MEANINGS = 5
MIN_RUN_WEIGHT = 0.5  # of the best meaning of a long word in katakana; else those of its two halves tell more
STRETCH = 6.0  # a mean of a sixth counts as certain
MIN_WEIGHT = 0.2
MIN_SHARE = 0.03  # of what is translated of a word
MIN_BOUND_SHARE = 0.25  # of what is translated of a kanji beside another word, to have a meaning there
MIN_KANJI_SHARE = 0.1  # of all occurrences of a kanji: an index has it in every compound
PART_WEIGHT = 0.6  # weight of a part of a compound relative to the whole
# Least share of the occurrences of a part that are in the compound, to stand for it; of a short part; to mean it.
MIN_PART_SHARE, MIN_SHORT_PART_SHARE, MIN_WHOLE_SHARE = 0.02, 0.5, 0.7
MIN_PART_TRANSLATION = 0.05  # least share of a translation that stands opposite the compound
MIN_COMPOUND_WEIGHT = 0.5
MIN_COMPOUND_SHARE = 0.3  # of its occurrences that have its translation
ALIKE_LETTERS = 5
COMPOUND_BALANCE = 0.75  # a compound is rarer than its translation: 利用者 is only one word for user
MIN_FORM_PAIRS = 5.0  # pairs with a form, to know its translations
MIN_FORM_RATIO = 0.5  # least share of a form among those opposite a word, relative to that among all of the stem
MIN_FORMS = 5  # pairs with a word and its translation, to know its forms
MIN_SHARED_FORMS = 0.4  # least overlap of the forms of a translation that stand opposite two synonyms
# A word in few pairs that the alignment tells nothing about has the words of the dictionary if those are few.
MIN_RARE_PAIRS, MAX_RARE_PAIRS, MAX_RARE_SENSE, RARE_WEIGHT = 2, 30, 2, 0.5

_KATAKANA = re.compile("[ァ-ヺー]+")
_KANA = re.compile("[ぁ-ゖァ-ヺ]")  # one is an ending, or a piece of a name
_NOTE = re.compile("[(（][^)）]*[)）]")

Table = dict[str, list[tuple[str, float]]]


def main(out: Path, paths: list[Path]) -> None:
    """Learn and save the table."""
    pairs = read_pairs(paths)
    print(len(pairs.japanese.counts), "pairs,", len(pairs.japanese.names), "Japanese units,", end=" ")
    print(len(pairs.english.names), "English units")
    translations = Translations(pairs, align(pairs))
    table = translations.table()
    unlike = find_unlike(table, translations.forms)
    save(out, table, unlike)
    print(len(unlike), "pairs are no synonyms:", *(f"{a}/{b}" for a, b in unlike[:: max(1, len(unlike) // 100)]))
    print(len(table), "words with", sum(map(len, table.values())), "meanings,", out.stat().st_size, "bytes")
    for word in ("検証", "非同期", "設定", "玉葱", "valid", "restart", "holiday", "sea", "run", "product", "park/ing"):
        print(word, table.get(word))


class Side:
    """The units of one side of all pairs, as numbers."""

    def __init__(self) -> None:
        self.names: dict[str, int] = {}
        self.numbers: list[int] = []
        self.counts: list[int] = []

    def add(self, units: set[str]) -> None:
        """Add the units of one text."""
        selected = sorted(units)[:MAX_WORDS]
        self.numbers += [self.names.setdefault(unit, len(self.names)) for unit in selected]
        self.counts.append(len(selected))


class Pairs(NamedTuple):
    """All pairs: the units of both sides, where they come from, and the short senses of single words."""

    japanese: Side
    english: Side
    sources: list[int]
    is_dictionary: list[bool]
    senses: dict[str, dict[str, float]]  # of a Japanese unit: stems


def read_pairs(paths: list[Path]) -> Pairs:
    """Read the pairs in units; one of a dictionary is one for each of its senses."""
    pairs = Pairs(Side(), Side(), [], [], defaultdict(dict))
    sources: dict[str, int] = {}
    repeats: Counter[tuple[frozenset[str], frozenset[str]]] = Counter()
    for pair in lines(paths):
        if pair["kind"] not in ("parallel", "gloss", "synonym") or {pair["la"], pair["lb"]} != {"ja", "en"}:
            continue
        japanese_text, english_text = (pair["a"], pair["b"]) if pair["la"] == "ja" else (pair["b"], pair["a"])
        if len(japanese_text) > MAX_CHARS:
            continue
        units, names = japanese_units(japanese_text)
        is_dictionary = pair["kind"] != "parallel"
        senses = _NOTE.sub(" ", english_text).split(";") if is_dictionary else [english_text]
        for sense in sorted({sense.strip() for sense in senses}):
            size, translations = english_units(sense, names)
            if (is_dictionary and size > MAX_SENSE_WORDS) or not has_words(units) or not has_words(translations):
                continue
            repeated = frozenset(units), frozenset(translations if is_dictionary else ())
            repeats[repeated] += 1
            if repeats[repeated] > (MAX_SENSE_REPEATS if is_dictionary else MAX_REPEATS):
                continue
            pairs.japanese.add(units)
            pairs.english.add(translations)
            pairs.sources.append(sources.setdefault(pair["src"], len(sources)))
            pairs.is_dictionary.append(is_dictionary)
            if is_dictionary and len(units) == 1 and size <= MAX_RARE_SENSE:
                (unit,) = units
                pairs.senses[unit].update((stem_of(name), RARE_WEIGHT) for name in translations if name[0] != MARK)
    return pairs


def has_words(units: set[str]) -> bool:
    """Return whether there is more than function words."""
    return any(unit[0] != MARK for unit in units)


def japanese_units(text: str) -> tuple[set[str], set[str]]:
    """Return the Japanese units of a text, and the stems of its Western words."""
    units: set[str] = set()
    names: set[str] = set()
    number = ""
    for run in analyzer.runs(text):
        words = analyzer.terms_by_word(run)
        if run[0] < "\u3005":
            names.update(term.spelling for terms in words for term in terms)
            number = run if run.isdecimal() else ""
            continue
        # An auxiliary verb is no term: the line of the dictionary has it.
        units |= {MARK + line.partition("\t")[2] for line in analyzer.parse(run)} & _MARKED_AUXILIARIES
        before, number = number, ""
        for last, terms, following in zip(((), *words), words, (*words[1:], ()), strict=False):
            word = terms[0].spelling if terms else ""
            if not word or word.isascii() or word in JAPANESE_FUNCTION_WORDS or _KANA.fullmatch(word):
                if word in ALIGNED_JAPANESE:
                    units.add(MARK + word)
                before = ""
                continue
            if word not in NEGATIONS:
                units.add(bridge.part_spelling(word, is_after=bool(last), is_before=bool(following)))
            if before:
                units.add(f"{before}|{word}")
            # What stands after 非同期 is asynchronous, and does not make 同期 so.
            before = "" if before in NEGATIONS else word
    return units, names


_MARKED_AUXILIARIES = frozenset(MARK + word for word in ALIGNED_AUXILIARIES)


def english_units(text: str, names: set[str]) -> tuple[int, set[str]]:
    """Return the number of words of a text, and its units but those that the Japanese text has as they are: "true"."""
    size, units = 0, set()
    for run in analyzer.runs(text):
        if run[0] >= "\u3005":
            continue
        size += 1
        for word in split_hyphens(run.lower()):
            stem = next((term.spelling for term in analyzer.terms(word)), word)
            if word in ALIGNED_ENGLISH or stem in ALIGNED_ENGLISH:
                units.add(MARK + word)
            elif (
                word not in analyzer.STOP_WORDS
                and stem.isascii()
                and not stem.isdigit()
                and len(stem) > 1
                and stem not in names
            ):
                units.add(f"{stem}/{bridge.form_ending(word, stem)}")
    return size, units


def split_hyphens(word: str) -> list[str]:
    """Return the words of one with hyphens: an index has them too."""
    parts = word.split("-")
    return parts if all(len(part) > 2 and part.isascii() and part.isalpha() for part in parts) else [word]


def stem_of(unit: str) -> str:
    """Return the stem of an English unit."""
    return unit.rpartition("/")[0]


class Links(NamedTuple):
    """Units that translate each other: their numbers, in how many pairs and sources, in how many of a dictionary."""

    japanese: np.ndarray
    english: np.ndarray
    pairs: np.ndarray
    sources: np.ndarray
    in_dictionary: np.ndarray


def align(pairs: Pairs) -> Links:
    """Return which units translate each other."""
    japanese, english = np.array(pairs.japanese.numbers, np.int32), np.array(pairs.english.numbers, np.int32)
    japanese_counts, english_counts = np.array(pairs.japanese.counts), np.array(pairs.english.counts)
    # An occurrence is a Japanese and an English token of one pair; those of an English token are neighbours.
    pair_of = np.repeat(np.arange(len(english_counts), dtype=np.int32), english_counts)
    groups = japanese_counts[pair_of]
    starts = np.cumsum(groups) - groups
    first = np.cumsum(japanese_counts) - japanese_counts
    token = (np.arange(groups.sum()) + np.repeat(first[pair_of] - starts, groups)).astype(np.int32)
    codes, indices = np.unique(
        japanese[token].astype(np.int64) * len(pairs.english.names) + np.repeat(english, groups), return_inverse=True
    )
    indices = indices.astype(np.int32)
    a_of, b_of = np.divmod(codes, len(pairs.english.names))

    def normalise(expected: np.ndarray, of: np.ndarray) -> np.ndarray:
        return (expected / (np.bincount(of, weights=expected)[of] + SMOOTHING)).astype(np.float32)

    counts = np.bincount(indices).astype(np.float64)
    forward, backward = normalise(counts, a_of), normalise(counts, b_of)
    for number in range(ROUNDS + JOINT_ROUNDS):
        share = forward[indices]
        share /= np.repeat(np.add.reduceat(share, starts) + NULL_PROBABILITY, groups)
        other_share = backward[indices]
        totals = np.bincount(token, weights=other_share, minlength=len(japanese)) + NULL_PROBABILITY
        other_share /= totals.astype(np.float32)[token]
        if number >= ROUNDS:
            share *= other_share
            other_share = share
        forward = normalise(np.bincount(indices, weights=share), a_of)
        backward = normalise(np.bincount(indices, weights=other_share), b_of)
    seen = np.flatnonzero(share > MIN_LINK)
    seen_indices, seen_share = indices[seen], share[seen]
    seen_pairs = np.repeat(pair_of, groups)[seen]
    sums = np.bincount(seen_indices, weights=seen_share, minlength=len(codes))
    in_dictionary = np.array(pairs.is_dictionary)[seen_pairs]
    source_counts = np.bincount(
        np.unique(seen_indices.astype(np.int64) << 8 | np.array(pairs.sources)[seen_pairs]) >> 8, minlength=len(codes)
    )
    dictionary_sums = np.bincount(seen_indices, weights=seen_share * in_dictionary, minlength=len(codes))
    linked = sums > MIN_SEEN
    return Links(*(array[linked] for array in (a_of, b_of, sums, source_counts, dictionary_sums)))


class Evidence:
    """How often a word has a translation, in how many sources of one form, and in dictionaries."""

    __slots__ = ("in_dictionary", "pairs", "sources")

    def __init__(self) -> None:
        self.pairs, self.sources, self.in_dictionary = 0.0, 0, 0.0

    def add(self, pairs: float, sources: int, in_dictionary: float) -> None:
        """Add the evidence of another form."""
        self.pairs += pairs
        self.sources = max(self.sources, sources)
        self.in_dictionary += in_dictionary

    def is_enough(self, share: float) -> bool:
        """Return whether this is more than one source or template that has two words together."""
        return (
            (self.sources > 1 and self.pairs >= MIN_PAIRS)
            or (self.in_dictionary >= MIN_IN_DICTIONARY and share >= MIN_DICTIONARY_SHARE)
            or (self.pairs >= MIN_ONE_SOURCE_PAIRS and share >= MIN_ONE_SOURCE_SHARE)
        )


class Translations:
    """Selects from the links what the table has."""

    def __init__(self, pairs: Pairs, links: Links) -> None:
        self._senses = pairs.senses
        names, english_names = list(pairs.japanese.names), list(pairs.english.names)
        counts = np.bincount(pairs.japanese.numbers)
        self._counts = dict(zip(names, counts.tolist(), strict=True))
        self._word_counts: Counter[str] = Counter()
        for name, count in self._counts.items():
            self._word_counts[word_of(name)] += count
        in_texts = np.bincount(
            np.array(pairs.japanese.numbers),
            weights=~np.repeat(np.array(pairs.is_dictionary), pairs.japanese.counts),
            minlength=len(names),
        )
        self._text_counts = dict(zip(names, in_texts.tolist(), strict=True))
        self._links: dict[tuple[str, str], Evidence] = defaultdict(Evidence)  # of a unit and a stem
        self._words: dict[tuple[str, str], Evidence] = defaultdict(Evidence)  # of a word, alone and beside others
        self._form_links: Counter[tuple[str, str]] = Counter()  # of a word and an English unit
        self._totals: Counter[str] = Counter()  # what is translated of a unit, a stem, a form
        self._word_totals: Counter[str] = Counter()
        self._in_compounds: dict[tuple[str, str], float] = defaultdict(float)  # of a part: the most of one compound
        self._all_compounds: Counter[tuple[str, str]] = Counter()  # of a part: the sum over all compounds
        self.forms: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
        for a, b, *numbers in zip(*(array.tolist() for array in links), strict=True):
            unit, form = names[a], english_names[b]
            if MARK not in (unit[0], form[0]):
                self._add(unit, form, numbers)
        for (unit, stem), evidence in self._links.items():
            if "|" in unit:
                first, second = unit.split("|")
                for part in (first, second):
                    self._in_compounds[part, stem] = max(self._in_compounds[part, stem], evidence.pairs)
                self._all_compounds[bridge.part_spelling(first, is_after=False, is_before=True), stem] += evidence.pairs
                self._all_compounds[bridge.part_spelling(second, is_after=True, is_before=False), stem] += (
                    evidence.pairs
                )

    def _add(self, unit: str, form: str, numbers: list[float]) -> None:
        pairs, sources, in_dictionary = numbers
        stem = stem_of(form)
        self._links[unit, stem].add(pairs, int(sources), in_dictionary)
        self._totals.update({unit: pairs, f"{stem}/": pairs})
        if "|" not in unit:
            word = word_of(unit)
            self._words[word, stem].add(pairs, int(sources), in_dictionary)
            self._word_totals[word] += pairs
            self._form_links[word, form] += pairs
            self.forms[word, stem][form] += pairs

    def table(self) -> Table:
        """Return the translations in both directions, most certain first."""
        japanese, english = self._select_japanese(), self._select_english()
        self._add_compounds(japanese, english)
        forms = self._select_forms(english)
        for unit, senses in self._senses.items():
            is_rare = MIN_RARE_PAIRS <= self._text_counts.get(unit, 0) <= MAX_RARE_PAIRS
            if is_rare and unit not in japanese and len(unit) > 2 and len(senses) <= MAX_RARE_SENSE:
                japanese[unit] = senses
        table = {
            unit.replace("|", ""): best(meanings)
            for unit, meanings in (japanese | english).items()
            if meanings and (max(meanings.values()) >= MIN_RUN_WEIGHT or not bridge.is_katakana_run(unit))
        }
        for form, meanings in forms.items():
            chosen, others = best(meanings), table.get(stem_of(form), [])
            if is_agent(form) or (chosen and not {word for word, _ in others} <= meanings.keys()):
                table[form] = chosen
        return table

    def _weight(self, pairs: float, first: float, second: float, balance: float = 0.5) -> float:
        """Return how certain a translation is in both directions, the first by `balance`; 1 is enough."""
        return STRETCH * (pairs / (first + PRIOR)) ** balance * (pairs / (second + PRIOR)) ** (1 - balance)

    def _is_of_compound(self, word: str, stem: str) -> bool:
        """Return whether a translation is that of one compound with the word, and not its own."""
        return self._in_compounds.get((word, stem), 0.0) > self._words[word, stem].pairs

    def _is_rare(self, word: str, stem: str) -> bool:
        """Return whether a kanji has a translation in few of its compounds."""
        return len(word) == 1 and self._words[word, stem].pairs < MIN_KANJI_SHARE * self._word_counts[word]

    def _select_japanese(self) -> dict[str, dict[str, float]]:
        translations: dict[str, dict[str, float]] = defaultdict(dict)
        for (unit, stem), evidence in self._links.items():
            share = evidence.pairs / (self._totals[unit] + PRIOR)
            weight = self._weight(evidence.pairs, self._totals[unit], self._totals[f"{stem}/"])
            if (
                "|" not in unit
                and weight >= MIN_WEIGHT
                and evidence.is_enough(share)
                and not self._is_of_compound(word_of(unit), stem)
                and share >= MIN_SHARE
                and (unit == word_of(unit) or self._bound_share(unit, stem) >= MIN_BOUND_SHARE)
            ):
                translations[unit][stem] = weight
        alone = set(translations)
        for (word, stem), evidence in self._words.items():
            if len(word) == 1 and word not in alone and self._is_translation(word, stem):
                weight = self._weight(evidence.pairs, self._word_totals[word], self._totals[f"{stem}/"])
                if weight >= MIN_WEIGHT:
                    translations[word][stem] = weight
        return translations

    def _bound_share(self, unit: str, stem: str) -> float:
        """Return in how many occurrences a kanji beside another word, or its compound, has a translation."""
        return (self._links[unit, stem].pairs + self._all_compounds[unit, stem]) / self._counts[unit]

    def _select_english(self) -> dict[str, dict[str, float]]:
        translations: dict[str, dict[str, float]] = defaultdict(dict)
        for (word, stem), evidence in self._words.items():
            weight = self._weight(evidence.pairs, self._word_totals[word], self._totals[f"{stem}/"])
            if weight >= MIN_WEIGHT and self._is_translation(word, stem):
                translations[stem][word] = weight
        return translations

    def _is_translation(self, word: str, stem: str) -> bool:
        evidence = self._words[word, stem]
        return (
            evidence.is_enough(evidence.pairs / (self._word_totals[word] + PRIOR))
            and not self._is_of_compound(word, stem)
            and not self._is_rare(word, stem)
        )

    def _select_forms(self, english: dict[str, dict[str, float]]) -> dict[str, dict[str, float]]:
        """Return the translations of each form of an English word: those of its stem that stand opposite the form.

        維新 is opposite restoration, and never opposite restore.
        """
        totals: Counter[str] = Counter()
        for (_, form), pairs in self._form_links.items():
            totals[form] += pairs
        forms: dict[str, dict[str, float]] = {}
        for form, total in totals.items():
            stem = stem_of(form)
            if total < MIN_FORM_PAIRS and not is_agent(form):
                continue
            needed = MIN_FORM_RATIO * total / self._totals[f"{stem}/"]
            forms[form] = {
                word: weight
                for word, weight in english.get(stem, {}).items()
                if self._form_links[word, form] >= needed * self.forms[word, stem].total()
                or (self.forms[word, stem].total() < MIN_FORMS and not is_agent(form))
            }
        return forms

    def _add_compounds(self, japanese: dict[str, dict[str, float]], english: dict[str, dict[str, float]]) -> None:
        """Add the compounds that mean what none of their words does: 非同期 is kept, since 同期 misleads."""
        compounds: dict[str, dict[str, float]] = defaultdict(dict)
        for (unit, stem), evidence in self._links.items():
            # 変数 is one word, even if it was once split into two.
            if (
                "|" in unit
                and not unit[0].isdecimal()
                and self._counts[unit] > self._word_counts[unit.replace("|", "")]
            ):
                weight = self._weight(evidence.pairs, self._totals[unit], self._totals[f"{stem}/"], COMPOUND_BALANCE)
                if weight >= MIN_WEIGHT and evidence.is_enough(evidence.pairs / (self._totals[unit] + PRIOR)):
                    compounds[unit][stem] = weight
        kept: dict[str, dict[str, float]] = {}
        parts: dict[str, dict[str, float]] = defaultdict(dict)  # 従業 is hardly ever without 員
        for unit, meanings in compounds.items():
            first, second = unit.split("|")
            meaning = max(meanings, key=lambda stem: (self._links[unit, stem].pairs, stem))
            weight = meanings[meaning]
            spellings = (
                bridge.part_spelling(first, is_after=False, is_before=True),
                bridge.part_spelling(second, is_after=True, is_before=False),
            )
            is_kept = (
                weight >= MIN_COMPOUND_WEIGHT
                and self._links[unit, meaning].pairs >= MIN_COMPOUND_SHARE * self._counts[unit]
                and not any(is_alike(meaning, other) for part in spellings for other in japanese.get(part, ()))
            )
            if is_kept:
                kept[unit] = meanings
            # An index has the words of a compound separately.
            for part in () if first in NEGATIONS else (first, second):
                share = self._counts[unit] / max(1, self._word_counts[part])
                is_short = len(part) == 1 or _KATAKANA.fullmatch(part) is not None
                if share < (MIN_PART_SHARE if is_kept and not is_short else MIN_SHORT_PART_SHARE):
                    continue
                for stem, certainty in meanings.items():
                    weight = min(1.0, certainty)
                    is_main = self._links[unit, stem].pairs >= MIN_PART_TRANSLATION * self._totals[f"{stem}/"]
                    if PART_WEIGHT * weight < MIN_WEIGHT or (len(part) == 1 and not is_kept):
                        continue
                    if is_main:
                        english[stem][part] = max(english[stem].get(part, 0.0), PART_WEIGHT * weight)
                    if share >= MIN_WHOLE_SHARE and not is_short:
                        parts[part][stem] = max(parts[part].get(stem, 0.0), PART_WEIGHT * weight)
        japanese.update(kept)
        for part, meanings in parts.items():
            japanese[part] = meanings | japanese.get(part, {})


def word_of(unit: str) -> str:
    """Return the word of a unit, without the sign that it stands beside another."""
    return unit.strip("-") if len(unit) == 2 else unit


def is_alike(first: str, second: str) -> bool:
    """Return whether two stems are of one family: syntact, syntax."""
    is_same_length = abs(len(first) - len(second)) < 2 and min(len(first), len(second)) > ALIKE_LETTERS
    return first == second or (is_same_length and first[:ALIKE_LETTERS] == second[:ALIKE_LETTERS])


def is_agent(form: str) -> bool:
    """Return whether an English unit is who or what does something."""
    return form.rpartition("/")[2] in bridge.AGENT_ENDINGS


def best(meanings: dict[str, float]) -> list[tuple[str, float]]:
    """Return the most certain meanings, with their weights."""
    ranked = sorted(meanings.items(), key=lambda item: (-item[1], item[0]))[:MAX_MEANINGS]
    return [(meaning, min(1.0, weight)) for meaning, weight in ranked]


def find_unlike(table: Table, forms: dict[tuple[str, str], Counter[str]]) -> list[tuple[str, str]]:
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
    a, b = ({form: count / counts.total() for form, count in counts.items()} for counts in (first, second))
    return sum(min(share, b.get(form, 0.0)) for form, share in a.items()) >= MIN_SHARED_FORMS


def save(out: Path, table: Table, unlike: list[tuple[str, str]]) -> None:
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
