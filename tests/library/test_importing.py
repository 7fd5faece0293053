"""Importing a tool: for the first time, all over again, differentially, cut by tokens, into another file."""

from __future__ import annotations

import json
import multiprocessing
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import pytest

from bunko.library.open import open_library
from bunko.library.opening.paths import paths_for_folder
from bunko.runtime.observer import Observer
from bunko.types import Tool
from bunko.types.build_info import BuildInfo
from tests.conftest import Opener, Ran, Run

PATIENCE = 60.0


@pytest.fixture
def api(docs: Path, run: Run) -> Path:
    """A tool `api` over two documents."""
    (docs / "auth.md").write_text(
        "# 認証\n\n利用者はトークンで署名する。\n\n## 期限\n\nトークンは一時間で切れる。\n", "utf-8"
    )
    (docs / "long.md").write_text("# Long\n\n" + "Every request carries a signature. " * 400, "utf-8")
    assert run("tool", "add", "-n", "api", "-d", "How users sign in", "-s", str(docs)).code == 0
    return docs


def asked(result: Ran) -> Any:
    assert result.code == 0, result.out
    return json.loads(result.out)


def test_importing_twice_names_the_other_modes(api: Path, run: Run) -> None:
    assert asked(run("import", "-n", "api", "--json"))["added"] == 2
    again = run("import", "-n", "api")
    assert again.code != 0
    assert "--mode update" in again.err
    assert "--mode replace" in again.err


def test_update_takes_in_what_changed_and_drops_what_is_gone(api: Path, run: Run) -> None:
    run("import", "-n", "api")
    (api / "long.md").unlink()
    (api / "new.md").write_text("# New\n\nA new page about quotas.\n", "utf-8")
    done = asked(run("import", "-n", "api", "--mode", "update", "--json"))
    assert (done["added"], done["deleted"], done["unchanged"]) == (1, 1, 1)


def test_a_size_in_tokens_chooses_the_chunker_for_that_tool(api: Path, run: Run) -> None:
    done = asked(run("import", "-n", "api", "--chunk-size", "512", "--chunk-overlap", "32", "--json"))
    assert done["total_chunks"] > 4
    (tool,) = asked(run("tool", "ls", "--all", "--json"))
    assert (tool["chunker"], tool["chunk_size"], tool["chunk_overlap"]) == ("tokens", 512, 32)
    hit = asked(run("search", "署名", "-n", "api", "--json"))["results"][0]
    text = (api / hit["file_path"]).read_text("utf-8")
    assert hit["content"] == text[hit["char_start"] : hit["char_end"]]
    # What a later update brings in is cut the same way.
    (api / "more.md").write_text("Every request carries a nonce. " * 400, "utf-8")
    assert asked(run("import", "-n", "api", "--mode", "update", "--json"))["added"] == 1
    found = asked(run("search", "nonce", "-n", "api", "--json", "-k", "50"))["results"]
    assert sum(hit["file_path"] == "more.md" for hit in found) > 3


def test_another_way_of_cutting_needs_a_replacement_and_until_then_the_old_one_answers(api: Path, run: Run) -> None:
    run("import", "-n", "api")
    refused = run("import", "-n", "api", "--mode", "update", "--chunk-size", "1024")
    assert refused.code == 14
    assert "--mode replace" in refused.err
    assert asked(run("search", "署名", "--json"))["results"]
    assert run("import", "-n", "api", "--mode", "replace", "--chunk-size", "1024").code == 0
    assert asked(run("tool", "ls", "--all", "--json"))[0]["chunk_size"] == 1024
    assert run("import", "-n", "api", "--mode", "replace", "--chunker", "headings").code == 0
    (tool,) = asked(run("tool", "ls", "--all", "--json"))
    assert tool["chunker"] == "headings"
    assert "chunk_size" not in tool


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--chunk-size", "100"], "512"),
        (["--chunk-size", "512", "--chunk-overlap", "512"], "smaller"),
        (["--chunker", "headings", "--chunk-size", "512"], "does not take a size"),
    ],
)
def test_impossible_sizes_are_refused_and_nothing_is_imported(
    api: Path, run: Run, options: list[str], said: str
) -> None:
    refused = run("import", "-n", "api", *options)
    assert refused.code == 2
    assert said in refused.err
    assert asked(run("import", "-n", "api", "--json"))["added"] == 2


def test_a_new_file_takes_the_definition_from_the_usual_library(api: Path, run: Run, tmp_path: Path) -> None:
    other = tmp_path / "custom.sqlite"
    assert asked(run("import", "-n", "api", "--database", str(other), "--json"))["added"] == 2
    assert other.is_file()
    assert (tmp_path / "custom.sqlite.d").is_dir()
    (copied,) = asked(run("tool", "ls", "--all", "--json", "--database", str(other)))
    assert copied["description"] == "How users sign in"
    assert copied["last_import"]
    # The usual library is as it was, and the two never mix.
    (own,) = asked(run("tool", "ls", "--all", "--json"))
    assert own["last_import"] == ""
    run("tool", "delete", "-n", "api", "-y", "--database", str(other))
    assert asked(run("tool", "ls", "--all", "--json", "--database", str(other))) == []
    assert len(asked(run("tool", "ls", "--all", "--json"))) == 1


def test_a_new_file_for_a_tool_that_nobody_knows_is_refused_and_not_made(api: Path, run: Run, tmp_path: Path) -> None:
    refused = run("import", "-n", "nobody", "--database", str(tmp_path / "other.sqlite"))
    assert refused.code == 6
    assert "api" in refused.err
    assert not (tmp_path / "other.sqlite").exists()


