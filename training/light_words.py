"""Learn which words of a question say little about the text that answers it.

usage: python training/light_words.py OUT.tsv PAIRS.jsonl.zst… [--without queries.jsonl…]
needs: bunko, zstandard; two minutes on one core.

BM25 takes a rare word for a telling one. Pairs of questions (or headings, titles) and texts show what it really tells:
the log odds that a text with the word answers the question, against those of any text. Where this is less than the
rarity of the word, it counts less: 何時 is rare, but the answer has a date instead. `--without` leaves out the
questions of judged sets.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter, defaultdict
from hashlib import sha256
from math import log
from pathlib import Path

from pairs import lines

from bunko.text import analyzer

KINDS = ("qa", "heading", "title")
MAX_PER_SOURCE = 6000  # pairs of one kind from one source
MIN_QUESTIONS = 40  # with a word
MIN_IDF = 2.0  # a word that is common here may be rare in other libraries
MIN_WEIGHT = 0.1
DIGITS = frozenset("0123456789")


def main(out: Path, paths: list[Path], without: list[Path]) -> None:
    """Learn and save the weights."""
    judged = {json.loads(line)["text"] for path in without for line in path.read_text("utf-8").splitlines() if line}
    weights: dict[str, float] = {}
    for language, pairs in sample_pairs(paths, judged).items():
        learned = learn_weights(pairs)
        print(language, len(pairs), "pairs,", len(learned), "light words")
        for word, weight in learned.items():
            weights[word] = min(weight, weights.get(word, 1.0))
    rows = sorted(weights.items(), key=lambda row: (row[1], row[0]))
    out.write_text("".join(f"{word}\t{weight:.2f}\n" for word, weight in rows), encoding="utf-8")


def sample_pairs(paths: list[Path], judged: set[str]) -> dict[str, list[tuple[str, str]]]:
    """Return pairs within a language, the same number of each large source."""
    by_source: dict[tuple[str, str, str], list[tuple[str, str]]] = defaultdict(list)
    for pair in lines(paths):
        if pair["kind"] in KINDS and pair["la"] == pair["lb"] and pair["a"] not in judged:
            by_source[pair["la"], pair["kind"], pair["src"]].append((pair["a"], pair["b"]))
    by_language: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for (language, _, _), pairs in by_source.items():
        pairs.sort(key=lambda pair: sha256("".join(pair).encode()).digest())
        by_language[language] += pairs[:MAX_PER_SOURCE]
    return by_language


def learn_weights(pairs: list[tuple[str, str]]) -> dict[str, float]:
    """Return the words that tell less than their rarity says, with the share that remains."""
    in_question: Counter[str] = Counter()
    in_text: Counter[str] = Counter()
    in_both: Counter[str] = Counter()
    for question, text in pairs:
        question_words, text_words = words(question), words(text)
        in_question.update(question_words)
        in_text.update(text_words)
        in_both.update(question_words & text_words)
    weights = {}
    for word, count in in_question.items():
        if count < MIN_QUESTIONS or not DIGITS.isdisjoint(word):
            continue
        answers = (in_both[word] + 0.5) / (count + 1)
        texts = (in_text[word] + 0.5) / (len(pairs) + 1)
        idf = log(1 + (len(pairs) - in_text[word] + 0.5) / (in_text[word] + 0.5))
        weight = round(log(answers * (1 - texts) / (texts * (1 - answers))) / max(idf, MIN_IDF), 2)
        if weight < 1:
            weights[word] = max(MIN_WEIGHT, weight)
    return weights


def words(text: str) -> set[str]:
    """Return the words of a text as they are indexed, without the origins of loanwords."""
    return {term.spelling for run in analyzer.runs(text) for term in analyzer.terms(run) if term.role != "loanword"}


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path)
    parser.add_argument("pairs", type=Path, nargs="+")
    parser.add_argument("--without", type=Path, nargs="*", default=[])
    options = parser.parse_args()
    main(options.out, options.pairs, options.without)
