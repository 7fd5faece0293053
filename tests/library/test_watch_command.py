"""The command `bunko watch` in a process of its own."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.processes import subprocess_environment
from tests.library.watching import (
    PATIENCE,
    WatchProcess,
    add_tool,
    linux,
    save_by_rename,
    start_watching,
    wait_until,
)

# They start processes and wait for the events of the system: seconds each.
pytestmark = pytest.mark.slow


@pytest.mark.parametrize("own", [".rag-index", "notes/mine", "."], ids=["usual", "elsewhere", "beside the documents"])
def test_its_own_writes_cause_no_further_import(docs: Path, tmp_path: Path, own: str) -> None:
    add_tool(docs / own, "notes", docs)
    command = [sys.executable, "-m", "bunko", "watch", "--json", "--verbose", "--library", str(docs / own)]
    with WatchProcess(command, tmp_path) as printed:
        printed.wait_for("watching")
        for number in range(3):
            (docs / f"{number}.md").write_text(f"# 文書 {number}\n", encoding="utf-8")
            printed.wait_for("imported", times=number + 1)
        _, err = printed.end()
    assert [line["added"] for line in printed.lines if line["event"] == "imported"] == [1, 1, 1]
    # One at the start, which may find nothing yet, and one for each file.
    assert err.count("INFO Importing notes") <= 4


def _may_have_a_namespace() -> bool:
    try:
        tried = "echo 9 > /proc/sys/user/max_inotify_watches"
        return subprocess.run(["unshare", "-Ur", "sh", "-c", tried], capture_output=True).returncode == 0
    except FileNotFoundError:
        return False


@linux
def test_where_the_system_watches_no_more_folders_it_says_so_and_looks_instead(tmp_path: Path) -> None:
    if not _may_have_a_namespace():
        pytest.skip("the limit on watches is lowered in a user namespace, which is not allowed here")
    docs = tmp_path / "docs"
    for number in range(20):
        (docs / str(number)).mkdir(parents=True)
    (docs / "1" / "a.md").write_text("# 上限\n", encoding="utf-8")
    limited = 'echo 9 > /proc/sys/user/max_inotify_watches; exec "$@"'
    command = [sys.executable, "-m", "bunko", "watch", "--json", "--docs-dir", str(docs)]
    with WatchProcess(["unshare", "-Ur", "sh", "-c", limited, "sh", *command], tmp_path) as printed:
        problem = printed.wait_for("problem")
        assert "limit for watched folders is reached" in problem["message"]
        assert "tool" not in problem
        assert "max_user_watches" in problem["hint"]
        printed.wait_for("imported")
        (docs / "2" / "b.md").write_text("# 巡回\n", encoding="utf-8")
        printed.wait_for("imported", times=2)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_search_in_another_process_finds_what_the_watch_took_in_and_a_signal_ends_it_well(
    docs: Path, tmp_path: Path, number: int
) -> None:
    (docs / "a.md").write_text("# 最初の文書\n\n本文です。\n", encoding="utf-8")
    with start_watching(docs, tmp_path, "--json") as printed:
        first = printed.wait_for("imported")
        assert (first["tool"], first["added"]) == ("documents", 1)
        save_by_rename(docs / "a.md", "# 紫陽花の剪定\n\n梅雨の後に切ります。\n")

        def is_found() -> bool:
            command = [sys.executable, "-m", "bunko", "search", "紫陽花", "--no-refresh", "--json"]
            done = subprocess.run(
                [*command, "--docs-dir", str(docs)],
                env=subprocess_environment(tmp_path),
                capture_output=True,
                text=True,
            )
            return "紫陽花" in json.dumps(json.loads(done.stdout)["results"], ensure_ascii=False)

        wait_until(is_found, "the search finds the new text")
        code, err = printed.end(number)
    assert (code, err) == (0, "")
    assert printed.lines[-1]["event"] == "stopped"
    assert printed.lines[0]["tools"] == [{"name": "documents", "path": str(docs)}]


def test_for_people_it_prints_a_line_for_each_change(docs: Path, tmp_path: Path) -> None:
    (docs / "a.md").write_text("# 一つ目\n", encoding="utf-8")
    (docs / "empty\x1b[31m.md").write_bytes(b"")
    process = subprocess.Popen(
        [sys.executable, "-m", "bunko", "watch", "--docs-dir", str(docs)],
        env=subprocess_environment(tmp_path),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )
    try:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(3)]
        process.send_signal(signal.SIGINT)
        rest, err = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
    assert lines[0].endswith("Watching 1 tool: documents. Press Ctrl-C to stop.\n")
    assert lines[1].endswith(f"documents: {docs}\n")
    assert lines[2].endswith("documents: 1 added\n")
    assert rest.endswith("Stopped. Imported changes are kept.\n")
    assert "is empty" in err
    assert "\x1b" not in err
    assert process.returncode == 0
