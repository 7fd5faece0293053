"""The commands for tokens and for the audit log."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bunko.errors import SettingsError
from bunko.library.open import open_library
from bunko.library.opening.paths import locate_library
from bunko.library.rights.audit import AuditLog
from bunko.library.rights.tokens import resolve_expiry
from bunko.stores import memory
from bunko.types.access import Caller
from tests.cli.pictures import Terminal
from tests.conftest import Ran, Run


class Team:
    """A library with two tools, and its commands."""

    def __init__(self, run: Run, folder: Path) -> None:
        self._run, self.folder = run, folder / "library"
        for name in ("notes", "memos"):
            (folder / name).mkdir()
            (folder / name / "a.md").write_text(f"# {name}\n\n本文である。\n", encoding="utf-8")
            assert self.run("add", folder / name).code == 0

    def run(self, *arguments: str | Path) -> Ran:
        return self._run(*arguments, "--library", self.folder)

    def changes(self, *arguments: str) -> list[tuple[object, ...]]:
        entries = json.loads(self.run("audit", "--json", *arguments).out)["changes"]
        return [(entry["action"], entry["tools"], entry["result"]) for entry in entries]


@pytest.fixture
def team(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Team:
    monkeypatch.setenv("EMBEDDING_PROVIDER", "none")
    return Team(run, tmp_path)


def test_a_token_is_printed_once_and_alone(team: Team) -> None:
    added = team.run("token", "add", "alice", "--read", "notes", "--expires", "30d")
    assert added.code == 0
    assert added.out.startswith("bunko_")
    assert len(added.out.strip().split()) == 1
    assert "not shown again" in added.err
    listed = team.run("token", "ls")
    assert [line.split("\t")[:3] for line in listed.out.splitlines()[1:]] == [["alice", "notes", "-"]]
    entries = team.run("audit", "--json").out
    for output in (listed.out, entries, team.run("token", "ls", "--json").out):
        assert added.out.strip() not in output


def test_by_default_a_token_reads_everything_and_writes_nothing(team: Team) -> None:
    team.run("token", "add", "alice")
    team.run("token", "add", "ci", "--write", "notes", "--write", "memos")
    team.run("token", "add", "boss", "--write", "*", "--read", "notes")
    listed = json.loads(team.run("token", "ls", "--json").out)["tokens"]
    assert [(token["name"], token["read"], token["write"]) for token in listed] == [
        ("alice", ["*"], []), ("boss", ["notes"], ["*"]), ("ci", ["*"], ["notes", "memos"]),
    ]  # fmt: skip
    assert listed[0]["created_at"]
    assert (listed[0]["expires_at"], listed[0]["last_used_at"]) == ("", "")


@pytest.mark.parametrize(
    ("arguments", "message", "hint"),
    [
        (("add", "alice", "--read", "nothing"), "There is no tool called 'nothing'", "memos, notes"),
        (("add", "two words"), "'two words' cannot be a token's name", "letters, digits"),
        (("add", "alice", "--expires", "soon"), "'soon' is neither a duration nor a day", "30d"),
        (("add", "alice", "--expires", "2001-01-01"), "'2001-01-01' is in the past", "a day to come"),
        (("add", "bob"), "A token named 'bob' already exists", "bunko token revoke bob"),
        (("revoke", "alice"), "There is no token called 'alice'", "Tokens of this library: bob."),
    ],
)  # fmt: skip
def test_a_mistake_is_told_in_a_sentence(team: Team, arguments: tuple[str, ...], message: str, hint: str) -> None:
    assert team.run("token", "add", "bob").code == 0
    failed = team.run("token", *arguments)
    assert failed.code != 0
    assert message in failed.err
    assert hint in failed.err
    assert failed.out == ""


def test_rights_follow_the_name_of_a_tool_and_end_with_it(team: Team) -> None:
    team.run("token", "add", "ci", "--read", "notes", "--write", "notes")
    team.run("tool", "rename", "notes", "diary")
    [token] = json.loads(team.run("token", "ls", "--json").out)["tokens"]
    assert (token["read"], token["write"]) == (["diary"], ["diary"])
    team.run("tool", "delete", "diary", "--yes")
    [token] = json.loads(team.run("token", "ls", "--json").out)["tokens"]
    assert (token["read"], token["write"]) == ([], [])


def test_commands_are_recorded_once_a_library_has_tokens(team: Team) -> None:
    assert team.changes() == []  # so far it has one user
    team.run("token", "add", "alice")
    team.run("import", "-n", "notes", "--mode", "update")
    team.run("tool", "disable", "memos")
    team.run("import", "-n", "nothing")
    team.run("token", "revoke", "alice")
    assert team.changes() == [
        ("token add", [], "done"),
        ("import", ["notes"], "done"),
        ("tool disable", ["memos"], "done"),
        ("import", ["nothing"], "failed"),
        ("token revoke", [], "done"),
    ]
    [entry] = json.loads(team.run("audit", "-n", "notes", "--json").out)["changes"]
    assert "@" in entry["who"]
    assert (entry["via"], entry["arguments"], entry["details"]) == ("cli", {"mode": "update"}, {"unchanged": 1})
    assert team.changes("--who", "nobody") == []
    assert len(team.changes("--since", "today")) == 5
    assert team.changes("--limit", "1") == [("token revoke", [], "done")]
    assert team.run("audit", "--since", "2001").out.count("\n") == 5


def test_a_library_among_documents_has_no_tokens(run: Run, tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "a.md").write_text("# 京都\n", encoding="utf-8")
    run("reindex", "--docs-dir", docs)
    failed = run("token", "add", "alice", "--docs-dir", docs)
    assert failed.code == 2
    assert "has no tokens" in failed.err


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("12h", "2024-05-02T00:00:00+00:00"),
        ("30d", "2024-05-31T12:00:00+00:00"),
        ("2週間", "2024-05-15T12:00:00+00:00"),
        ("1y", "2025-05-01T12:00:00+00:00"),
        ("2024-05-31", "2024-06-01T00:00:00+00:00"),  # the whole day
        ("2024-05-31 09:30", "2024-05-31T09:30:00+00:00"),
    ],
)
def test_a_token_expires_after_a_time_or_at_the_end_of_a_day(text: str, expected: str) -> None:
    assert resolve_expiry(text, datetime(2024, 5, 1, 12, tzinfo=UTC)) == expected


@pytest.mark.parametrize("text", ["", "0d", "2024", "9999y", "-5d", "yesterday", "2024-04-30"])
def test_a_token_never_expires_in_the_past(text: str) -> None:
    with pytest.raises(SettingsError):
        resolve_expiry(text, datetime(2024, 5, 1, 12, tzinfo=UTC))


def test_a_change_whose_process_is_killed_stays_as_started() -> None:
    store = memory.build()
    change = AuditLog(store, limit=10).record(Caller("alice", "http"), "reindex", tools=["notes"])
    change.__enter__()
    [entry] = store.audit.entries()
    assert (entry.who, entry.action, entry.tools, entry.result) == ("alice", "reindex", ("notes",), "started")


@pytest.mark.parametrize(("error", "result"), [(KeyboardInterrupt(), "interrupted"), (RuntimeError("x"), "failed")])
def test_a_change_that_ends_early_is_recorded_as_such(error: BaseException, result: str) -> None:
    store = memory.build()
    with pytest.raises(type(error)), AuditLog(store, limit=10).record(Caller("alice", "http"), "reindex"):
        raise error
    [entry] = store.audit.entries()
    assert (entry.result, entry.details) == (result, {"error": type(error).__name__})


def test_the_audit_log_is_as_long_as_its_setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, team: Team) -> None:
    monkeypatch.setenv("BUNKO_SERVE_AUDIT_LINES", "2")
    for name in ("alice", "bob", "carol"):
        team.run("token", "add", name)
    paths = locate_library(library=team.folder, environ={})
    with open_library(paths, environ={}) as library:
        assert [entry.arguments["name"] for entry in library.store.audit.entries()] == ["bob", "carol"]
        tomorrow = (datetime.now(UTC) + timedelta(days=1)).isoformat()
        assert library.store.audit.entries(since=tomorrow) == []


def test_a_caller_forges_no_line_and_no_value_of_the_audit_log(team: Team, terminal: Terminal) -> None:
    team.run("token", "add", "alice")
    forged = "\t".join(("2024-05-01T00:00:00+00:00", "boss", "http", "token add", "", "done", "name=x"))
    description = f"Trips\n{forged}\r\x1b[2J\u202e result=done error=none"
    caller = Caller("alice\u2066", "http")
    paths = locate_library(library=team.folder, environ={})
    arguments = {"description": description, "path": "a.md"}
    with (
        open_library(paths, environ={}) as library,
        AuditLog(library.store, limit=10).record(caller, "update", tools=["notes\nx"], arguments=arguments),
    ):
        pass
    lines = team.run("audit").out.splitlines()
    assert len(lines) == 2
    _, who, via, action, tools, result, details = lines[1].split("\t")
    assert (who, via, action, tools, result) == (r"alice\u2066", "http", "update", r"notes\nx", "done")
    assert details.startswith('description="Trips\\n')
    assert details.endswith(' result=done error=none" path=a.md')
    assert not re.search("[\x00-\x1f\u202e\u2066]", lines[1].replace("\t", ""))
    rows = terminal("audit", "--library", str(team.folder), width=120).rows
    assert not [row for row in rows if re.search("[\u202e\u2066]", row) or row.startswith("2024-05-01")]
