"""Record what every door of bunko answers about the sample library, to see what a change of the code changes.

usage: python -m tests.recordings FOLDER [--compare OTHER]          record the answers
       python -m tests.recordings FOLDER --scores SET… [--compare OTHER]   record scores of judged sets in FOLDER/scores
       python -m tests.recordings FOLDER --compare OTHER --keep     compare what was recorded before
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.chat.chat_service import Reply, chat_service
from tests.recordings.python_door import record_python
from tests.recordings.question_files import read_commands, read_queries
from tests.recordings.recording import Recording, differences
from tests.recordings.sample import build, change_documents, serve_pages, write_documents
from tests.recordings.scores import clean_environment, record_scores, sheet_name
from tests.recordings.servers import TOKEN, Places, Web, record_mcp, record_slack, start_server
from tests.recordings.shell import Shell

# Questions to a chat model, and what it answers after a search: supported, not supported, and cited wrongly.
_MODEL_ANSWERS = [
    (["ask", "有給休暇は何日前までに申請しますか"], "取りたい日の三営業日前までに申請します。[1]"),
    (["ask", "有給休暇は何日前までに申請しますか", "--json"], "取りたい日の三営業日前までに申請します。[1]"),
    (["ask", "How do I roll back a release?"], "Run `shiomi-ctl rollback`. [1] It takes seven hours. [9]"),
    (["ask", "How do I roll back a release?", "--strict", "--json"], "Run `shiomi-ctl rollback`. [1] It is slow. [9]"),
    (["ask", "Who won the world cup in 1998?"], "France won it."),
]


def main(arguments: list[str] | None = None) -> int:
    """Record, compare, and return 1 if anything differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.recordings", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path, help="where the recordings are written")
    parser.add_argument("--scores", nargs="+", metavar="SET", help="score these judged sets instead: folders, or `own`")
    parser.add_argument("--compare", type=Path, metavar="OTHER", help="list what differs from these recordings")
    parser.add_argument("--keep", action="store_true", help="compare without recording again")
    chosen = parser.parse_args(arguments)
    kind = "scores" if chosen.scores else ""
    folder, other = chosen.folder.resolve() / kind, chosen.compare and chosen.compare.resolve() / kind
    if other is not None and not other.is_dir():
        parser.error(f"there are no recordings in {other}")
    if other == folder and not chosen.keep:
        parser.error("a recording cannot be compared with the one that it replaces")
    if not chosen.keep:
        started = time.monotonic()
        if chosen.scores:
            folder.mkdir(parents=True, exist_ok=True)
            record_scores(chosen.scores, folder)
        else:
            record_answers(folder)
        print(f"Recorded in {folder} in {time.monotonic() - started:.0f} s", file=sys.stderr)
    if other is None:
        return 0
    count = 0
    # Of the sheets, those that were not recorded again are no difference.
    for name in map(sheet_name, chosen.scores) if chosen.scores else "*":
        for difference in differences(other, folder, name):
            count += 1
            print(difference, end="\n\n")
    print(f"{count or 'No'} differences", file=sys.stderr)
    return 1 if count else 0


def record_answers(folder: Path) -> None:
    """Import the sample library into a home of its own, and ask every door."""
    before, here = dict(os.environ), Path.cwd()
    with use_home() as home, serve_pages() as site:
        library, documents, current = home / "library", home / "documents", home / "current"
        current.mkdir()
        environ = clean_environment(
            home,
            {
                "XDG_CONFIG_HOME": str(home / "config"), "XDG_DATA_HOME": str(home / "data"),
                "BUNKO_LIBRARY": str(library), "BUNKO_TOKEN": TOKEN, "BUNKO_CRAWL_ALLOWED_HOSTS": "127.0.0.1",
                "BUNKO_CRAWL_DELAY_SEC": "0",
                # What is asked while nothing changes must not depend on how long it takes.
                "BUNKO_SEARCH_FRESHNESS_SECONDS": "3600",
            },
        )  # fmt: skip
        recording = Recording(folder, {str(home): "/HOME", f"127.0.0.1:{site.port}": "SITE"})
        places = Places(home, site.address)
        write_documents(documents)
        try:
            os.environ.clear()
            os.environ.update(environ)
            time.tzset()
            os.chdir(current)
            shell = Shell(recording)
            build(shell, documents, site)
            record_commands(shell, places)
            record_python(recording, library, environ)
            record_mcp(recording, home, library, environ, places)
            with start_server(["serve", "--http", "--port", "0"], environ) as port:
                recording.replacements[f"127.0.0.1:{port}"] = "SERVER"
                web = Web(recording, port, places)
                web.sign_in()
                web.record_pages()
                web.record_api()
            record_slack(recording, library, environ, places)
            record_model(shell, recording)
            record_changes(shell, documents)
        finally:
            os.chdir(here)
            os.environ.clear()
            os.environ.update(before)
            time.tzset()
        counts = ", ".join(f"{door} {count}" for door, count in recording.counts.items())
        print(f"{sum(recording.counts.values())} answers: {counts}", file=sys.stderr)


