"""Analyze sentences into clauses with their words, names, quantities and negations, so that they can be compared."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise

from bunko.answers import polarity
from bunko.answers.clauses import Clause, Word
from bunko.answers.quantities import extract_quantities, normalise_numbers
from bunko.text import analyzer, bridge
from bunko.text.language import JAPANESE_CHARS
from bunko.text.part_of_speech import parse_run
from bunko.text.romaji import fold_romaji, kana_to_romaji

# A clause ends at a comma, a semicolon or a conjunction; 1,000 has no clause border.
_CLAUSE_END = re.compile(
    r"[、；;]|,(?=\s)|:(?=\s)|\s(?=(?:and|but|while|whereas|which|then|or|after|before|until|unless|if|when|because|since|although)\s)(?<!\blook)(?<!\blooks)(?<!\blooked)|(?<=[。｡！？!?])|(?<=\.)(?=\s)",
    re.IGNORECASE,
)
_CONJUNCTION = re.compile(r"\s*(?:and|but|or)\s", re.IGNORECASE)
_JAPANESE = re.compile(rf"[{JAPANESE_CHARS}]")
_SINGLE_KANA = re.compile(r"[ぁ-ん]")  # left over where a quantity was taken out
_KATAKANA = re.compile(r"[ァ-ヺー]+")
_HAS_DIGIT = re.compile(r"\d")
_ADDRESS = re.compile(r"\w@\w|\w\.\w")  # of a mailbox, a site or a file
# Words that say nothing about what is claimed.
_FILLER_LEMMAS = frozenset(
    """
    為る 有る 居る 成る 出来る 言う 事 物 所 時 為 様 場合 其れ 此れ 其の 此の 彼の 良い 下さる 頂く 付く 因る 於く
    等 的 方 訳 筈 さん 氏 君 殿 ちゃん 御 者 際 又 及び 更に 但し 例えば 即ち 詰まり 従って 程 頃 分 内 間 為さる
    致す 御座る 参る 仕舞う 置く 呉れる 貰う 見る 行く 来る 可能 対する 関する 第 毎 約 凡そ 各 つき 当たり 当たる
    から まで より など ほど だけ のみ くらい 以降 以上 以下 以内 未満 以前 以後
    """.split()
)
_FILLER_WORDS = analyzer.STOP_WORDS | frozenset(
    """
    may might must shall also just than about approximately around roughly each any all some other others upon per via
    within only one ones he she him her his hers us am being having get gets got let please both either according
    therefore thus hence however moreover furthermore additionally still already yet even there here every most more
    own very up out over ever s t d m re ve ll after before until unless when because since although while whereas
    e.g i.e etc
    """.split()
)
# Verbs and adjectives, and nouns that become verbs with する: what a clause asserts.
_PREDICATES = ("動詞", "形容詞", "形状詞", "名詞-普通名詞-サ変", "名詞-普通名詞-形状詞")
_TOPIC_PARTICLES = ("は", "が", "には", "では", "も")
_MAX_PENDING_CHARS = 200
_NAME_TITLES = frozenset("Dr Mr Mrs Ms Prof The A An I".split())


@lru_cache(4096)
def analyze_clauses(sentence: str) -> tuple[Clause, ...]:
    """Return the clauses of a sentence that claim something; one without words joins the clause before it."""
    text = polarity.affirm(normalise_numbers(sentence))
    borders = [0, *(match.end() for match in _CLAUSE_END.finditer(text)), len(text)]
    clauses: list[Clause] = []
    pending = ""  # text without a word, such as "After 90 days": it belongs to the words before or after it
    starts_sentence = True
    for start, end in pairwise(borders):
        part = pending + text[start:end]
        clause = _analyze_clause(part, starts_sentence=starts_sentence)
        if clause.is_empty or (not clause.words and not _CONJUNCTION.match(part) and len(part) < _MAX_PENDING_CHARS):
            pending = "" if clause.is_empty and len(part) > _MAX_PENDING_CHARS else part
            continue
        clauses.append(clause)
        pending, starts_sentence = "", part.rstrip().endswith((".", "!", "?", ":"))
    if pending.strip():
        last = _analyze_clause(
            f"{clauses[-1].text} {pending}" if clauses else pending, starts_sentence=len(clauses) < 2
        )
        clauses = [*clauses[:-1], last] if not last.is_empty else clauses
    return tuple(clauses)


def _analyze_clause(text: str, *, starts_sentence: bool) -> Clause:
    quantities, remaining = extract_quantities(text)
    words: list[Word] = []
    negations = 0
    pending_negations = 0  # of English, which come before the word
    denies_all = False
    runs = list(analyzer.runs(remaining))
    for index, run in enumerate(runs):
        if _JAPANESE.match(run):
            run_words, count = _japanese_words(run)
            words += run_words
            negations += count
            continue
        lower = run.lower()
        if polarity.is_english_negation(lower):
            pending_negations, negations = 2 if lower in ("no", "without") else 1, negations + 1
            continue
        if lower in polarity.ENGLISH_DENIALS:
            denies_all, negations = True, negations + 1
            continue
        if lower in _FILLER_WORDS:
            continue
        following = runs[index + 1] if index + 1 < len(runs) else ""
        word = _western_word(run, following, is_first=starts_sentence and index == 0, is_negated=pending_negations > 0)
        negations += word.spellings[0] in polarity.ENGLISH_PROHIBITIONS
        pending_negations = max(0, pending_negations - 1)
        words.append(word)
    if denies_all:
        words = [Word(word.text, word.spellings, word.is_name, True, word.is_predicate) for word in words]
    return Clause(
        text.strip(),
        tuple(words),
        tuple(quantities),
        negations,
        _find_topic(text, words, starts_sentence=starts_sentence),
    )


def _find_topic(text: str, words: Sequence[Word], *, starts_sentence: bool) -> Word | None:
    if not words or not words[0].is_japanese:
        return words[0] if words and starts_sentence else None
    for word in words:
        after = text.partition(word.text)[2]
        if after.startswith(_TOPIC_PARTICLES):
            return word
    return None


def _western_word(run: str, following: str, *, is_first: bool, is_negated: bool) -> Word:
    terms = analyzer.terms(run) or (analyzer.Term(run.lower()),)
    has_capital = run[:1].isupper()
    is_code = (
        bool(_HAS_DIGIT.search(run) or _ADDRESS.search(run))
        or (run.isupper() and len(run) > 1)
        or (len(run) > 2 and not run[1:].islower() and not run.islower())
    )
    # The first word of a sentence has a capital anyway; before another capital it is the first part of a name.
    is_name = is_code or (has_capital and run not in _NAME_TITLES and (not is_first or following[:1].isupper()))
    spellings = tuple(term.spelling for term in terms if term.role != "part") if is_code else (terms[0].spelling,)
    return Word(run, spellings, is_name, is_negated)


def _japanese_words(run: str) -> tuple[list[Word], int]:
    """Return the content words of a run of Japanese, and how often it denies something."""
    morphemes, terms_by_word = parse_run(run), analyzer.terms_by_word(run)
    if len(morphemes) != len(terms_by_word):  # the dictionaries disagree: there are no parts of speech
        return [Word(run, tuple(term.spelling for terms in terms_by_word for term in terms))], 0
    words: list[Word] = []
    negations = 0
    is_prefix_denying = False
    lemmas = [terms[0].spelling if terms else "" for terms in terms_by_word]
    for position, ((surface, part_of_speech), terms) in enumerate(zip(morphemes, terms_by_word, strict=True)):
        spellings = tuple(term.spelling for term in terms)
        is_negation = part_of_speech.startswith("助動詞") and surface in polarity.JAPANESE_NEGATIONS
        if is_negation or (spellings and spellings[0] in polarity.JAPANESE_DENIALS):
            negations += 1
            if words:
                last = words[-1]
                words[-1] = Word(last.text, last.spellings, last.is_name, not last.is_negated, last.is_predicate)
            if is_negation or spellings[0] in ("無い", "無し"):
                continue
        if part_of_speech.startswith("接頭辞") and surface in polarity.JAPANESE_PREFIXES:
            is_prefix_denying, negations = True, negations + 1
            continue
        if (
            not spellings
            or spellings[0] in _FILLER_LEMMAS
            or _SINGLE_KANA.fullmatch(surface)
            or part_of_speech.startswith(("名詞-数詞", "接頭辞"))
        ):
            continue
        opposed = polarity.JAPANESE_OPPOSED.get(spellings[0])
        negations += opposed is not None
        is_name = part_of_speech.startswith("名詞-固有名詞")
        words.append(
            Word(
                surface,
                (opposed,)
                if opposed
                else (
                    *spellings,
                    *_romaji_spellings(spellings[0], is_name=is_name),
                    *_translated_compounds(lemmas, position),
                ),
                is_name,
                is_negated=(opposed is not None) != is_prefix_denying,
                is_predicate=part_of_speech.startswith(_PREDICATES),
            )
        )
        is_prefix_denying = False
    return words, negations


def _translated_compounds(lemmas: Sequence[str], position: int) -> Iterator[str]:
    """Yield the compounds of a word with its neighbours that have their own translation: 冷凍庫 is a freezer."""
    for first, second in pairwise(lemmas[max(0, position - 1) : position + 2]):
        if first and second and bridge.meanings(first + second):
            yield first + second


def _romaji_spellings(lemma: str, *, is_name: bool) -> Iterator[str]:
    """Yield the spellings of a Japanese name in Western letters: its lemma is its reading."""
    if is_name and _KATAKANA.fullmatch(lemma):
        yield fold_romaji(kana_to_romaji(lemma))
