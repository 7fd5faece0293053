"""What every store promises about the outbox of chat bots, and about the domains that they may add pages from."""

from __future__ import annotations

import threading
from dataclasses import replace

from bunko.protocols import Store
from bunko.types.records import DomainRule, OutboxEntry


def entry(position: str, *, bot: str = "B", thread: str = "C/1", created_at: float = 1.5) -> OutboxEntry:
    return OutboxEntry(f"{bot}/{thread}/{position}", bot, thread, position, {"text": "質問"}, created_at)


def test_an_entry_is_stored_once_however_often_it_is_added(store: Store) -> None:
    assert store.outbox.get("B/C/1/1.0") is None
    assert store.outbox.add(entry("1.0"))
    assert not store.outbox.add(replace(entry("1.0"), request={"text": "other"}))
    assert store.outbox.get("B/C/1/1.0") == entry("1.0")
    assert store.generation() == 0


def test_an_entry_that_many_threads_add_is_stored_by_one_of_them(store: Store) -> None:
    added: list[bool] = []
    threads = [threading.Thread(target=lambda: added.append(store.outbox.add(entry("1.0")))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(added) == [False] * 7 + [True]


def test_unfinished_entries_are_those_of_a_bot_by_position(store: Store) -> None:
    assert store.outbox.unfinished("B", limit=10) == []
    for position in ("3.0", "1.0", "2.0"):
        store.outbox.add(entry(position, thread=f"C/{position}"))
    store.outbox.add(entry("0.5", bot="other"))
    store.outbox.update(replace(entry("2.0", thread="C/2.0"), state="done", attempts=1, answer={"text": "答え"}))
    store.outbox.update(replace(entry("3.0", thread="C/3.0"), state="answered", answer={"messages": [1]}))
    unfinished = store.outbox.unfinished("B", limit=10)
    assert [(found.position, found.state, found.answer) for found in unfinished] == [
        ("1.0", "waiting", {}), ("3.0", "answered", {"messages": [1]}),
    ]  # fmt: skip
    assert len(store.outbox.unfinished("B", limit=1)) == 1


def test_the_last_finished_entries_of_a_thread_are_its_history(store: Store) -> None:
    assert store.outbox.finished("B", "C/1", limit=2) == []
    for position in ("1.0", "2.0", "3.0", "4.0"):
        store.outbox.add(entry(position))
        store.outbox.update(replace(entry(position), state="failed" if position == "3.0" else "done"))
    store.outbox.add(entry("5.0", thread="C/other"))
    assert [found.position for found in store.outbox.finished("B", "C/1", limit=2)] == ["2.0", "4.0"]


def test_what_is_finished_and_old_is_deleted_and_what_was_promised_is_not(store: Store) -> None:
    store.outbox.prune(100.0)
    for position, state in (("1.0", "done"), ("2.0", "failed"), ("3.0", "waiting"), ("4.0", "answered")):
        store.outbox.add(entry(position))
        store.outbox.update(replace(entry(position), state=state))  # type: ignore[arg-type]
    store.outbox.add(entry("5.0", created_at=200.0))
    store.outbox.prune(100.0)
    assert [found.position for found in store.outbox.unfinished("B", limit=10)] == ["3.0", "4.0", "5.0"]
    assert store.outbox.get("B/C/1/1.0") is None


def test_an_entry_that_is_not_there_is_not_created_by_an_update(store: Store) -> None:
    store.outbox.update(entry("1.0"))
    assert store.outbox.get("B/C/1/1.0") is None


def test_the_rule_of_a_domain_replaces_the_earlier_one(store: Store) -> None:
    assert store.domains.all() == []
    rules = [DomainRule("例え.jp", True, "U1", "2024-05-01"), DomainRule("example.com", True, "U2", "2024-05-02")]
    for rule in rules:
        store.domains.put(rule)
    store.domains.put(replace(rules[0], is_allowed=False, changed_by="U3"))
    assert store.domains.all() == [rules[1], replace(rules[0], is_allowed=False, changed_by="U3")]
    assert store.generation() == 0
