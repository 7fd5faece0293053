"""Split Japanese text into words with their part of speech and their reading."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache

from bunko.text.analyzer import is_joined, split_at_loanwords


@lru_cache(20_000)
def parse_run(run: str) -> tuple[tuple[str, str], ...]:
    """Return the words of a run of Japanese characters, each with its part of speech in UniDic."""
    words: list[tuple[str, str]] = []
    for part in split_at_loanwords(run):
        if is_joined(part):
            words.append((part, "名詞-普通名詞-一般"))
        else:
            rows = (line.split("\t") for line in _parser()(part).split("\n"))
            words += [(row[0], row[4]) for row in rows if len(row) > 4]
    return tuple(words)


def parse_readings(run: str) -> list[tuple[str, str, str]]:
    """Return the words of a run of Japanese characters, each with its pronunciation in katakana and part of speech."""
    rows = (line.split("\t") for line in _parser()(run).split("\n"))
    return [(row[0], row[1], row[4]) for row in rows if len(row) > 4]


@cache
def _parser() -> Callable[[str], str]:
    import fugashi
    import unidic_lite

    # The dictionary's own format: surface, two readings, lemma, part of speech.
    folder = unidic_lite.DICDIR
    parse: Callable[[str], str] = fugashi.GenericTagger(f'-r "{folder}/mecabrc" -d "{folder}"').parse
    return parse
