"""Split Japanese text into words with their part of speech and their reading."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache

from bunko.text.analyzer import find_parser, is_joined, split_at_loanwords, split_kana


@lru_cache(20_000)
def parse_run(run: str) -> tuple[tuple[str, str], ...]:
    """Return the words of a run of Japanese characters, each with its part of speech in UniDic."""
    words: list[tuple[str, str]] = []
    for part in split_at_loanwords(run):
        if is_joined(part):
            words.append((part, "名詞-普通名詞-一般"))
        else:
            words += [(word, part_of_speech) for word, _, part_of_speech in parse_readings(part)]
    return tuple(words)


def parse_readings(run: str) -> list[tuple[str, str, str]]:
    """Return the words of a run of Japanese characters, each with its pronunciation in katakana and part of speech."""
    rows = (line.split("\t") for line in _parser()(run).splitlines())
    return [(word, pronunciation, part_of_speech) for word, pronunciation, part_of_speech in rows]


@cache
def _parser() -> Callable[[str], str]:
    return find_parser("words") or (lambda run: "\n".join(f"{word}\t\t{kind}" for word, kind in split_kana(run)))
