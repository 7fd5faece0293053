"""Conversations that are kept: what is read back, what is skipped, and how many there are."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bunko.interfaces.chat import saved_chats
from bunko.interfaces.chat.saved_chats import SavedChat, SavedChats, SavedExchange
from bunko.types.answers import AnswerSource

SOURCE = AnswerSource(3, "ops", "a.md", "a.md:L1", "text", "hash", headings=("A", "B"), server="team")


def chat(name: str, question: str = "なぜ？") -> SavedChat:
    return SavedChat(name, [SavedExchange(question, "答え [3]。", "答え。 [3]", 3, "m")], {3: SOURCE})


def test_a_conversation_is_read_back_as_it_was(tmp_path: Path) -> None:
    chats = SavedChats(tmp_path / "chats")
    assert chats.latest() == []
    chats.save(chat("20260102-030405-ab"))
    (saved,) = chats.latest()
    assert saved == chat("20260102-030405-ab")
    assert (saved.title, saved.started_at) == ("なぜ？", "2026-01-02 03:04")


@pytest.mark.parametrize("text", ["", "[]", "{", '{"version": 2}', '{"version": 1, "exchanges": [{"x": 1}]}', "\udcff"])
def test_a_file_that_is_no_conversation_is_skipped(tmp_path: Path, text: str) -> None:
    chats = SavedChats(tmp_path)
    chats.save(chat("20260102-030405-ab"))
    (tmp_path / "20260103-000000-cd.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    assert [saved.name for saved in chats.latest()] == ["20260102-030405-ab"]


def test_the_oldest_conversations_are_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(saved_chats, "MAX_CHATS", 3)
    chats = SavedChats(tmp_path)
    for number in range(5):
        chats.save(chat(f"2026010{number}-000000-aa"))
        os.utime(tmp_path / f"2026010{number}-000000-aa.json", (number, number))
    chats.save(chat("20260100-000000-aa"))  # resumed, and so the newest
    assert [saved.name[:8] for saved in chats.latest()] == ["20260100", "20260104", "20260103"]


def test_the_numbers_in_a_quoted_answer_are_not_those_of_a_conversation() -> None:
    assert SavedExchange("q", "35 days. [1][+2]", "").exchange().answer == "35 days."
    assert SavedExchange("q", "35 days [1].", "", model="m").exchange().answer == "35 days [1]."


def test_a_folder_that_cannot_be_written_is_only_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").touch()
    SavedChats(tmp_path / "file" / "chats").save(chat("20260102-030405-ab"))
    assert "The conversation was not saved" in caplog.text
