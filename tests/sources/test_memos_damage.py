"""Garbage between memos, which must not lose any of them."""

from __future__ import annotations

import json
from io import BytesIO
from itertools import chain
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bunko.readers.line_stream import read_lines
from bunko.readers.memo import Memo
from bunko.sources import memos as source
from bunko.types import ExcerptEntry
from tests.sources.memo_files import write

GARBAGE = st.text(max_size=15) | st.sampled_from(
    ["* ", "[", "Tags:", "2024-13-45", "{", '{"text":', "---", "\x00\x01", "＊ 題"]
)


# A file that is mostly rubbish is no text, and refused as such.
LONG = "庭の話が続いた。" * 400


def _between(garbage: list[str], good: list[str]) -> list[str]:
    return [one for pair in zip([*garbage, *[""] * len(good)], good, strict=False) for one in pair]


@given(garbage=st.lists(GARBAGE, max_size=6), number=st.integers(1, 6))
def test_garbage_in_a_changelog_loses_no_entry(garbage: list[str], number: int) -> None:
    good = [f"\n* 題{at} 2024-01-15\n  庭の話{at}。{LONG}\n" for at in range(number)]
    # Indented, as whatever stands below a heading is.
    bad = ["".join(f"  {line}\n" for line in one.replace("\r", "\n").split("\n")) for one in garbage]
    text = "".join(chain(_between(bad, good), bad[number:]))
    found = _parsed(text, "memo.txt")
    assert [one.title for one in found if one.title] == [f"題{at}" for at in range(number)]
    assert all(any(f"庭の話{at}。" in one.text for one in found) for at in range(number))


@given(garbage=st.lists(GARBAGE, max_size=6), number=st.integers(1, 6))
def test_garbage_in_json_lines_loses_no_entry(garbage: list[str], number: int) -> None:
    good = [json.dumps({"title": f"題{at}", "text": LONG}, ensure_ascii=False) + "\n" for at in range(number)]
    bad = [f"{one}\n" for one in garbage]
    text = "".join(chain(_between(bad, good), bad[number:]))
    found = _parsed(text, "memo.jsonl")
    assert [one.title for one in found if one.title.startswith("題")] == [f"題{at}" for at in range(number)]


@pytest.mark.parametrize(
    ("sentence", "codec"),
    [
        ("庭の手入れをした。雨の日は休み。", "cp932"),
        ("庭の手入れをした。雨の日は休み。", "euc_jp"),
        ("我们在会议上讨论了明年的预算。", "gb18030"),
    ],
)
def test_a_damaged_byte_does_not_change_the_language_of_a_log(sentence: str, codec: str) -> None:
    data = f"* memo 2024-01-15\n  {sentence}\n  ".encode(codec) + b"\x81\n" + f"  {sentence}\n".encode(codec) * 20
    decoded = read_lines(BytesIO(data), len(data), 1000)
    assert (decoded.codec, decoded.is_damaged) == (codec, True)
    assert [line.strip() for line in decoded.lines].count(sentence) == 21


@given(garbage=st.lists(GARBAGE, min_size=1, max_size=4))
def test_garbage_in_one_note_of_a_folder_leaves_the_others(garbage: list[str], tmp_path_factory: Any) -> None:
    from bunko import sources

    folder = tmp_path_factory.mktemp("notes")
    write(folder / "bad.md", "---\n" + "\n".join(garbage).encode("utf-8", "replace").decode())
    write(folder / "good.md", "---\ntitle: 設計\ndate: 2024-04-01\n---\n検索の設計。\n")
    scan = sources.build("memos", folder, extensions=(), exclude_dirs=(), max_file_bytes=10_000).scan({})
    texts = [one.text for one in scan.load_texts(scan.added) if isinstance(one, ExcerptEntry) and one.uri == "good.md"]
    assert [(text.title, text.date) for text in texts if text] == [("設計", "2024-04-01")]


def _parsed(text: str, name: str) -> list[Memo]:
    data = text.encode("utf-8", "replace")
    return [one for one in source.parse(BytesIO(data), name, len(data), 10_000).items if isinstance(one, Memo)]
