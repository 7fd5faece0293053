"""Slack's Web API on loopback, and signed requests as Slack sends them."""

from __future__ import annotations

import hashlib
import hmac
import json
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

BOT_TOKEN = "xoxb-bot-token-of-the-tests"
APP_TOKEN = "xapp-app-token-of-the-tests"
SIGNING_SECRET = "signing-secret-of-the-tests"
TEAM, BOT_USER, BOT_ID = "T1", "UBOT", "B1"


@dataclass
class Failure:
    """An answer instead of what was asked for."""

    error: str = ""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    hang_up: bool = False  # instead of an answer
    is_done: bool = False  # what was asked for is done nevertheless


Script = Callable[[str, dict[str, Any]], Failure | None]


class SlackService:
    """Keeps the messages of all channels; a script may let calls fail."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.script: Script = lambda method, arguments: None
        self.socket_url = ""
        self.posted = threading.Condition()
        self._timestamps = count(1)
        service = self

        class Handler(BaseHTTPRequestHandler):
            def _answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                method = urlsplit(self.path).path.removeprefix("/api/")
                if "json" in self.headers.get("content-type", ""):
                    arguments = json.loads(body or b"{}")
                else:
                    query = parse_qs(urlsplit(self.path).query + "&" + body.decode())
                    arguments = {name: values[-1] for name, values in query.items()}
                failure, answer = service._call(method, arguments, self.headers.get("authorization", ""))
                if failure is not None and failure.hang_up:
                    self.close_connection = True
                    self.connection.close()
                    return
                if failure is not None and not failure.is_done:
                    answer = {"ok": False, "error": failure.error}
                data = json.dumps(answer).encode()
                self.send_response(failure.status if failure else 200)
                self.send_header("content-type", "application/json")
                for name, value in (failure.headers if failure else {}).items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = _answer  # noqa: N815

            def log_message(self, *_: object) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 128

            def handle_error(self, request: Any, client_address: Any) -> None:
                pass  # a bot that was killed

        self._server = Server(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def api_url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/api/"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _call(self, method: str, arguments: dict[str, Any], header: str) -> tuple[Failure | None, dict[str, Any]]:
        with self.posted:
            self.calls.append((method, arguments))
            self.posted.notify_all()
        expected = APP_TOKEN if method == "apps.connections.open" else BOT_TOKEN
        if header != f"Bearer {expected}":
            return None, {"ok": False, "error": "invalid_auth"}
        failure = self.script(method, arguments)
        if failure is not None and not failure.is_done:
            return failure, {}
        return failure, {"ok": True, **self._run(method, arguments)}

    def _run(self, method: str, arguments: dict[str, Any]) -> dict[str, Any]:
        if method == "auth.test":
            return {"team_id": TEAM, "user_id": BOT_USER, "bot_id": BOT_ID, "user": "bunko", "team": "t", "url": "u"}
        if method == "apps.connections.open":
            return {"url": self.socket_url}
        with self.posted:
            if method == "chat.postMessage":
                message = {**arguments, "user": BOT_USER, "bot_id": BOT_ID, "ts": f"9.{next(self._timestamps):06}"}
                self.messages.append(message)
                self.posted.notify_all()
                return {"ts": message["ts"], "channel": message["channel"], "message": message}
            if method == "conversations.replies":
                place = (arguments["channel"], arguments["ts"])
                return {"messages": [message for message in self.messages if _thread(message) == place]}
        return {"ok": False, "error": "unknown_method"}

    def wait_for(self, number: int, timeout: float = 60.0) -> list[dict[str, Any]]:
        """Return the messages as soon as there are this many."""
        with self.posted:
            assert self.posted.wait_for(lambda: len(self.messages) >= number, timeout), self.messages
            return list(self.messages)

    def wait_for_posts(self, channel: str, number: int) -> None:
        """Wait until this many posts in a channel were tried."""

        def is_reached() -> bool:
            posts = [arguments["channel"] for method, arguments in self.calls if method == "chat.postMessage"]
            return posts.count(channel) >= number

        with self.posted:
            assert self.posted.wait_for(is_reached, 60), self.calls

    def in_thread(self, ts: str) -> list[dict[str, Any]]:
        """Return the messages of a thread."""
        with self.posted:
            return [message for message in self.messages if message.get("thread_ts") == ts]


def _thread(message: dict[str, Any]) -> tuple[str, str]:
    return message["channel"], message.get("thread_ts", message["ts"])


@contextmanager
def slack_service() -> Iterator[SlackService]:
    """Run Slack's Web API."""
    service = SlackService()
    try:
        yield service
    finally:
        service.close()


_NUMBERS = count(1)  # of messages, of all senders


class Sender:
    """Sends events to a bot as Slack does."""

    def __init__(self, url: str, numbers: Iterator[int] = _NUMBERS) -> None:
        self.url = url
        self._numbers = numbers
        self.ended = threading.Event()  # the bot has

    def mention(self, text: str, *, user: str = "U1", channel: str = "C1", thread_ts: str = "", **more: Any) -> str:
        """Mention the bot, and return the timestamp of the message."""
        ts = f"1700000000.{next(self._numbers):06}"
        event = {"type": "app_mention", "user": user, "channel": channel, "ts": ts, "text": f"<@{BOT_USER}> {text}"}
        event |= {"thread_ts": thread_ts} if thread_ts else {}
        assert self.send_event(event | more) == 200
        return ts

    def send_event(self, event: dict[str, Any], *, event_id: str = "", headers: dict[str, str] | None = None) -> int:
        """Send an event, and return the status of the answer."""
        body = {"type": "event_callback", "team_id": TEAM, "api_app_id": "A1", "event": event}
        return self.send(json.dumps(body | {"event_id": event_id or f"Ev{event.get('ts')}"}), headers=headers)

    def click(self, action: str, message: dict[str, Any], *, user: str = "U1") -> int:
        """Click a button under a message."""
        [buttons] = [block for block in message["blocks"] if block["type"] == "actions"]
        [button] = [element for element in buttons["elements"] if element["action_id"] == action]
        payload = {
            "type": "block_actions", "team": {"id": TEAM}, "user": {"id": user}, "api_app_id": "A1",
            "container": {"type": "message", "message_ts": message["ts"], "thread_ts": message["thread_ts"]},
            "channel": {"id": message["channel"]}, "message": message,
            "actions": [{**button, "block_id": "b", "action_ts": f"1700000000.{next(self._numbers):06}"}],
        }  # fmt: skip
        return self.send(urlencode({"payload": json.dumps(payload)}), kind="application/x-www-form-urlencoded")

    def send(
        self,
        body: str,
        *,
        kind: str = "application/json",
        secret: str = SIGNING_SECRET,
        sent_at: float | None = None,
        headers: dict[str, str] | None = None,
    ) -> int:
        """Send a signed body, and return the status of the answer."""
        timestamp = str(int(time.time() if sent_at is None else sent_at))
        signature = hmac.new(secret.encode(), f"v0:{timestamp}:{body}".encode(), hashlib.sha256).hexdigest()
        request = urllib.request.Request(
            self.url,
            body.encode(),
            {
                "content-type": kind,
                "x-slack-request-timestamp": timestamp,
                "x-slack-signature": f"v0={signature}",
                **(headers or {}),
            },
        )
        try:
            with urllib.request.urlopen(request, timeout=30) as response:
                return int(response.status)
        except urllib.error.HTTPError as error:
            error.close()
            return error.code
