"""Streams of events are many and last: they must neither keep searches waiting nor a server from ending."""

from __future__ import annotations

import http.client
import json
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import anyio
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from bunko.interfaces.http import app as http_app
from bunko.interfaces.http import connections
from bunko.interfaces.http.app import build_server
from bunko.interfaces.http.listener import open_listening_socket
from tests.http.server import BEARER, PATIENCE, Site, run_in_thread, serve_site
from tests.slow import corpus


class SlowServer:
    """A server with an endless stream, and an answer that takes until it is released."""

    def __init__(self) -> None:
        self.asked, self.released = threading.Event(), threading.Event()
        self.server = build_server(
            Starlette(routes=[Route("/stream", self._stream), Route("/slow", self._answer), Route("/", self._greet)])
        )

    async def _stream(self, _: Request) -> Response:
        async def events() -> AsyncIterator[str]:
            yield "data: first\n\n"
            await anyio.sleep_forever()

        return StreamingResponse(events(), media_type="text/event-stream")

    async def _answer(self, _: Request) -> Response:
        self.asked.set()
        await anyio.to_thread.run_sync(self.released.wait, PATIENCE)
        return PlainTextResponse("at last")

    async def _greet(self, _: Request) -> Response:
        return PlainTextResponse("here")


class Client:
    """A connection of its own."""

    def __init__(self, port: int, path: str, **headers: str) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
        self._connection.request("GET", path, headers=headers)

    def answer(self) -> http.client.HTTPResponse:
        """Return the answer, once its head is here."""
        return self._connection.getresponse()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()


@contextmanager
def serve_slowly() -> Iterator[tuple[SlowServer, int, threading.Thread]]:
    slow = SlowServer()
    with open_listening_socket("127.0.0.1", 0, allow_remote=False) as listener:
        port = int(listener.getsockname()[1])
        with run_in_thread(slow.server, listener) as thread:
            try:
                yield slow, port, thread
            finally:
                slow.released.set()


def test_a_stream_makes_room_for_a_request_and_an_answer_under_way_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "MAX_CONNECTIONS", 3)
    with serve_slowly() as (slow, port, _), Client(port, "/slow") as waiting:
        assert slow.asked.wait(PATIENCE)
        with Client(port, "/stream") as first, Client(port, "/stream") as second:
            streams = [first.answer(), second.answer()]
            assert [stream.fp.readline() for stream in streams if stream.fp] == [b"d\r\n", b"d\r\n"]
            with Client(port, "/") as new:
                assert new.answer().read() == b"here"
            slow.released.set()
            assert waiting.answer().read() == b"at last"
            with pytest.raises((http.client.IncompleteRead, ConnectionError)):
                streams[0].read()


def test_a_server_ends_although_clients_still_listen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_app, "SHUTDOWN_SECONDS", int(10 * PATIENCE))
    with serve_slowly() as (slow, port, thread), Client(port, "/stream") as client:
        stream = client.answer()
        slow.server.should_exit = True
        with pytest.raises((http.client.IncompleteRead, ConnectionError)):
            stream.read()
        thread.join(PATIENCE)
        assert not thread.is_alive()


def test_a_server_that_ends_answers_what_is_on_its_way_and_says_that_it_is_the_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connections, "LAST_SECONDS", 10 * PATIENCE)
    with serve_slowly() as (slow, port, thread), Client(port, "/slow") as waiting:
        assert slow.asked.wait(PATIENCE)
        with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)) as balancer:
            balancer.request("GET", "/")
            assert balancer.getresponse().read() == b"here"
            slow.server.should_exit = True
            corpus.wait_until(lambda: not can_connect(port), "the server takes no more connections")
            balancer.request("GET", "/")
            answer = balancer.getresponse()
            assert (answer.read(), answer.headers["Connection"]) == (b"here", "close")
        slow.released.set()
        answer = waiting.answer()
        assert (answer.read(), answer.headers["Connection"]) == (b"at last", "close")
        thread.join(PATIENCE)
        assert not thread.is_alive()


def can_connect(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), PATIENCE).close()
    except ConnectionRefusedError:
        return False
    return True


def test_twenty_streams_keep_no_search_waiting(site: Site) -> None:
    with ExitStack() as stack:
        for _ in range(20):
            stream = stack.enter_context(Client(site.port, "/api/v1/events", Cookie=site.session)).answer()
            assert stream.status == 200
            assert stream.headers["Content-Type"].startswith("text/event-stream")
        threads = {thread for thread in threading.enumerate() if thread.name.startswith("bunko-")}
        assert len(threads) < 10  # no stream has one of its own
        for _ in range(30):
            assert site.call("/api/v1/search?q=%E4%BA%AC%E9%83%BD", **BEARER).status == 200


@pytest.mark.slow
def test_questions_that_wait_for_a_model_keep_no_search_waiting(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=128) as model, ExitStack() as stack:
        chat = {"PROVIDER": "ollama", "MODEL": "silent", "BASE_URL": f"http://127.0.0.1:{model.getsockname()[1]}/v1"}
        environ = {f"BUNKO_CHAT_{name}": value for name, value in chat.items()}
        site = stack.enter_context(serve_site(tmp_path, environ=environ))
        body, headers = json.dumps({"question": "京都の寺は?"}), {"Content-Type": "application/json", **BEARER}
        questions = []
        for _ in range(60):
            question = http.client.HTTPConnection("127.0.0.1", site.port, timeout=PATIENCE)
            stack.callback(question.close)
            question.request("POST", "/api/v1/ask", body, headers)
            questions.append(question)
        model.accept()[0].close()  # at least one of them has come as far as the model
        assert site.call("/api/v1/search?q=%E4%BA%AC%E9%83%BD").status == 200
        model.close()