def test_how_much_comes_back_is_set_for_a_tool_and_for_a_call(api: Path, run: Run) -> None:
    run("import", "-n", "api", "--chunk-size", "512")
    run("import", "-n", "api", "--mode", "replace", "--chunker", "headings")
    (api / "auth.md").write_text(
        "# 認証\n\n"
        + "前書き。" * 30
        + "\n\n## 期限\n\n"
        + "トークンは一時間で切れる。" * 9
        + "\n\n## 更新\n\n"
        + "別の話。" * 30,
        "utf-8",
    )
    run("import", "-n", "api", "--mode", "update")

    def content(*options: str) -> str:
        found: str = asked(run("search", "トークンの期限", "-n", "api", "-k", "1", "--json", *options))["results"][0][
            "content"
        ]
        return found

    assert "別の話" not in content()
    assert "前書き" not in content()
    assert "別の話" in content("--extract", "full")
    assert run("tool", "update", "-n", "api", "--extract", "full").code == 0
    assert "別の話" in content()
    assert "別の話" not in content("--extract", "section")


def test_which_files_are_taken_can_be_changed(api: Path, run: Run) -> None:
    run("import", "-n", "api")
    assert "--mode update" in run("tool", "update", "-n", "api", "--exclude", "long*").out
    assert asked(run("import", "-n", "api", "--mode", "update", "--json"))["deleted"] == 1
    run("tool", "update", "-n", "api", "--exclude", "")
    assert asked(run("import", "-n", "api", "--mode", "update", "--json"))["added"] == 1


def test_a_tool_that_cannot_be_imported_does_not_keep_the_others_from_it(api: Path, run: Run, tmp_path: Path) -> None:
    for name in ("before", "zero"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "a.md").write_text(f"# {name}\n\nA page about {name}.\n", "utf-8")
        (folder / "empty.md").touch()
        run("tool", "add", "-n", name, "-d", f"About {name}", "-s", folder)
    assert run("import", "--all").code == 0
    api.rename(tmp_path / "away")
    for name in ("before", "zero"):
        (tmp_path / name / "b.md").write_text(f"# {name}\n\nAnother page about {name}.\n", "utf-8")
    done = run("import", "--all")
    assert done.code == 3
    assert done.out.startswith("2 added, 0 updated, 0 deleted, 2 unchanged")
    assert f"Error: api: {api} is missing or empty" in done.err
    assert "bunko tool delete -n api" in done.err
    assert "  zero: empty.md: is empty" in done.err
    again = run("import", "--all", "--json")
    assert again.code == 3
    told = json.loads(again.out)
    assert [(one["tool"], one["code"]) for one in told["failures"]] == [("api", "source")]
    assert {(one["tool"], one["file_path"]) for one in told["problems"]} == {
        ("before", "empty.md"), ("zero", "empty.md"),
    }  # fmt: skip
    assert run("reindex").code == 3


def test_a_rebuild_without_its_folder_leaves_no_trace(api: Path, run: Run, tmp_path: Path) -> None:
    run("import", "-n", "api")
    api.rename(tmp_path / "away")
    refused = run("import", "-n", "api", "--mode", "replace")
    assert refused.code == 3
    assert "bunko tool delete -n api" in refused.err
    assert "a rebuild is unfinished" not in run("status").out
    assert asked(run("status", "--json"))["tools"][0]["rebuild_documents"] is None


def test_an_update_forgets_a_rebuild_that_never_came_to_anything(api: Path, run: Run, tmp_path: Path) -> None:
    run("import", "-n", "api")
    with open_library(paths_for_folder(tmp_path / "XDG_DATA_HOME" / "bunko"), environ={}) as library:
        library.store.tools.put(Tool("~api", active=False, built=BuildInfo(words=0)))
    assert "(0 documents so far)" in run("status").out
    assert run("import", "-n", "api", "--mode", "update").code == 0
    assert "a rebuild is unfinished" not in run("status").out


def test_a_folder_that_went_before_the_first_import_is_not_said_to_be_indexed(api: Path, run: Run) -> None:
    for file in api.iterdir():
        file.unlink()
    api.rmdir()
    refused = run("import", "-n", "api")
    assert refused.code == 3
    assert "does not exist" in refused.err
    assert "has documents" not in refused.err


def test_one_size_given_leaves_the_other_one_as_the_tool_has_it(api: Path, run: Run) -> None:
    run("import", "-n", "api", "--chunk-size", "2048", "--chunk-overlap", "100")
    for options, size, overlap in (
        (["--chunk-overlap", "0"], 2048, 0),
        (["--chunk-size", "512"], 512, 0),
        (["--chunker", "tokens"], 512, 0),
    ):
        assert run("import", "-n", "api", "--mode", "replace", *options).code == 0
        (tool,) = asked(run("tool", "ls", "--all", "--json"))
        assert (tool["chunk_size"], tool["chunk_overlap"]) == (size, overlap)


@pytest.mark.slow
def test_an_import_that_is_stopped_does_not_wait_for_a_large_file(docs: Path, open_docs: Opener) -> None:
    (docs / "large.txt").write_text("words of a very large file. " * 300_000, encoding="utf-8")
    library = open_docs()
    polls: list[bool] = []
    children: list[BaseProcess] = []

    def is_cancelled() -> bool:
        polls.append(len(polls) > 0)
        children[:] = multiprocessing.active_children()
        return polls[-1]

    report = library.reindex(observer=Observer(is_cancelled=is_cancelled), workers=2)
    assert children
    assert (report.interrupted, report.added) == (True, 0)
    assert len(polls) <= 4, "it was asked while the worker was busy, not after"
    library.close()
    # Not with join: a thread of the pool waits for it as well, and only one of the two learns how it ended.
    assert all(wait([child.sentinel], PATIENCE) for child in children)
