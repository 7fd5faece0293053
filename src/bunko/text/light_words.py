"""Weigh the words of a query: those that say little about the texts that answer it count less.

The weights were learned from questions and their answers (`training/light_words.py`).
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from bunko.text.analyzer import QUESTION_WORDS

WEIGHTS_PATH = Path(__file__).with_name("light_words.tsv")
# A word with at most this weight says so little that a text need not have it to have every word of a query.
MAX_LIGHT_WEIGHT = 0.5
# Words that build a sentence, as they are indexed. Questions and answers share them without being about the same, and
# where most texts are in another language, they are rare as well.
FUNCTION_WORDS = frozenset(
    """
    為る 居る 有る 在る 出来る 貰う 呉れる 仕舞う 為さる 致す 御座る 参る 仰る 伺う 申す 戴く 御
    each own avail any some other such also more most just onli veri one get
    """.split()
)
_FUNCTION_WEIGHT = 0.2  # 0 and 0.4 were no better on judged sets, see docs/quality.md
_QUESTION_WEIGHT = 0.3  # of a question word that is in too few of the questions


def query_weight(spelling: str) -> float:
    """Return what a word of a query counts, 0.1 to 1; most words count in full."""
    return _weights().get(spelling, 1.0)


@cache
def _weights() -> dict[str, float]:
    rows = (line.split("\t") for line in WEIGHTS_PATH.read_text(encoding="utf-8").splitlines())
    weights = dict.fromkeys(QUESTION_WORDS, _QUESTION_WEIGHT) | {word: float(weight) for word, weight in rows}
    return weights | {word: min(_FUNCTION_WEIGHT, weights.get(word, 1.0)) for word in FUNCTION_WORDS}
