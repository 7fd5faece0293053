"""Every document that comes from a file leads back to that file."""

from __future__ import annotations

from pathlib import Path

import pytest

from bunko.library.reading.document_files import document_file
from bunko.types import Tool


def tool(kind: str, source: Path | str) -> Tool:
    return Tool("notes", kind, "Notes", str(source))


def test_a_document_of_a_folder_leads_to_its_file(docs: Path) -> None:
    assert document_file(tool("folder", docs), "guide/設定 #1.md") == docs / "guide" / "設定 #1.md"
    assert document_file(tool("folder", docs), "mail.mbox#2024-01-15-hello") == docs / "mail.mbox"


def test_a_memo_leads_to_the_file_that_contains_it(docs: Path) -> None:
    file = docs / "memo.txt"
    file.touch()
    assert document_file(tool("memos", file), "memo.txt#2024-01-15-予算") == file
    assert document_file(tool("memos", docs), "memo.txt#2024-01-15-予算") == file
    file.unlink()
    assert document_file(tool("memos", file), "memo.txt#2024-01-15-予算") == file
    assert document_file(tool("memos", file), "other.txt#2024-01-15-予算") is None


def test_a_web_page_and_a_document_without_a_folder_have_no_file() -> None:
    assert document_file(tool("web", ""), "https://example.com/a") is None
    assert document_file(tool("folder", ""), "a.md") is None


def test_a_link_that_leaves_the_folder_has_no_file(docs: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.md").touch()
    (docs / "a.md").symlink_to(tmp_path / "secret.md")
    assert document_file(tool("folder", docs), "a.md") is None


@pytest.mark.parametrize("uri", ["/etc/passwd", "../secret.md", "guide/../../secret.md"])
def test_a_path_that_leaves_the_folder_has_no_file(docs: Path, uri: str) -> None:
    assert document_file(tool("folder", docs), uri) is None
