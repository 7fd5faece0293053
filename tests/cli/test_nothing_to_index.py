"""An import that finds nothing, or skips something, says why and what reads it."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from tests.conftest import Run


def write(root: Path, *names: str, content: str | bytes = "Some words about gardens.\n") -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)


def test_the_endings_that_were_seen_are_counted_with_what_reads_them(run: Run, docs: Path) -> None:
    write(docs, "a.py", "src/b.py", "notes.xyz", "Makefile")
    write(docs, "picture.png", content=b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR")
    ran = run("reindex", "--docs-dir", docs)
    assert ran.code == 0
    assert ran.out.startswith("0 added")
    assert f"There is nothing to index in {docs}" in ran.err
    assert "2 .py, 1 .png, 1 .xyz, 1 without an ending" in ran.err
    assert "scanner.source_code" in ran.err
    assert "Read .xyz as plain text: add it to scanner.file_extensions" in ran.err
    assert "png" not in ran.err.partition("without an ending")[2]
    assert run("search", "gardens", "--docs-dir", docs).code == 1  # nothing is found, and it is no error


def test_the_command_that_reads_the_files_of_a_tool_is_named_and_works(run: Run, docs: Path) -> None:
    write(docs, "a.xyz", "b.xyz")
    run("tool", "add", "-n", "odd", "-d", "Notes about gardens", "-s", docs)
    ran = run("import", "-n", "odd")
    command = "bunko tool update -n odd --include '*.xyz'"
    assert command in ran.err
    assert run(*shlex.split(command)[1:]).code == 0
    ran = run("import", "-n", "odd", "--mode", "update")
    assert ran.out.startswith("2 added")
    assert "nothing to index" not in ran.err


def test_formats_that_the_settings_leave_out_are_named_with_the_setting(
    run: Run, docs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(docs, "a.md", "b.org")
    monkeypatch.setenv("BUNKO_SCANNER_FILE_EXTENSIONS", ".txt")
    ran = run("reindex", "--docs-dir", docs)
    assert "1 .md, 1 .org" in ran.err
    assert "Read .md and .org: add them to scanner.file_extensions" in ran.err


def test_lines_of_json_and_memos_are_added_as_files(run: Run, docs: Path) -> None:
    write(docs, "log.jsonl", content='{"text": "gardens"}\n')
    assert f"Read .jsonl: bunko add {docs}/log.jsonl" in run("reindex", "--docs-dir", docs).err


@pytest.mark.parametrize(("text", "reason"), [("*\n", "1 file is ignored by .gitignore"), (None, "it has no files")])
def test_an_ignored_file_and_an_empty_folder_are_reasons_too(
    run: Run, docs: Path, text: str | None, reason: str
) -> None:
    if text:
        write(docs, "a.md")
        write(docs, ".gitignore", content=text)
    assert f"There is nothing to index in {docs}: {reason}" in run("reindex", "--docs-dir", docs).err


def test_patterns_that_leave_nothing_are_named(run: Run, docs: Path) -> None:
    write(docs, "a.md")
    run("tool", "add", "-n", "odd", "-d", "Notes about gardens", "-s", docs, "--include", "*.rst")
    ran = run("import", "-n", "odd")
    assert "1 file is left out by --include, --exclude or .gitignore" in ran.err


def test_skipped_folders_are_counted_and_named(run: Run, docs: Path) -> None:
    write(docs, "a.md", "data/b.md", "x/data/c.md", "node_modules/d.md", ".git/e.md", "__pycache__/f.md")
    ran = run("reindex", "--docs-dir", docs)
    assert ran.out.startswith("1 added")
    skipped = [f"{docs}/data", f"{docs}/node_modules", f"{docs}/x/data"]
    assert f"Skipped 3 folders by their names (scanner.exclude_dirs): {', '.join(skipped)}." in ran.err
    assert f"bunko add {docs}/data" in ran.err
    assert run("reindex", "--docs-dir", docs, "--json").json()["skipped_folders"] == skipped
    (docs / "a.md").unlink()
    assert "nothing to index" in run("reindex", "--docs-dir", docs).err


def test_no_skipped_folder_is_said_of_a_folder_without_one(run: Run, docs: Path) -> None:
    write(docs, "a.md", ".git/e.md")
    ran = run("reindex", "--docs-dir", docs, "--json")
    assert "skipped_folders" not in json.loads(ran.out)
    assert "Skipped" not in run("reindex", "--docs-dir", docs).err


def test_many_skipped_folders_are_counted_and_a_few_named(run: Run, docs: Path) -> None:
    write(docs, "a.md", *(f"{number}/data/b.md" for number in range(9)))
    ran = run("reindex", "--docs-dir", docs)
    assert "Skipped 9 folders by their names" in ran.err
    assert f"{docs}/2/data, … and 6 more" in ran.err


def test_the_files_of_memos_that_were_looked_for_are_named(run: Run, docs: Path) -> None:
    write(docs, "a.pdf")
    run("tool", "add", "-n", "diary", "-d", "What we did on which day", "-s", docs, "--kind", "memos")
    ran = run("import", "-n", "diary")
    assert f"No memos found in {docs}: its files are not read: 1 .pdf" in ran.err
    assert ".jsonl" in ran.err
