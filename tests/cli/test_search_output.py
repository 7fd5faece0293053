"""What scripts get from a search: exit codes, JSON with absolute paths and errors, paths, CSV and Markdown."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.processes import subprocess_environment
from tests.conftest import Run
from tests.readers.zip_files import fixture


def test_a_search_without_results_exits_with_1_like_grep(run: Run, notes: Path) -> None:
    asked = ("search", "誰も書かない言葉", "--docs-dir", notes)
    assert run("search", "京都", "--docs-dir", notes).code == 0
    nothing = run(*asked)
    assert (nothing.code, nothing.out, nothing.err) == (1, "No results among 3 chunks.\n", "")
    as_json = run(*asked, "--json")
    assert (as_json.code, json.loads(as_json.out)["results"]) == (1, [])
    for name in ("paths", "md"):
        ran = run(*asked, "--format", name)
        assert (ran.code, ran.out) == (1, "")
    assert run(*asked, "--format", "csv").out.startswith("rank,score,")
    assert "exit code is 1 if nothing is found" in " ".join(run("search", "--help").out.split())


def test_json_has_the_absolute_path_of_a_file(run: Run, notes: Path) -> None:
    asked = ("search", "環境構築の方法", "--docs-dir", notes, "-k", "1")
    results: Any = run(*asked, "--json").json()["results"]
    assert results[0]["file_path"] == "guide/setup.md"
    assert results[0]["absolute_path"] == str(notes / "guide" / "setup.md")
    assert run(*asked, "--format", "json").json()["results"] == results


def test_paths_are_printed_once_each_for_xargs(run: Run, notes: Path) -> None:
    (notes / "two.md").write_text("# 京都\n\n寺の庭。\n\n# 京都の宿\n\n寺の宿。\n", encoding="utf-8")
    (notes / "with space.md").write_text("# 京都\n\n寺の鐘。\n", encoding="utf-8")
    printed = run("search", "京都の寺", "--docs-dir", notes, "--format", "paths").out.splitlines()
    assert len(printed) == len(set(printed))
    assert set(printed) >= {str(notes / "two.md"), str(notes / "temple.md"), str(notes / "with space.md")}
    assert all(Path(line).is_file() for line in printed)


def test_the_name_of_a_file_cannot_add_a_path(run: Run, docs: Path) -> None:
    (docs / "a\nb.md").write_text("# 京都\n\n京都の寺の庭を巡る。\n", encoding="utf-8")
    assert run("search", "京都", "--docs-dir", docs, "--format", "paths").out == f"{docs}/a\\nb.md\n"


def test_csv_has_a_header_and_no_cell_that_a_spreadsheet_would_run(run: Run, docs: Path) -> None:
    (docs / "a.md").write_text('# 京都, "寺"\n\n=HYPERLINK("https://example.com")\n', encoding="utf-8")
    (docs / "slides.pptx").write_bytes(fixture("slides.pptx"))
    rows = list(csv.DictReader(io.StringIO(run("search", "京都", "--docs-dir", docs, "--format", "csv").out)))
    assert rows[0]["rank"] == "1"
    assert float(rows[0]["score"]) > 0
    assert rows[0]["path"] == str(docs / "a.md")
    assert rows[0]["location"] == "a.md:L1-L3"
    assert rows[0]["heading"] == '京都, "寺"'
    assert rows[0]["text"] == '\'=HYPERLINK("https://example.com")'
    printed = run("search", "price list", "--docs-dir", docs, "--format", "csv", "-k", "1").out
    assert next(csv.DictReader(io.StringIO(printed)))["location"] == "slides.pptx:slide3"


def test_markdown_is_a_list_of_links(run: Run, docs: Path) -> None:
    (docs / "a (1).md").write_text("# 京都 [旅]\n\n## 二日目\n\n*朝* の `*` 六時に起きた。\n", encoding="utf-8")
    printed = run("search", "六時", "--docs-dir", docs, "--format", "md").out
    address = (docs / "a (1).md").as_uri()
    assert printed == f"1. [京都 \\[旅\\] › 二日目]({address}) a (1).md:L1-L5: 朝 の \\* 六時に起きた。\n"
    assert "(" not in address


def test_json_and_another_format_cannot_be_used_together(run: Run, notes: Path) -> None:
    ran = run("search", "京都", "--docs-dir", notes, "--json", "--format", "csv")
    assert (ran.code, json.loads(ran.out)["error"]["code"]) == (2, "usage")


@pytest.mark.parametrize(
    ("arguments", "exit_code", "error"),
    [
        (
            ("search", "京都", "--docs-dir", "nowhere", "--json"),
            3,
            {"code": "source", "message": "There is no folder nowhere"},
        ),
        (
            ("search", "京都", "--docs-dir", ".", "--format", "json", "--since", "someday"),
            4,
            {"code": "query"},
        ),
        (("status", "--library", "nowhere", "--json"), 10, {"code": "library"}),
        (
            ("search", "京都", "--json", "--mode", "magic"),
            2,
            {
                "code": "usage",
                "message": "Invalid value for '--mode': 'magic' is not one of 'bm25', 'semantic', 'hybrid'",
                "hint": "Run: bunko search --help.",
            },
        ),
        (("tool", "ls", "--nothing", "--json"), 2, {"code": "usage", "hint": "Run: bunko tool ls --help."}),
        (("serach", "京都", "--json"), 2, {"code": "usage", "hint": "Run: bunko --help."}),
    ],
)
def test_an_error_under_json_is_an_object_on_stdout(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], exit_code: int,
    error: dict[str, str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    ran = run(*arguments)
    assert ran.code == exit_code
    printed = json.loads(ran.out)["error"]
    assert printed.keys() == {"code", "message", "hint"}
    assert printed.items() >= error.items()
    assert all(printed.values())
    assert not printed["message"].endswith(".")
    assert printed["message"] in ran.err  # for people
    without = [argument for argument in arguments if argument not in ("--json", "--format", "json")]
    assert run(*without).out == ""


def test_a_query_that_says_json_asks_for_none(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("search", "--library", "nowhere", "--", "--json").out == ""


@pytest.mark.slow
def test_a_search_into_a_pipe_waits_for_no_library_that_draws(notes: Path, tmp_path: Path) -> None:
    code = (
        "import sys; from bunko.interfaces.cli.main import main\n"
        f"main(['search', '京都', '--docs-dir', {str(notes)!r}])\n"
        "print({'rich', 'tomllib'} & sys.modules.keys())"
    )
    environment = subprocess_environment(tmp_path)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.splitlines()[-1] == "set()"
