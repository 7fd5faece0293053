"""A query is split into the subwords that the tokenizer finds, without loading it."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bunko.embedders.subword_table import Static, load_tokenizer
from bunko.runtime.array_file import load_arrays
from bunko.text import subwords
from bunko.text.subwords import space_words, split_query

RANGES = ((0x20, 0x7F), (0x3041, 0x3097), (0x30A1, 0x30FB), (0x4E00, 0xA000))
PLAIN_CHARS = [*(chr(code) for first, last in RANGES for code in range(first, last)), *"ー々、。「」・"]
ROOT = Path(__file__).parent.parent.parent


@cache
def tokenizer() -> Any:
    return load_tokenizer()


def texts() -> list[str]:
    """Return the queries of the evaluation and lines of documents, in Japanese and English."""
    judged = json.loads((ROOT / "src/bunko/evaluation/judged/queries.json").read_text(encoding="utf-8"))
    lines = [line for path in ROOT.glob("*.md") for line in path.read_text(encoding="utf-8").splitlines()]
    return random.Random(1).sample([*_strings(judged), *lines], 1_200)


def _strings(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    values = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for each in values for text in _strings(each)]


@pytest.mark.slow
def test_real_queries_are_split_as_by_the_tokenizer() -> None:
    spaced = [space_words(" ".join(text.split())) for text in texts()]
    splits = [(text, ids) for text in spaced if (ids := split_query(text)) is not None]
    assert len(splits) > 0.8 * len(spaced)
    assert [ids for _, ids in splits] == tokenizer().encode([text for text, _ in splits])


def test_random_characters_are_split_as_by_the_tokenizer() -> None:
    rng = random.Random(1)
    some_chars = "abcdefg ehtion  検索の方法を環境アイウーせるサーバー123ABC.,_-"
    for _ in range(1_000):
        text = "".join(
            rng.choice(PLAIN_CHARS if rng.random() < 0.3 else some_chars) for _ in range(rng.randrange(1, 40))
        )
        assert split_query(text) == tokenizer().encode(text), text


@given(st.text(st.sampled_from("abb aaのの検検索ー「9Zz骉"), max_size=60))
def test_repeated_characters_are_split_as_by_the_tokenizer(text: str) -> None:
    assert split_query(text) == tokenizer().encode(text)


def test_plain_characters_are_what_the_tokenizer_leaves_as_they_are() -> None:
    normalised = tokenizer().normalize(PLAIN_CHARS)
    assert normalised == [char.lower().replace(" ", "▁") for char in PLAIN_CHARS]
    assert all(split_query(char) is not None for char in PLAIN_CHARS)


@pytest.mark.parametrize("text", ["ｶﾞ", "か\u3099", "Straße", "한국어", "①", "\u3000", "\n", "𠮷", "x" * 501])
def test_what_the_tokenizer_may_change_is_left_to_it(text: str) -> None:
    assert split_query(text) is None


def test_the_file_has_the_pieces_of_the_tokenizer() -> None:
    arrays, _ = load_arrays(subwords.PIECES_PATH, format_version=subwords.FORMAT, verify_checksum=True)
    data, ends = arrays["texts"].tobytes(), arrays["ends"].tolist()
    pieces = [data[start:end] for start, end in zip([0, *ends], ends, strict=False)]
    ids = arrays["ids"].tolist()
    assert pieces == sorted(pieces)
    assert [tokenizer().id_to_piece(number).encode() for number in ids] == pieces
    assert sorted(ids) == list(range(1, len(tokenizer())))
    assert arrays["scores"].tolist() == [tokenizer().get_score(number) for number in ids]


@pytest.mark.parametrize("text", ["環境構築の方法", "How do I validate a form?", "", "😀", "ｶﾞｲﾄﾞ"])
def test_a_query_has_the_same_vector_with_and_without_the_tokenizer(text: str) -> None:
    embedder = Static()
    vectors = [embedder.embed([text], query=True) for _ in range(10)]
    assert all(np.array_equal(vector, vectors[0]) for vector in vectors)
    assert np.array_equal(embedder.embed([text, text], query=True)[0], vectors[0][0])


@pytest.mark.slow
def test_the_first_query_of_a_process_does_not_load_the_tokenizer() -> None:
    code = (
        "import sys; from bunko.embedders.subword_table import Static;"
        "Static().embed(['GitHubで検索する方法'], query=True); print('sentencepiece' in sys.modules)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "False"
