"""A bot that runs in a thread, for tests."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio
import anyio.from_thread

from bunko.interfaces.slack.bot import run_bot
from bunko.interfaces.slack.events import Identity
from bunko.library.library import Library
from bunko.library.open import open_library
from bunko.library.opening.paths import locate_library
from tests.chat.chat_service import ChatService
from tests.slack.slack_service import APP_TOKEN, BOT_TOKEN, SIGNING_SECRET, Sender, SlackService


def environment(slack: SlackService, **more: str) -> dict[str, str]:
    """Return the settings of a bot as environment variables."""
    return {
        "SLACK_BOT_TOKEN": BOT_TOKEN,
        "SLACK_APP_TOKEN": APP_TOKEN,
        "SLACK_SIGNING_SECRET": SIGNING_SECRET,
        "BUNKO_SLACK_API_URL": slack.api_url,
        "BUNKO_SEARCH_FRESHNESS_SECONDS": "0",
        "RAG_CRAWL_DELAY_SEC": "0",
        **more,
    }


def with_model(service: ChatService) -> dict[str, str]:
    """Return the settings for a chat model on loopback."""
    return {"BUNKO_CHAT_PROVIDER": "ollama", "BUNKO_CHAT_MODEL": "m", "BUNKO_CHAT_BASE_URL": service.address}


def open_test_library(folder: Path, environ: dict[str, str]) -> Library:
    return open_library(locate_library(library=folder, environ={}), environ=environ, create=True)


@contextmanager
def running_bot(library: Library, *, over_http: bool = True) -> Iterator[Sender]:
    """Run a bot over HTTP, or in Socket Mode, until the end of the block."""
    listener = socket.create_server(("127.0.0.1", 0)) if over_http else None
    ready = threading.Event()
    stop: list[anyio.CancelScope] = []
    errors: list[BaseException] = []

    def announce(identity: Identity) -> None:
        ready.set()

    async def run() -> None:
        with anyio.CancelScope() as scope:
            stop.append(scope)
            async with anyio.from_thread.BlockingPortal() as portal:
                portals.append(portal)
                await run_bot(library, listener=listener, on_ready=announce)

    portals: list[anyio.from_thread.BlockingPortal] = []

    def work() -> None:
        try:
            anyio.run(run)
        except BaseException as error:
            errors.append(error)
        ready.set()
        sender.ended.set()

    sender = Sender(f"http://127.0.0.1:{listener.getsockname()[1]}/slack/events" if listener else "")
    thread = threading.Thread(target=work, name="bot")
    thread.start()
    try:
        assert ready.wait(60)
        if errors:
            raise errors[0]
        yield sender
    finally:
        if not errors:
            portals[0].call(stop[0].cancel)
        thread.join(30)
        assert not thread.is_alive()
        if listener is not None:
            listener.close()
    if errors:
        raise errors[0]
