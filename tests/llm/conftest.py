"""Memos and a chat model on loopback."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.llm.notes import WORDS, Notes
from tests.loopback import Loopback, saying


@pytest.fixture
def service() -> Iterator[Loopback]:
    with saying(WORDS) as found:
        yield found


@pytest.fixture
def notes(tmp_path: Path, service: Loopback, monkeypatch: pytest.MonkeyPatch) -> Iterator[Notes]:
    made = Notes(tmp_path, service, monkeypatch)
    yield made
    for library in made.open:
        library.close()
