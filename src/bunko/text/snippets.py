"""Find query terms in a text, and choose the snippet that shows most of them."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from bunko.text import analyzer
from bunko.text.language import JAPANESE_CHARS
from bunko.text.line_joins import line_gaps
from bunko.text.normalise import normalise
from bunko.text.part_of_speech import parse_run
from bunko.text.sentences import sentence_ends

# As much as a person reads at a glance.
SNIPPET_CHARS = 150
# A repeated term adds little.
_REPEAT_WEIGHT = 0.1
# The sentence nearest to the query adds half a term: it decides between places that show as many terms.
_SENTENCE_WEIGHT = 0.5
# A snippet may end with a sentence before its full size, if it keeps this share of it.
_MIN_FILL_SHARE = 0.6
_RUN = re.compile(rf"[{JAPANESE_CHARS}]+|[^\W_{JAPANESE_CHARS}]+(?:[-_.'’:/@][^\W_{JAPANESE_CHARS}]+)*(?:\+\+|#)?")
# Characters that compose to one: か and a sound mark, e and an accent, a half-width kana and its mark.
_CLUSTER = re.compile(r"(?s).[\u0300-\u036f\u3099\u309a\uff9e\uff9f]*")
_LINKING_PARTICLES = frozenset(("て", "で", "ちゃ", "じゃ"))


class SnippetTerms(NamedTuple):
    """The query terms: index terms with their weights, and the literal words of the query."""

    weights: Mapping[str, float]
    literals: tuple[str, ...] = ()  # searched if no term matches


class TermMatch(NamedTuple):
    """The range of a term in a text."""

    start: int
    end: int
    spelling: str


class _LocatedWord(NamedTuple):
    start: int
    end: int
    spellings: tuple[str, ...]


def find_matches(text: str, terms: SnippetTerms) -> list[TermMatch]:
    """Return the matches of the terms in order; a match covers the whole word, with its ending."""
    analyzed, runs = _split_text(text)
    weights, matches = terms.weights, []
    for run_start, words in runs:
        for start, end, spellings in words:
            known = [spelling for spelling in spellings if spelling in weights]
            if known:
                start, end = analyzed.original_range(run_start + start, run_start + end)
                if start < end:  # ㍿ is two words in one character
                    matches.append(TermMatch(start, end, max(known, key=weights.__getitem__)))
    return matches or _match_literals(text, terms.literals)


def highlight_ranges(text: str, terms: SnippetTerms) -> list[tuple[int, int]]:
    """Return the ranges to highlight; adjacent matches are joined."""
    ranges: list[tuple[int, int]] = []
    for match in find_matches(text, terms):
        if ranges and match.start <= ranges[-1][1]:
            ranges[-1] = (ranges[-1][0], max(ranges[-1][1], match.end))
        else:
            ranges.append((match.start, match.end))
    return ranges


def snippet_range(text: str, terms: SnippetTerms, size: int = SNIPPET_CHARS, *, sentence: str = "") -> tuple[int, int]:
    """Return the range of at most `size` characters that matches the terms best.

    Of places that match equally well it shows `sentence`, if the text has it; without a match that or the beginning. It
    begins and ends with a sentence if one fits, else with a word.
    """
    text_start, text_end = _trim_blanks(text, 0, len(text))
    if text_end - text_start <= size:
        return text_start, text_end
    words = _locate_words(text)
    text_range = find_sentence(text, sentence)
    nearest = (text_range[0], min(text_range[1], text_range[0] + size)) if text_range else None
    matches = _match_words(text, words, terms)
    best = _best_range(matches, terms.weights, size, nearest) or nearest or (text_start, text_start)
    sentence_borders = sentence_ends(text)
    start = _snippet_start(text, words, sentence_borders, best, size, text_start)
    if text_end - start < size * _MIN_FILL_SHARE:
        # At the end of the text, sentences before the best range fill the snippet.
        start = min((border for border in sentence_borders if text_end - size <= border < start), default=start)
    end = min(text_end, start + size)
    if end < text_end:
        end = _snippet_end(words, sentence_borders, best[1], start, end, size)
    return _trim_blanks(text, start, end)


def find_sentence(text: str, sentence: str) -> tuple[int, int] | None:
    """Return the range of a sentence, or of its longest line, in a text whose lines may have been joined."""
    for part in (sentence, " ".join(sentence.split()), max(sentence.splitlines(), key=len, default="").strip()):
        if part and (start := text.find(part)) >= 0:
            return start, start + len(part)
    return None


def _snippet_start(
    text: str,
    words: Sequence[_LocatedWord],
    sentence_borders: Sequence[int],
    best: tuple[int, int],
    size: int,
    text_start: int,
) -> int:
    """Return the start of the sentence with the best range, or of a word before that range."""
    low, high = best
    border = max((border for border in (0, *sentence_borders) if border <= low), default=0)
    sentence_start = max(text_start, border + len(text[border:low]) - len(text[border:low].lstrip()))
    if high - sentence_start <= size:
        return sentence_start
    # In the middle of a long sentence: some of the text before the range, and more of the text after it.
    start = max(text_start, sentence_start, low - (size - (high - low)) // 3)
    word_starts = [word.start for word in words]
    index = bisect_left(word_starts, start)
    return word_starts[index] if index < len(word_starts) and word_starts[index] <= low else low


def _snippet_end(
    words: Sequence[_LocatedWord], sentence_borders: Sequence[int], high: int, start: int, limit: int, size: int
) -> int:
    """Return the last sentence end up to `limit` that keeps enough text, or the last word end, or `limit`."""
    sentence_end = max((border for border in sentence_borders if high <= border <= limit), default=0)
    if sentence_end - start >= size * _MIN_FILL_SHARE:
        return sentence_end
    word_ends = [word.end for word in words]
    index = bisect_right(word_ends, limit) - 1
    # A word longer than the snippet is data, and may be cut anywhere.
    return word_ends[index] if index >= 0 and word_ends[index] > start and word_ends[index] >= high else limit


def cut_offset(text: str, max_chars: int) -> int:
    """Return where to cut a text to at most `max_chars` characters: after a sentence, else after a word."""
    if len(text) <= max_chars:
        return len(text)
    sentence_end = max((end for end in sentence_ends(text[: max_chars + 1]) if end <= max_chars), default=0)
    if sentence_end >= max_chars * _MIN_FILL_SHARE:
        return sentence_end
    # Only words near the cut matter; analyzing a whole book for its beginning would take long.
    window_start = max(0, max_chars - 2 * SNIPPET_CHARS)
    word_end = max(
        (
            window_start + word.end
            for word in _locate_words(text[window_start : max_chars + SNIPPET_CHARS])
            if window_start + word.end <= max_chars
        ),
        default=0,
    )
    return max(sentence_end, word_end) or max_chars


def add_highlights(text: str, ranges: Sequence[tuple[int, int]]) -> str:
    """Return a text with the ranges in bold: between double asterisks."""
    parts, position = [], 0
    for start, end in ranges:
        parts += [text[position:start], "**", text[start:end], "**"]
        position = end
    return "".join([*parts, text[position:]])


def _best_range(
    matches: Sequence[TermMatch], weights: Mapping[str, float], size: int, sentence: tuple[int, int] | None
) -> tuple[int, int] | None:
    best, best_score = None, 0.0
    for index, first in enumerate(matches):
        spellings: set[str] = set()
        score, end = 0.0, first.end
        if sentence and sentence[0] <= first.start < sentence[1]:
            score = _SENTENCE_WEIGHT
        for match in matches[index:]:
            if match.end - first.start > size:
                break
            if match.spelling in spellings:
                score += weights.get(match.spelling, 1.0) * _REPEAT_WEIGHT
                continue  # a repetition adds to the score, but does not extend the range
            score += weights.get(match.spelling, 1.0)
            spellings.add(match.spelling)
            end = max(end, match.end)
        if score > best_score + 1e-9:
            best, best_score = (first.start, end), score
    if best is None and matches:  # a match longer than the snippet
        best = (matches[0].start, matches[0].start + size)
    return best


def _match_words(text: str, words: Sequence[_LocatedWord], terms: SnippetTerms) -> list[TermMatch]:
    matches = []
    for word in words:
        spellings = [spelling for spelling in word.spellings if spelling in terms.weights]
        if spellings:
            matches.append(
                TermMatch(word.start, word.end, max(spellings, key=lambda spelling: terms.weights[spelling]))
            )
    return matches or _match_literals(text, terms.literals)


def _match_literals(text: str, literals: Sequence[str]) -> list[TermMatch]:
    analyzed = _AnalyzedText(text)
    matches = []
    for literal in literals:
        for match in re.finditer(re.escape(literal), analyzed.text, re.IGNORECASE):
            matches.append(TermMatch(*analyzed.original_range(match.start(), match.end()), literal))
    return sorted(matches)


# While somebody types, the same texts are found again and again.
@lru_cache(maxsize=64)
def _split_text(text: str) -> tuple[_AnalyzedText, tuple[tuple[int, tuple[_LocatedWord, ...]], ...]]:
    """Return a text as it is analyzed, and each of its runs: where it starts, and its words with their places in it."""
    analyzed = _AnalyzedText(text)
    return analyzed, tuple((run.start(), _run_words(run[0])) for run in _RUN.finditer(analyzed.text))


@lru_cache(maxsize=64)
def _locate_words(text: str) -> tuple[_LocatedWord, ...]:
    analyzed, runs = _split_text(text)
    words: list[_LocatedWord] = []
    for run_start, run_words in runs:
        for start, end, spellings in run_words:
            word = _LocatedWord(*analyzed.original_range(run_start + start, run_start + end), spellings)
            if word.start < word.end:  # ㍿ is two words in one character
                words.append(word)
    return tuple(words)


@lru_cache(maxsize=4096)
def _run_words(run: str) -> tuple[_LocatedWord, ...]:
    return tuple(_split_run(run))


def _split_run(run: str) -> Iterator[_LocatedWord]:
    spellings_by_word = [tuple(term.spelling for term in terms) for terms in analyzer.terms_by_word(run)]
    morphemes = parse_run(run) if re.match(f"[{JAPANESE_CHARS}]", run) else ((run, ""),)
    if len(morphemes) != len(spellings_by_word):
        # The analyzer and the dictionary split the run differently: treat it as one word.
        yield _LocatedWord(0, len(run), tuple(spelling for spellings in spellings_by_word for spelling in spellings))
        return
    start, word = 0, _LocatedWord(0, 0, ())
    is_inflected = False  # an ending may follow
    for (surface, part_of_speech), spellings in zip(morphemes, spellings_by_word, strict=True):
        end = start + len(surface)
        kind = part_of_speech.partition("-")[0]
        if is_inflected and not spellings and (kind == "助動詞" or (kind == "助詞" and surface in _LINKING_PARTICLES)):
            word = _LocatedWord(word.start, end, word.spellings)  # 走っ and た are one word to a reader
        else:
            if word.end:
                yield word
            word = _LocatedWord(start, end, spellings)
            is_inflected = kind in ("動詞", "形容詞")
        start = end
    if word.end:
        yield word


class _AnalyzedText:
    """A text as it is analyzed, normalised and with joined lines, and where its characters are in the original."""

    def __init__(self, original: str) -> None:
        gaps = line_gaps(original)
        self.text = original
        self._offsets: list[int] = []  # in the original; empty: they are the same
        self._gap_starts = {end: start for start, end in gaps}  # by the end of the gap
        if not gaps and (original.isascii() or unicodedata.is_normalized("NFKC", original)):
            return
        parts: list[str] = []
        position = 0
        for gap_start, gap_end in (*gaps, (len(original), len(original))):
            for cluster in _CLUSTER.finditer(original, position, gap_start):
                part = normalise(cluster[0])
                parts.append(part)
                self._offsets += [cluster.start()] * len(part)
            position = gap_end
        self._offsets.append(len(original))
        self.text = "".join(parts)

    def original_range(self, start: int, end: int) -> tuple[int, int]:
        """Return the range in the original of a range that is not empty; a joined line end after it is left out."""
        if not self._offsets:
            return start, end
        original_end = self._offsets[end]
        return self._offsets[start], self._gap_starts.get(original_end, original_end)


def _trim_blanks(text: str, start: int, end: int) -> tuple[int, int]:
    inside = text[start:end]
    if not inside.strip():
        return start, start
    return start + len(inside) - len(inside.lstrip()), end - len(inside) + len(inside.rstrip())
