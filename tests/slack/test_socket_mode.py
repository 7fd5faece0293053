"""Socket Mode: events over a WebSocket that the bot opens."""

from __future__ import annotations

import json
import queue
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.server import ServerConnection, serve

from bunko.errors import LibraryError, SettingsError
from bunko.library.library import Library
from bunko.types.records import OutboxEntry
from tests.slack.running_bot import running_bot
from tests.slack.slack_service import Failure, SlackService


class Socket:
    """Slack's side of the WebSocket."""

    def __init__(self) -> None:
        self.acknowledged: queue.Queue[str] = queue.Queue()
        self._connected: queue.Queue[ServerConnection] = queue.Queue()
        self._server = serve(self._handle, "127.0.0.1", 0)
        self.url = f"ws://127.0.0.1:{self._server.socket.getsockname()[1]}/link"
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()

    def _handle(self, connection: ServerConnection) -> None:
        connection.send(json.dumps({"type": "hello", "num_connections": 1}))
        self._connected.put(connection)
        try:
            for message in connection:
                self.acknowledged.put(json.loads(message)["envelope_id"])
        except ConnectionClosed:
            pass

    def send_mention(self, text: str, envelope: str) -> None:
        connection = self._connected.get(timeout=30)
        event = {"type": "app_mention", "user": "U1", "channel": "C1", "ts": "1600000000.000001", "text": text}
        payload: dict[str, Any] = {"type": "event_callback", "team_id": "T1", "event": event, "event_id": "Ev1"}
        connection.send(json.dumps({"type": "events_api", "envelope_id": envelope, "payload": payload}))
        self._connected.put(connection)

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join(10)


@pytest.fixture
def wire(slack: SlackService) -> Iterator[Socket]:
    """A WebSocket server whose address Slack hands out."""
    wire = Socket()
    slack.socket_url = wire.url
    yield wire
    wire.close()


@pytest.mark.slow
def test_a_mention_over_the_socket_is_acknowledged_when_it_is_stored_and_answered_once(
    open_slack_library: Callable[..., Library], slack: SlackService, wire: Socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = open_slack_library(SLACK_SIGNING_SECRET="")
    add, failed = library.store.outbox.add, threading.Event()

    def fail_once(entry: OutboxEntry) -> bool:
        if not failed.is_set():
            failed.set()
            raise LibraryError("The disk is full", hint="Free some space.")
        return add(entry)

    monkeypatch.setattr(library.store.outbox, "add", fail_once)
    with running_bot(library, over_http=False):
        for envelope in ("not stored", "stored", "again"):
            wire.send_mention("<@UBOT> rag status", envelope)
            assert failed.wait(30)
            if envelope != "not stored":
                assert wire.acknowledged.get(timeout=30) == envelope
        [message] = slack.wait_for(1)
    assert message["text"].startswith("ナレッジベース統計:")
    assert len(slack.messages) == 1


def test_a_token_that_does_not_allow_socket_mode_is_an_error(
    open_slack_library: Callable[..., Library], slack: SlackService
) -> None:
    slack.script = lambda method, arguments: Failure("invalid_auth") if method == "apps.connections.open" else None
    with pytest.raises(BaseExceptionGroup) as raised:
        running_bot(open_slack_library(), over_http=False).__enter__()
    assert raised.value.subgroup(SettingsError) is not None
