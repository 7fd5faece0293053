"""Which words are compared at all: only those with a common key, and every pair that matches has one."""

from __future__ import annotations

from itertools import product
from random import Random

from bunko.answers import word_match
from bunko.answers.clauses import match_keys
from bunko.answers.statements import analyze_clauses
from bunko.answers.verify import verify_sentences
from bunko.types.answers import AnswerSource
from tests.answers.test_support import load_pairs


def test_words_that_match_have_a_common_key() -> None:
    pairs = Random(5).sample(load_pairs(), 20)
    texts = {text for pair in pairs for text in (pair.passage, pair.text)}
    words = sorted({word for text in texts for clause in analyze_clauses(text) for word in clause.words}, key=repr)
    compare = word_match.compare_words.__wrapped__
    matching = [(word, other) for word, other in product(words, words) if compare(word, other)]
    assert len(matching) > len(words)  # every word matches itself
    assert [pair for pair in matching if match_keys(pair[0]).isdisjoint(match_keys(pair[1]))] == []


def test_a_long_answer_about_something_else_compares_few_words() -> None:
    random = Random(1)

    def sentences(count: int) -> str:
        words = ["".join(random.choices("abcdefghijklmnopqrstuvwxyz", k=7)) for _ in range(4 * count)]
        return " ".join(f"{' '.join(words[4 * index : 4 * index + 4]).capitalize()}." for index in range(count))

    sources = [AnswerSource(number, "t", f"{number}.md", f"{number}.md:L1", sentences(40), "h") for number in (1, 2, 3)]
    word_match.compare_words.cache_clear()
    checked = verify_sentences(sentences(60), sources, lambda source: "same")
    assert {sentence.status for sentence in checked} == {"unsupported"}
    info = word_match.compare_words.cache_info()
    assert info.hits + info.misses < 1000  # of 240 words and 480 others, which are 115,200 pairs
