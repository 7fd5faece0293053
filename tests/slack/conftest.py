"""A Slack service and a bot for each test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

import pytest

from bunko.library.library import Library
from tests.chat.chat_service import ChatService, chat_service
from tests.slack.running_bot import environment, open_test_library, running_bot
from tests.slack.slack_service import Sender, SlackService, slack_service

StartBot = Callable[..., AbstractContextManager[Sender]]


@pytest.fixture
def slack() -> Iterator[SlackService]:
    """Slack's Web API on loopback."""
    with slack_service() as service:
        yield service


@pytest.fixture
def service() -> Iterator[ChatService]:
    """A chat model on loopback."""
    with chat_service() as service:
        yield service


@pytest.fixture
def library_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of an empty library, with a home and a current folder of their own."""
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))
    current = tmp_path / "current"
    current.mkdir()
    monkeypatch.chdir(current)
    return tmp_path / "library"


@pytest.fixture
def open_slack_library(slack: SlackService, library_folder: Path) -> Iterator[Callable[..., Library]]:
    """Open the library with settings as environment variables."""
    with ExitStack() as stack:
        yield lambda **environ: stack.enter_context(open_test_library(library_folder, environment(slack, **environ)))


@pytest.fixture
def bot(open_slack_library: Callable[..., Library]) -> StartBot:
    """Start a bot with settings as environment variables."""

    @contextmanager
    def start(**environ: str) -> Iterator[Sender]:
        with running_bot(open_slack_library(**environ)) as sender:
            yield sender

    return start
