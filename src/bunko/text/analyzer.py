"""Split text into index terms: Japanese lemmas, English stems, loanword origins, identifier parts.

The dictionary's loanwords are corrected by what was learned from translated texts (`training/loanwords.py`):
レンダー is render, not lender, and スニペット is one word, not スニ and ペット.

The key of a term is a 63-bit hash of its spelling, so that processes agree on it without sharing a vocabulary: a
million terms collide with a probability of 6 in 100 million.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable
from functools import cache, lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from bunko.errors import PackageError
from bunko.runtime.package_errors import check_outage, note_outage, package_errors, package_outages
from bunko.text.language import JAPANESE_CHARS
from bunko.text.line_joins import join_lines
from bunko.text.normalise import normalise, strip_accents
from bunko_dictionary import FOLDER

if TYPE_CHECKING:
    import fugashi


@cache
def load_tagger(output: str = "search") -> fugashi.GenericTagger:
    """Return MeCab with one of the output formats of the dictionary's dicrc."""
    with package_errors("fugashi"):
        import fugashi

        tagger = fugashi.GenericTagger(f'-r "{FOLDER}/mecabrc" -d "{FOLDER}" -O {output}')
        tagger.parse("語")  # what cannot work fails here
    return tagger


def find_parser(output: str = "search") -> Callable[[str], str] | None:
    """Return the function of MeCab that divides a text; None, with the outage noted, if it cannot be used."""
    try:
        parse: Callable[[str], str] = load_tagger(output).parse
    except PackageError as error:
        note_outage("fugashi", "Japanese words are searched as they are written", error)
        return None
    return parse


CORRECTIONS_PATH = Path(__file__).with_name("loanwords.tsv")


class Corrections(NamedTuple):
    """The English origins of katakana words, and the words among them that the dictionary splits."""

    origins: dict[str, str]
    joined: frozenset[str]


@cache
def corrections() -> Corrections:
    """Return all corrections."""
    rows = [line.split("\t") for line in CORRECTIONS_PATH.read_text(encoding="utf-8").splitlines()]
    return Corrections({row[0]: row[1] for row in rows}, frozenset(row[0] for row in rows if len(row) > 2))


# Raise this when the terms of a text change: older libraries then report that they must be rebuilt.
# 2: lines of hard-wrapped Japanese are joined.
# 3: loanwords are corrected; contractions and prefixes (don't, re-render) are no words of their own.
# 4: the English origin of a loanword is not the English word itself.
VERSION = 4

# One pass: a run of Japanese, or a word with its inner connectors (max_chunk_chars, DEC-0054, node.js, C++).
_RUN = re.compile(rf"[{JAPANESE_CHARS}]+|[^\W_{JAPANESE_CHARS}]+(?:[-_.'’:/@][^\W_{JAPANESE_CHARS}]+)*(?:\+\+|#)?")
# Parts of an identifier: HTTPServer2 is HTTP, Server, 2.
_IDENTIFIER_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_A-Za-z]+")
# don't is one word; the user's is the user.
_APOSTROPHE = re.compile("['’]")
_NEGATION = re.compile(r"n['’]t$", re.IGNORECASE)
_CONTRACTION = re.compile(r"['’](?:s|re|ve|ll|d|m)(?![^\W_])", re.IGNORECASE)
# re-render is render, and rerender; re_match may be about the module re.
_PREFIX = re.compile(r"(?:re|pre|non|un|de|co)-", re.IGNORECASE)
_MAX_WORD_CHARS = 64  # a longer word is data (base64, hashes): its parts would be noise
_SKIPPED_POS = frozenset(("助詞", "助動詞", "補助記号", "記号", "空白"))
# Function words, which say nothing about the topic of a text.
STOP_WORDS = frozenset(
    """
    a an and are as at be been but by can could did do does for from had has have how i if in into is it its me my
    no not of on or our should so such that the their them then there these they this those to was we were what when
    where which who why will with would you your
    """.split()
)

# Lemmas of questions: dropped from a query that has other words, since a text that answers rarely has them.
QUESTION_WORDS = frozenset("何 誰 何処 何時 何れ 何の 何故 如何 どう どんな どうして 教える 下さる 頂く".split())


class Term(NamedTuple):
    """An index term: its spelling, and its role in the word it came from."""

    spelling: str
    role: str = ""  # "" the word itself, "loanword" the English it was borrowed from, "part" of an identifier


