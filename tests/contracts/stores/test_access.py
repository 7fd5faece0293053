"""What every store promises about tokens, and about the log of who changed what."""

from __future__ import annotations

from dataclasses import replace

from bunko.protocols import Store
from bunko.types.access import ALL_RIGHTS, AuditEntry, Rights, Token

ALICE = Token("alice", "aa" * 32, Rights(("*",), ("旅", "notes")), "2024-05-01T00:00:00+00:00")
BOB = Token("bob", "bb" * 32, Rights(("notes",)), "2024-05-02T00:00:00+00:00", "2024-06-01T00:00:00+00:00")


def test_tokens_are_added_once_listed_by_name_and_removed(store: Store) -> None:
    assert store.tokens.all() == []
    assert not store.tokens.remove("alice")
    assert store.tokens.add(BOB)
    assert store.tokens.add(ALICE)
    assert not store.tokens.add(replace(ALICE, digest="cc" * 32))
    assert store.tokens.all() == [ALICE, BOB]
    assert store.tokens.remove("alice")
    assert not store.tokens.remove("alice")
    assert store.tokens.all() == [BOB]
    assert store.generation() == 0


def test_the_last_use_of_a_token_never_goes_back(store: Store) -> None:
    assert store.tokens.mark_used("nobody", "2024-05-03T00:00:00+00:00")
    store.tokens.add(ALICE)
    for used_at in ("2024-05-03T10:00:00+00:00", "2024-05-03T09:00:00+00:00"):
        assert store.tokens.mark_used("alice", used_at)
    assert store.tokens.all() == [replace(ALICE, last_used_at="2024-05-03T10:00:00+00:00")]


def test_rights_follow_a_tool_that_is_renamed_and_end_with_one_that_is_deleted(store: Store) -> None:
    store.tokens.rename_tool("old", "new")
    store.tokens.remove_tool("old")
    store.tokens.add(ALICE)
    store.tokens.add(BOB)
    store.tokens.add(Token("carol", "dd" * 32, Rights(("notes", "memos")), "2024-05-01T00:00:00+00:00"))
    store.tokens.rename_tool("notes", "memos")
    assert [token.rights for token in store.tokens.all()] == [
        Rights(("*",), ("旅", "memos")), Rights(("memos",)), Rights(("memos",)),
    ]  # fmt: skip
    store.tokens.remove_tool("memos")
    assert [token.rights for token in store.tokens.all()] == [Rights(("*",), ("旅",)), Rights(()), Rights(())]


def test_an_entry_of_the_audit_log_is_there_before_the_change_and_says_how_it_ended(store: Store) -> None:
    assert store.audit.entries() == []
    entry = AuditEntry("2024-05-01T00:00:00+00:00", "alice", "http", "web add", (), {"url": "https://例.jp/"})
    entry_id = store.audit.begin(entry, limit=10)
    assert store.audit.entries() == [replace(entry, id=entry_id)]
    store.audit.finish(entry_id, "done", {"pages": 1}, tools=["旅"])
    assert store.audit.entries() == [
        replace(entry, id=entry_id, result="done", details={"pages": 1}, tools=("旅",)),
    ]  # fmt: skip
    store.audit.finish(entry_id, "failed", {"error": "x"})
    assert store.audit.entries()[0].tools == ("旅",)
    assert store.generation() == 0


def test_the_audit_log_keeps_the_newest_entries(store: Store) -> None:
    for day in range(1, 6):
        store.audit.begin(AuditEntry(f"2024-05-0{day}T00:00:00+00:00", "alice", "cli", f"import {day}"), limit=3)
    assert [entry.action for entry in store.audit.entries()] == ["import 3", "import 4", "import 5"]
    assert [entry.action for entry in store.audit.entries(since="2024-05-04")] == ["import 4", "import 5"]


def test_a_caller_with_many_changes_pushes_no_others_out_of_the_audit_log(store: Store) -> None:
    for who, via in (("alice", "http"), ("bob", "cli"), *[("mallory", "http")] * 5, ("mallory", "slack")):
        store.audit.begin(AuditEntry("2024-05-01T00:00:00+00:00", who, via, "import"), limit=2)
    callers = [(entry.who, entry.via) for entry in store.audit.entries()]
    assert callers == [("alice", "http"), ("bob", "cli"), *[("mallory", "http")] * 2, ("mallory", "slack")]


def test_the_right_to_write_includes_the_right_to_read() -> None:
    rights = Rights((), ("notes",))
    assert rights.can_read("notes")
    assert not rights.can_read("memos")
    assert not rights.reads_all
    assert ALL_RIGHTS.can_write("anything")
    assert Rights().can_read("anything")
    assert not Rights().writes_some