@contextmanager
def use_home() -> Iterator[Path]:
    """Give a recording an empty home at the same place as all others, which wait for it.

    Ranks of equal scores follow from hashes of paths, and tables are as wide as their longest path.
    """
    home = Path(tempfile.gettempdir()).resolve() / f"bunko-recording-{os.getuid()}"
    with Path(f"{home}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir()
        try:
            yield home
        finally:
            shutil.rmtree(home, ignore_errors=True)


def record_commands(shell: Shell, places: Places) -> None:
    """Ask the command line, in English and in Japanese."""
    for query in read_queries():
        shell.record("search", "-k", "3", "--", query)
        shell.record("search", "--json", "--explain", "--", query)
    for variables, arguments in read_commands():
        filled = places.fill(arguments)
        shell.record(*filled, **variables)
        shell.record(*filled, door="cli-ja", LANG="ja_JP.UTF-8", **variables)


def record_model(shell: Shell, recording: Recording) -> None:
    """Let a chat model answer, and record what it was sent."""
    with chat_service() as service:
        model = {"BUNKO_CHAT_PROVIDER": "ollama", "BUNKO_CHAT_MODEL": "m", "BUNKO_CHAT_BASE_URL": service.address}
        for arguments, text in _MODEL_ANSWERS:
            service.replies = [Reply(calls=[("search", json.dumps({"query": arguments[1]}))]), Reply(text)]
            result = shell.run(arguments, model)
            recording.add("model", [arguments, text], [result, *service.requests])
            service.requests.clear()


def record_changes(shell: Shell, documents: Path) -> None:
    """Search while documents change: each search imports what has changed first."""
    at_once = {"BUNKO_SEARCH_FRESHNESS_SECONDS": "0"}
    change_documents(documents)
    shell.record("status", "-n", "project", door="changes", **at_once)
    shell.record("search", "霧笛", "--no-refresh", door="changes", **at_once)
    for query in ("霧笛", "foghorns", "harbour curry"):
        shell.record("search", query, "--json", door="changes", **at_once)
    os.chdir(documents / "project")
    shell.record("search", "港", door="changes", **at_once)
    shell.record("search", "港", "--all", "--format", "paths", door="changes", **at_once)
    os.chdir(documents / "travel")
    shell.record("search", "走る", "--docs-dir", ".", door="changes", **at_once)
    shell.record("search", "走る", "--docs-dir", ".", "--json", door="changes", **at_once)
    shell.record("tool", "disable", "-n", "recipes", door="changes")
    shell.record("search", "玉葱", "--all", door="changes", **at_once)
    shell.record("search", "玉葱", "-n", "recipes", door="changes", **at_once)
    shell.record("tool", "rename", "project", "forecasts", door="changes")
    shell.record("search", "港", "-n", "forecasts", door="changes", **at_once)
    (documents / "handbook").rename(documents / "moved")
    shell.record("search", "on call", "--all", door="changes", **at_once)
    shell.record("tool", "delete", "-n", "archive", "--yes", door="changes")
    shell.record("search", "創業", "--all", door="changes", **at_once)
    shell.record("doctor", door="changes")


if __name__ == "__main__":
    sys.exit(main())
