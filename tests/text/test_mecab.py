"""Japanese words from the dictionary beside the package."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import pytest

from bunko.evaluation.query_variants import tokenize
from bunko.text.analyzer import load_tagger
from bunko.text.part_of_speech import parse_readings

SAMPLES = Path(__file__).parents[2] / "examples" / "library"
JAPANESE = re.compile("[\u3005\u3040-\u30ff\u3400-\u9fff]+")


def test_words_of_the_sample_library_are_those_of_the_whole_dictionary() -> None:
    # The digest is that of unidic-lite 1.0.8 with the same output formats.
    digest, runs = hashlib.sha256(), set()
    for path in SAMPLES.rglob("*.md"):
        runs.update(JAPANESE.findall(path.read_text("utf-8")))
    assert len(runs) > 200
    for run in sorted(runs):
        digest.update(load_tagger().parse(run).encode())
        digest.update(str(parse_readings(run)).encode())
    assert digest.hexdigest() == "202c26a4a036681fc94e865c546c1f0442e6ab997fa3e738087ecfbb9dc4d849"


@pytest.mark.parametrize(
    ("word", "base_form", "kana"),
    [
        ("走っ", "走る", "ハシッ"),
        ("行う", "行う", "オコナウ"),  # is not pronounced as it is read
        ("サーバー", "サーバー", "サーバー"),
        ("ヌンヌララ", "", ""),
    ],
)
def test_a_word_has_its_base_form_and_its_reading(word: str, base_form: str, kana: str) -> None:
    token = tokenize(word)[0]
    assert (token.text, token.base_form, token.kana) == (word, base_form, kana)


@pytest.mark.parametrize("text", ["", " ", "\n", '\t,",', "\0", "🍣" * 1000, "あ" * 20_000])
def test_any_text_has_words(text: str) -> None:
    for output in ("search", "words"):
        load_tagger(output).parse(text)
