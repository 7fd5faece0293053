"""Documents that several tests of the command line search."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path

import pytest

from tests.cli.pictures import terminal as terminal


@pytest.fixture
def notes(docs: Path) -> Path:
    """Three documents, two languages, tags and dates."""
    (docs / "guide").mkdir()
    (docs / "guide" / "setup.md").write_text(
        "---\ntitle: 環境構築の手引き\ndate: 2024-01-15\ntags: [環境, python]\n---\n"
        "# 環境構築\n\n## インストール手順\n\n環境構築の方法を説明します。まず Python を入れます。\n",
        encoding="utf-8",
    )
    (docs / "temple.md").write_text(
        f"---\ndate: {date.today() - timedelta(days=3)}\ntags: [旅行]\n---\n"
        "# 京都の寺\n\n秋の京都で寺の庭を巡り、環境のよい宿に泊まった日の記録です。\n",
        encoding="utf-8",
    )
    (docs / "notes.txt").write_text("The patent was filed in spring; the server keeps the index.\n", encoding="utf-8")
    return docs
