"""Windows of tokens: how they overlap, and where they are."""

from __future__ import annotations

import pytest

from bunko.text.subwords import token_spans
from tests.chunkers.test_chunkers import ENGLISH, LONG, cut


def test_tokens_give_windows_that_overlap_each_with_its_place() -> None:
    content = "validation " * 3000
    spans = token_spans(content)
    assert len(spans) == 3000
    chunks = cut(content, "tokens", size=1024, overlap=64)
    windows = [(0, 1023), (960, 1983), (1920, 2943), (2880, 2999)]
    assert [(chunk.start, chunk.end) for chunk in chunks] == [
        (spans[first][0], spans[last][1]) for first, last in windows
    ]
    assert all(chunk.text == content[chunk.start : chunk.end] for chunk in chunks)


@pytest.mark.parametrize(("tokens", "number"), [(1, 1), (1024, 1), (1025, 2), (1984, 2), (1985, 3)])
def test_the_last_window_is_short_and_never_only_overlap(tokens: int, number: int) -> None:
    chunks = cut("validation " * tokens, "tokens", size=1024, overlap=64)
    assert len(chunks) == number


def test_a_window_of_tokens_stands_under_the_heading_where_it_begins() -> None:
    content = f"# 手引き\n\n{LONG * 30}\n\n## 導入\n\n{LONG * 30}\n"
    chunks = cut(content, "tokens", size=512, overlap=0)
    assert chunks[0].heading_path == ("手引き",)
    assert chunks[-1].heading_path == ("手引き", "導入")
    assert "".join(chunk.text for chunk in chunks).replace("\n", "") == content.replace("\n", "")


def test_a_long_text_is_counted_block_by_block_and_loses_nothing() -> None:
    lines = [f"{number} {ENGLISH}" for number in range(5_000)]
    chunks = cut("\n".join(lines), "tokens", size=4096, overlap=0)
    assert "".join("".join(chunk.text for chunk in chunks).split()) == "".join("".join(lines).split())
