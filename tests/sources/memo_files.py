"""Memo files, and libraries that import them."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

from bunko.library.library import Library
from bunko.readers import changelog
from bunko.readers.memo import BadLine, Memo, collapse_line_ends
from bunko.sources import memos as source
from bunko.types import Text, Tool

LONG_AGO = 1_700_000_000 * 10**9


SEED = """\
* Meeting Notes 2024-01-15
  Tags: meeting, january

  Topics discussed:
  - Project timeline
  - Budget allocation
"""


EMACS = """\
2024-01-16  山田 太郎  <taro@example.com>

\t* 会議 [定例][予算]: 議題は三つ。
\t  来週までに見積もる。
\t    * 担当を決める

\t* src/main.c (open): Follow no links.

2024年1月15日（月）

\t* 買い物
\t  牛乳と卵。
"""


Opener = Callable[..., Library]


def write(path: Path, text: str | bytes, *, after: int = 0) -> Path:
    """Write a file that was modified `after` seconds past a fixed time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    os.utime(path, ns=(LONG_AGO + after * 10**9, LONG_AGO + after * 10**9))
    return path


def add_memos(library: Library, source: Path) -> Tool:
    tool = library.tools.add("memos", "What we did", source, kind="memos")
    library.import_tools(["memos"])
    return tool


def cited_lines(root: Path, citation: str) -> str:
    """Return the lines of the file that a citation names."""
    match = re.fullmatch(r"([^#]+)(?:#.*)?:L(\d+)(?:-L(\d+))?", citation)
    assert match
    path = root / match[1] if root.is_dir() else root
    return "\n".join(path.read_text(encoding="utf-8").split("\n")[int(match[2]) - 1 : int(match[3] or match[2])])


def parse_changelog(text: str) -> list[Memo]:
    """Return the entries of a changelog in which no entry is too long."""
    lines = collapse_line_ends(text).split("\n")
    return [item for item in changelog.memos(lines) if isinstance(item, Memo)]


def parse_file(data: bytes, name: str, max_chars: int = 1000) -> list[Memo | BadLine | Text]:
    """Return the items of a file of this name."""
    return list(source.parse(BytesIO(data), name, len(data), max_chars).items)