@lru_cache(50_000)
def term_key(spelling: str) -> int:
    """Return the key of a spelling; the top bit is reserved for n-grams."""
    digest = blake2b(spelling.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1


def origin_key(spelling: str) -> int:
    """Return the key of an English word in texts that have a loanword from it, which is not the word itself."""
    return term_key("-" + spelling)


def runs(text: str) -> list[str]:
    """Return the runs of word characters in a text, each either Japanese or not, in order."""
    matches: list[str] = _RUN.findall(normalise(join_lines(text)))
    return matches


def terms(run: str) -> tuple[Term, ...]:
    """Return the terms of one run."""
    return (
        tuple(term for line in parse(run) for term in _line_terms(line)) if _is_japanese(run) else _western_terms(run)
    )


def terms_by_word(run: str) -> list[tuple[Term, ...]]:
    """Return the terms of one run word by word; a word without terms is an empty tuple."""
    if not _is_japanese(run):
        return [_western_terms(run)]
    return [_line_terms(line) for line in parse(run)]


def term_keys(text: str) -> list[int]:
    """Return the keys of all terms of a text, repeated as often as they occur."""
    keys: list[int] = []
    for run in _RUN.findall(normalise(join_lines(text))):
        keys += _RUN_KEYS[run]
    return keys


class _KeyCache(dict[str, tuple[int, ...]]):
    """Caches the keys of strings: most parts of a text repeat earlier ones."""

    def __init__(self, compute: Callable[[str], tuple[int, ...]], max_entries: int) -> None:
        super().__init__()
        self._compute, self._max_entries = compute, max_entries

    def __missing__(self, text: str) -> tuple[int, ...]:
        if len(self) >= self._max_entries:
            self.clear()
        keys = self[text] = self._compute(text)
        return keys


def _run_keys(run: str) -> tuple[int, ...]:
    if not _is_japanese(run):
        return tuple(term_key(term.spelling) for term in _western_terms(run))
    return tuple(itertools.chain.from_iterable(map(_LINE_KEYS.__getitem__, parse(run))))


def _line_keys(line: str) -> tuple[int, ...]:
    return tuple(
        origin_key(term.spelling) if term.role == "loanword" else term_key(term.spelling) for term in _line_terms(line)
    )


_RUN_KEYS = _KeyCache(_run_keys, 100_000)  # about 20 MB
_LINE_KEYS = _KeyCache(_line_keys, 100_000)
_JAPANESE_CHAR = re.compile(rf"[{JAPANESE_CHARS}]")


def _is_japanese(run: str) -> bool:
    return run[0] >= "\u3005" and _JAPANESE_CHAR.match(run) is not None


@lru_cache(20_000)  # particles, endings and common words are in most queries
def _line_terms(line: str) -> tuple[Term, ...]:
    part_of_speech, _, lemma = line.partition("\t")
    if part_of_speech in _SKIPPED_POS or not lemma:
        return ()
    # UniDic writes the origin of a loanword after a hyphen: サーバー-server.
    lemma, _, origin = lemma.partition("-")
    origin = corrections().origins.get(lemma, origin)
    if origin and origin.isascii():
        return Term(lemma), Term(stem(origin.lower()), "loanword")
    return (Term(lemma),)


def _western_terms(run: str) -> tuple[Term, ...]:
    if len(run) > _MAX_WORD_CHARS:
        return (Term(run.lower()),)
    run = strip_accents(run)
    if "'" in run or "’" in run:
        if _NEGATION.search(run):
            return (Term(_APOSTROPHE.sub("", run.lower())),)
        run = _CONTRACTION.sub("", run)
    # Most words are plain, and checking that is faster than splitting them.
    is_plain = run.isalpha() and run.isascii() and (run.islower() or run.istitle() or run.isupper())
    parts = [] if is_plain else _IDENTIFIER_PART.findall(run)
    if len(parts) < 2:
        word = run.lower()
        return () if word in STOP_WORDS else (Term(stem(word)),)
    # maxChunkChars, max_chunk_chars and max-chunk-chars are the same name; 3.14 and 314 are different numbers.
    lower_parts = [part.lower() for part in parts]
    whole = run.lower()
    if not all(part.isdigit() for part in parts):
        whole = "".join(lower_parts) + run[len(run.rstrip("+#")) :]
    run_terms = [Term(stem(whole))]
    is_prefixed = _PREFIX.match(run) is not None or run[1] in "'’"
    run_terms += [Term(stem(part), "part") for part in lower_parts[is_prefixed:] if part not in STOP_WORDS]
    if len(parts) > 2:
        # GitHubActions is Git, Hub, Actions, but people type github.
        run_terms += [Term(stem(a + b), "part") for a, b in itertools.pairwise(lower_parts)]
    return tuple(run_terms)


def stem(word: str) -> str:
    """Return the stem of an English word in lower case."""
    if len(word) > 3 and word.isascii() and word.isalpha():
        return _stemmer()(word)
    return word


@cache
def _stemmer() -> Callable[[str], str]:
    try:
        with package_errors("PyStemmer"):
            import Stemmer

            # Without its cache: once that is full, a new word costs four times as much as its stem.
            stem_word: Callable[[str], str] = Stemmer.Stemmer("english", 0).stemWord
            stem_word("words")  # what cannot work fails here
    except PackageError as error:
        note_outage("PyStemmer", "English words are searched as they are written", error)
        return str
    return stem_word


def parse(run: str) -> list[str]:
    """Return the words of a run of Japanese as lines of part of speech and lemma."""
    if not _KATAKANA.search(run):  # as all loanwords are
        return parse_uncorrected(run)
    parts = split_at_loanwords(run)
    if len(parts) == 1 and not is_joined(run):
        return parse_uncorrected(run)
    return [line for part in parts for line in ([f"名詞\t{part}"] if is_joined(part) else parse_uncorrected(part))]


def parse_uncorrected(run: str) -> list[str]:
    """Return the words of a run as the dictionary has them."""
    lines: str = _parser()(run)
    return lines.split("\n")


def split_at_loanwords(run: str) -> list[str]:
    """Return a run of Japanese in parts: the loanwords that the dictionary would split, and what is between them."""
    for katakana in _KATAKANA.findall(run):
        if _find_joined(katakana):
            return [word for part in _KATAKANA_OR_NOT.findall(run) for word in _find_joined(part) or (part,)]
    return [run]


def is_joined(part: str) -> bool:
    """Return whether a part of a run is a loanword that the dictionary would split."""
    return part in corrections().joined


_KATAKANA = re.compile("[ァ-ヺー]{3,}")
_KATAKANA_OR_NOT = re.compile("[ァ-ヺー]{3,}|(?:(?![ァ-ヺー]{3,}).)+")


@lru_cache(50_000)
def _find_joined(katakana: str) -> tuple[str, ...]:
    """Return a word that the dictionary splits, with the word before or after it; () if there is none."""
    joined = corrections().joined
    if katakana in joined:
        return (katakana,)
    if len(katakana) < 2 * _MIN_JOINED_CHARS - 1 or _is_one_word(katakana):
        return ()
    for size in range(len(katakana) - 2, _MIN_JOINED_CHARS - 1, -1):
        for first, second in (katakana[:size], katakana[size:]), (katakana[:-size], katakana[-size:]):
            word, rest = (first, second) if len(first) == size else (second, first)
            if word in joined and _is_one_word(rest):
                return first, second
    return ()


_MIN_JOINED_CHARS = 4  # of a joined word in a longer one: トリガ may be part of anything


def _is_one_word(text: str) -> bool:
    part_of_speech, _, lemma = _parser()(text).partition("\t")
    return bool(part_of_speech) and "\n" not in lemma


@cache
def _parser() -> Callable[[str], str]:
    parse = find_parser()
    return parse or (lambda run: "\n".join(f"{part_of_speech}\t{word}" for word, part_of_speech in split_kana(run)))


def split_kana(run: str) -> list[tuple[str, str]]:
    """Return the words of a run of Japanese by its characters, each with its part of speech, as far as those tell.

    Most words in kanji have two. What is in hiragana is an ending or a particle, or cannot be told from them.
    """
    return [(word, "助詞" if word[0] in _HIRAGANA else "名詞-普通名詞-一般") for word in _KANA_OR_KANJI.findall(run)]


_HIRAGANA = frozenset(map(chr, range(0x3041, 0x30A0)))
_KANA_OR_KANJI = re.compile("[ァ-ヺー]+|[\u3041-\u309f]+|[^ァ-ヺー\u3041-\u309f]{1,2}")


def check_packages(texts: Iterable[str]) -> None:
    """Raise the error of a package that is missing for the terms of texts: they are searched, but may not be stored."""
    if package_outages():
        check_outage("PyStemmer")
        if any(map(_JAPANESE_CHAR.search, texts)):
            check_outage("fugashi")
