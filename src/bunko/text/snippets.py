"""A text and the terms asked for in, where they stand in it and the stretch that says most about them out."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import NamedTuple

from bunko.text import analyzer
from bunko.text.normalise import normalise
from bunko.text.sentences import sentence_ends

# As much as a person takes in at a glance.
SNIPPET_CHARS = 150
# A term met again says little more than the first time.
_REPEAT_WEIGHT = 0.1
# A window may end with a sentence instead of at its full size, if that leaves most of it.
_MIN_FILL_SHARE = 0.6
_RUN = re.compile(
    rf"[{analyzer.JAPANESE_CHARS}]+|[^\W_{analyzer.JAPANESE_CHARS}]+(?:[-_.'’:/@][^\W_{analyzer.JAPANESE_CHARS}]+)*(?:\+\+|#)?"
)
# What becomes one character when it is composed: か and a sound mark, e and an accent, a half-width kana and its mark.
_CLUSTER = re.compile(r"(?s).[\u0300-\u036f\u3099\u309a\uff9e\uff9f]*")
_LINKING_PARTICLES = frozenset(("て", "で", "ちゃ", "じゃ"))


class SnippetTerms(NamedTuple):
    """What is looked for: terms as they are indexed with what each counts, and how the query spells it."""

    weights: Mapping[str, float]
    literals: tuple[str, ...] = ()  # looked for where no term is found


class TermMatch(NamedTuple):
    """Where a term stands."""

    start: int
    end: int
    spelling: str


class _LocatedWord(NamedTuple):
    start: int
    end: int
    spellings: tuple[str, ...]


def find_matches(text: str, terms: SnippetTerms) -> list[TermMatch]:
    """Return where the terms stand, in order: each by the word as it is written, with its ending."""
    return _match_words(text, _locate_words(text), terms)


def highlight_ranges(text: str, terms: SnippetTerms) -> list[tuple[int, int]]:
    """Return the ranges to mark; matches that touch are one."""
    found: list[tuple[int, int]] = []
    for match in find_matches(text, terms):
        if found and match.start <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], match.end))
        else:
            found.append((match.start, match.end))
    return found


def snippet_range(text: str, terms: SnippetTerms, size: int = SNIPPET_CHARS) -> tuple[int, int]:
    """Return the stretch of at most `size` characters that holds most of what is looked for.

    It begins and ends with a sentence where one fits, else with a word; without a match it is the beginning.
    """
    first, last = _trim_blanks(text, 0, len(text))
    if last - first <= size:
        return first, last
    located = _locate_words(text)
    low, high = _best_range(_match_words(text, located, terms), terms.weights, size) or (first, first)
    stops = sentence_ends(text)
    begun = max((at for at in (0, *stops) if at <= low), default=0)
    begun = max(first, begun + len(text[begun:low]) - len(text[begun:low].lstrip()))
    if high - begun <= size:
        start = begun
    else:
        # In the middle of a long sentence: some of what stands before, and more of what follows.
        start = max(first, begun, low - (size - (high - low)) // 3)
        starts = [word.start for word in located]
        at = bisect_left(starts, start)
        start = starts[at] if at < len(starts) and starts[at] <= low else low
    end = min(last, start + size)
    if end < last:
        whole = max((at for at in stops if high <= at <= end), default=0)
        if whole - start >= size * _MIN_FILL_SHARE:
            end = whole
        else:
            finishes = [word.end for word in located]
            at = bisect_right(finishes, end) - 1
            # A word longer than the window is data, and is cut anywhere.
            end = finishes[at] if at >= 0 and finishes[at] > start and finishes[at] >= high else end
    return _trim_blanks(text, start, end)


def cut_offset(text: str, max_chars: int) -> int:
    """Return where to cut a text that has more than so many characters: after a sentence, else after a word."""
    if len(text) <= max_chars:
        return len(text)
    whole = max((at for at in sentence_ends(text[: max_chars + 1]) if at <= max_chars), default=0)
    if whole >= max_chars * _MIN_FILL_SHARE:
        return whole
    # Words near the cut are all that matter; reading a whole book for its beginning would take long.
    near = max(0, max_chars - 2 * SNIPPET_CHARS)
    finish = max(
        (
            near + word.end
            for word in _locate_words(text[near : max_chars + SNIPPET_CHARS])
            if near + word.end <= max_chars
        ),
        default=0,
    )
    return max(whole, finish) or max_chars


def add_highlights(text: str, ranges: Sequence[tuple[int, int]]) -> str:
    """Return a text with the ranges between two asterisks."""
    parts, at = [], 0
    for start, end in ranges:
        parts += [text[at:start], "**", text[start:end], "**"]
        at = end
    return "".join([*parts, text[at:]])


def _best_range(matches: Sequence[TermMatch], weights: Mapping[str, float], size: int) -> tuple[int, int] | None:
    best, most = None, 0.0
    for number, first in enumerate(matches):
        seen: set[str] = set()
        score, end = 0.0, first.end
        for match in matches[number:]:
            if match.end - first.start > size:
                break
            if match.spelling in seen:
                score += weights.get(match.spelling, 1.0) * _REPEAT_WEIGHT
                continue  # worth having, but not worth the beginning of a sentence
            score += weights.get(match.spelling, 1.0)
            seen.add(match.spelling)
            end = max(end, match.end)
        if score > most + 1e-9:
            best, most = (first.start, end), score
    if best is None and matches:  # one match longer than the window
        best = (matches[0].start, matches[0].start + size)
    return best


def _match_words(text: str, words: Sequence[_LocatedWord], terms: SnippetTerms) -> list[TermMatch]:
    found = []
    for word in words:
        known = [spelling for spelling in word.spellings if spelling in terms.weights]
        if known:
            found.append(TermMatch(word.start, word.end, max(known, key=lambda one: terms.weights[one])))
    return found or _match_literals(text, terms.literals)


def _match_literals(text: str, literals: Sequence[str]) -> list[TermMatch]:
    flat, origin = _normalise_with_offsets(text)
    found = []
    for piece in literals:
        for match in re.finditer(re.escape(piece), flat, re.IGNORECASE):
            found.append(TermMatch(origin(match.start()), origin(match.end()), piece))
    return sorted(found)


def _locate_words(text: str) -> list[_LocatedWord]:
    flat, origin = _normalise_with_offsets(text)
    found: list[_LocatedWord] = []
    for run in _RUN.finditer(flat):
        for start, end, spellings in _run_words(run[0]):
            word = _LocatedWord(origin(run.start() + start), origin(run.start() + end), spellings)
            if word.start < word.end:  # ㍿ is two words in one character
                found.append(word)
    return found


def _run_words(run: str) -> Iterator[_LocatedWord]:
    by_word = [tuple(term.spelling for term in terms) for terms in analyzer.terms_by_word(run)]
    rows = _parse_run(run) if re.match(f"[{analyzer.JAPANESE_CHARS}]", run) else [(run, "")]
    if len(rows) != len(by_word):
        # The two readings of a run disagree: it is one word with all its terms.
        yield _LocatedWord(0, len(run), tuple(spelling for spellings in by_word for spelling in spellings))
        return
    at, held = 0, _LocatedWord(0, 0, ())
    bends = False  # whether an ending may follow
    for (surface, speech), spellings in zip(rows, by_word, strict=True):
        after = at + len(surface)
        kind = speech.partition("-")[0]
        if bends and not spellings and (kind == "助動詞" or (kind == "助詞" and surface in _LINKING_PARTICLES)):
            held = _LocatedWord(held.start, after, held.spellings)  # 走っ and た are one word to a reader
        else:
            if held.end:
                yield held
            held = _LocatedWord(at, after, spellings)
            bends = kind in ("動詞", "形容詞")
        at = after
    if held.end:
        yield held


def _normalise_with_offsets(text: str) -> tuple[str, Callable[[int], int]]:
    """Return the text as words are read from it, and where each of its offsets stands in the text itself."""
    if text.isascii() or unicodedata.is_normalized("NFKC", text):
        return text, lambda offset: offset
    parts: list[str] = []
    origins: list[int] = []
    for cluster in _CLUSTER.finditer(text):
        part = normalise(cluster[0])
        parts.append(part)
        origins += [cluster.start()] * len(part)
    origins.append(len(text))
    return "".join(parts), origins.__getitem__


def _trim_blanks(text: str, start: int, end: int) -> tuple[int, int]:
    inside = text[start:end]
    if not inside.strip():
        return start, start
    return start + len(inside) - len(inside.lstrip()), end - len(inside) + len(inside.rstrip())


def _parse_run(run: str) -> list[tuple[str, str]]:
    rows = (line.split("\t") for line in _parser()(run).split("\n"))
    return [(row[0], row[4]) for row in rows if len(row) > 4]


@cache
def _parser() -> Callable[[str], str]:
    import fugashi
    import unidic_lite

    # The dictionary's own format: surface, two readings, lemma, part of speech.
    folder = unidic_lite.DICDIR
    parse: Callable[[str], str] = fugashi.GenericTagger(f'-r "{folder}/mecabrc" -d "{folder}"').parse
    return parse
