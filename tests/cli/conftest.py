"""Documents and a library that several tests of the command line use."""

from __future__ import annotations

import shutil
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from bunko.interfaces.cli.terminal import columns
from tests.cli.pictures import terminal as terminal
from tests.conftest import Run


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


@pytest.fixture
def fixed_age(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let everything be three minutes old."""
    monkeypatch.setattr(columns, "current_time", lambda: datetime.now(UTC) + timedelta(minutes=3, seconds=30))


@pytest.fixture
def shelf(run: Run, tmp_path: Path) -> None:
    """A folder in each language, memos, a disabled tool, one whose folder is gone, one without documents."""
    diary = tmp_path / "Documents" / "日記" / "2024" / "春から秋までの記録と写真の整理"
    api = tmp_path / "projects" / "authentication-service" / "documentation" / "api-reference"
    recipes, memos = tmp_path / "old" / "recipes", tmp_path / "ChangeLog"
    for folder in (diary, api, recipes):
        folder.mkdir(parents=True)
    for number, name in enumerate(("春", "夏", "秋"), 1):
        (diary / f"京都の{name}の旅の思い出と次の旅の計画.md").write_text(
            f"---\ntitle: 京都の{name}の旅\ndate: 2024-0{number}-15\ntags: [旅行, 京都, 写真]\n---\n"
            f"# 京都の{name}の旅\n\n{name}の京都で寺の庭を巡り、静かな宿に泊まった日の記録です。\n",
            encoding="utf-8",
        )
    (api / "tokens-and-how-they-expire.md").write_text(
        "---\ndate: 2024-05-20\ntags: [api, tokens]\n---\n# Tokens and how they expire\n\nA token lasts an hour.\n",
        encoding="utf-8",
    )
    (recipes / "curry.md").write_text("---\ndate: 2023-11-02\n---\n# Curry\n\nOnions and rice.\n", encoding="utf-8")
    memos.write_text("2024-05-01\n\n* 買い物メモ [買い物]: 牛乳と卵を買う\n", encoding="utf-8")
    for name, description, *source in (
        ("日記-diary", "旅行と日々の記録。春から秋までの写真の整理も含む", "-s", diary),
        ("authentication-api", "Reference of the authentication service: tokens, errors, sessions", "-s", api),
        ("recipes", "Recipes for the kitchen at home", "-s", recipes),
        ("memos", "買い物と予定のメモ", "-s", memos, "--kind", "memos"),
    ):
        assert run("tool", "add", "-n", name, "-d", description, *source).code == 0
    assert run("import", "--all").code == 0
    assert run("tool", "add", "-n", "web-pages", "-d", "Pages to read later", "--kind", "web").code == 0
    assert run("tool", "disable", "-n", "authentication-api").code == 0
    shutil.rmtree(recipes)
