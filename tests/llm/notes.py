"""A library of memos whose queries a chat model on loopback rewrites."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from bunko.library import memos
from bunko.library.library import Library
from bunko.llm.client import ChatConnection, ChatModel
from bunko.types import Answer
from tests.loopback import KEY, Loopback, chatting
from tests.mcp.test_memos_toolset import DIARY, opened, write

QUESTION = "あの川の横で運動したのっていつだっけ"
WORDS = "ランニング 走る 川沿い"


class Notes:
    """A library of memos that is opened again and again."""

    def __init__(self, folder: Path, service: Loopback, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.service, self._monkeypatch = folder, service, monkeypatch
        self.open: list[Library] = []
        memos.import_memos(self.library(), write(folder / "diary.txt", DIARY))

    def library(self, **environ: str) -> Library:
        self.open.append(opened(self.folder, self._monkeypatch, **chatting(self.service, **environ)))
        return self.open[-1]

    def ask(self, query: str = QUESTION, *, rewrite: bool | None = True, **environ: str) -> Answer:
        return self.library(**environ).search(query, kinds=("memos",), mode="bm25", rewrite=rewrite)

    def rows(self, change: str = "SELECT kind, value, until FROM answers") -> list[tuple[Any, ...]]:
        with sqlite3.connect(self.folder / "library" / "library.db") as connection:
            found = connection.execute(change).fetchall()
        connection.close()
        return found


def titles(answer: Answer) -> list[str]:
    return [hit.title for hit in answer.hits]


def build_chat(service: Loopback, **options: Any) -> ChatModel:
    connection = ChatConnection("openrouter", options.pop("model", "openai/gpt-4o-mini"), service.address, KEY)
    return ChatModel(connection, **({"timeout": 20.0, "max_tokens": 200, "temperature": 0.0} | options))


def build_local_chat(address: str, key: str = "", *, timeout: float = 20.0) -> ChatModel:
    connection = ChatConnection("ollama", "m", address, key)
    return ChatModel(connection, timeout=timeout, max_tokens=200, temperature=0.0)
