"""A chat model on loopback that streams, and that calls tools as a script says."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Request = dict[str, Any]  # the body of a request


@dataclass
class Reply:
    """One turn of the model."""

    text: str = ""
    calls: Sequence[tuple[str, str]] = ()  # names of tools and their arguments, as text
    status: int = 200
    error: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    usage: tuple[int, int] | None = (100, 20)
    finish_reason: str = ""
    hang_after: int | None = None  # send this many pieces, then nothing
    raw: bytes | None = None  # instead of all of the above


Script = Callable[[Request], Reply]


class ChatService:
    """Answers `chat/completions`, with the replies of a list first and then by a function."""

    def __init__(self) -> None:
        self.replies: list[Reply] = []
        self.script: Script = lambda request: Reply("I have nothing to say.")
        self.requests: list[Request] = []
        self.keys: list[str] = []
        self.released = threading.Event()
        self._lock = threading.Lock()
        service = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                request = json.loads(self.rfile.read(int(self.headers["content-length"])))
                with service._lock:
                    service.requests.append(request)
                    service.keys.append(self.headers.get("authorization", ""))
                    reply = service.replies.pop(0) if service.replies else None
                with suppress(OSError):  # whoever asked may have hung up
                    self._send(reply or service.script(request), request)

            def _send(self, reply: Reply, request: Request) -> None:
                if reply.status != 200 or not request.get("stream"):
                    answer = {"index": 0, "message": {"role": "assistant", "content": reply.text}}
                    content = {"choices": [answer]} if reply.status == 200 else {"error": {"message": reply.error}}
                    body = json.dumps(content).encode()
                    self.send_response(reply.status)
                    self.send_header("content-type", "application/json")
                    for name, value in reply.headers.items():
                        self.send_header(name, value)
                    self.send_header("content-length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body)
                    return
                self.send_response(200)
                self.send_header("content-type", "text/event-stream")
                self.end_headers()
                if reply.raw is not None:
                    self.wfile.write(reply.raw)
                    return
                for number, event in enumerate(events(reply, request)):
                    if number == reply.hang_after:
                        service.released.wait()
                        return
                    self.wfile.write(f"data: {json.dumps(event)}\n\n".encode())
                    self.wfile.flush()
                self.wfile.write(b"data: [DONE]\n\n")

            def log_message(self, format: str, *args: object) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 128  # a client whose connection is not queued tries again after seconds

        self._server = Server(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def close(self) -> None:
        self.released.set()
        self._server.shutdown()
        self._server.server_close()


def last_question(request: Request) -> str:
    """Return the question that a request ends with; the results of a search may stand before it."""
    return str(request["messages"][-1]["content"]).rpartition("Question: ")[2]


def events(reply: Reply, request: Request) -> Iterator[dict[str, Any]]:
    """Yield a reply in the pieces in which a server streams it."""

    def event(delta: dict[str, Any], finish_reason: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
        return {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}

    yield event({"role": "assistant", "content": ""})
    for start in range(0, len(reply.text), 7):
        yield event({"content": reply.text[start : start + 7]})
    for index, (name, arguments) in enumerate(reply.calls):
        function = {"name": name, "arguments": ""}
        yield event({"tool_calls": [{"index": index, "id": f"call-{index}", "type": "function", "function": function}]})
        for start in range(0, len(arguments), 9):
            piece = {"index": index, "function": {"arguments": arguments[start : start + 9]}}
            yield event({"tool_calls": [piece]})
    yield event({}, reply.finish_reason or ("tool_calls" if reply.calls else "stop"))
    if reply.usage and (request.get("stream_options") or {}).get("include_usage"):
        prompt, completion = reply.usage
        usage = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
        yield {**event({}), "choices": [], "usage": usage}


@contextmanager
def chat_service(*replies: Reply) -> Iterator[ChatService]:
    """Run a chat model that gives these replies first."""
    service = ChatService()
    service.replies = list(replies)
    try:
        yield service
    finally:
        service.close()
