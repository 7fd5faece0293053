"""Run an embedding and chat service on loopback with the APIs of OpenAI and Gemini, for tests."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np

KEY = "sk-very-secret-0123456789"


class Asked:
    """One request as it came."""

    def __init__(self, path: str, headers: dict[str, str], body: dict[str, Any]) -> None:
        self.path, self.headers, self.body = path, headers, body

    @property
    def texts(self) -> list[str]:
        if "requests" in self.body:
            return [request["content"]["parts"][0]["text"] for request in self.body["requests"]]
        return list(self.body["input"])


Reply = tuple[int, dict[str, str], bytes]
Answer = Callable[[Asked], Reply | None]  # None: answer as the service does when all is well


class Loopback:
    """A service whose first answers may be told beforehand; `size` numbers a vector, made from the text alone."""

    def __init__(self, size: int = 8) -> None:
        self.size = size
        self.asked: list[Asked] = []
        self.looked: list[str] = []  # what was only looked at
        self.listing = (200, b'{"object": "list", "data": []}')
        self.answers: list[Answer | Reply] = []
        self.always: Answer = lambda _: None
        self.released = threading.Event()
        self._lock = threading.Lock()
        service = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                asked = Asked(self.path, {name.lower(): value for name, value in self.headers.items()}, body)
                with service._lock:
                    service.asked.append(asked)
                    answer = service.answers.pop(0) if service.answers else service.always
                reply = answer(asked) if callable(answer) else answer
                status, headers, content = reply or service.well(asked)
                self.send_response(status)
                for name, value in {"content-type": "application/json", **headers}.items():
                    self.send_header(name, value)
                if "content-length" not in headers:
                    self.send_header("content-length", str(len(content)))
                self.send_header("connection", "close")  # so that no thread waits for a further request
                self.end_headers()
                with suppress(OSError):  # whoever asked may have hung up
                    self.wfile.write(content)

            def do_GET(self) -> None:
                with service._lock:
                    service.looked.append(self.path)
                status, content = service.listing
                self.send_response(status)
                self.send_header("content-length", str(len(content)))
                self.send_header("connection", "close")
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: object) -> None:
                pass

        class Server(ThreadingHTTPServer):
            request_queue_size = 128  # a client whose connection is not queued tries again after seconds

        self._server = Server(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = False
        self.address = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    def numbers(self, text: str, size: int) -> list[float]:
        seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")
        return [float(value) for value in np.random.default_rng(seed).normal(size=size).astype(np.float32) * 3]

    def well(self, asked: Asked) -> Reply:
        if "requests" in asked.body:
            return told({"embeddings": [
                {"values": self.numbers(text, request.get("outputDimensionality", 3072))}
                for text, request in zip(asked.texts, asked.body["requests"], strict=True)
            ]})  # fmt: skip
        size = asked.body.get("dimensions", self.size)
        rows = [self.numbers(text, size) for text in asked.texts]
        if asked.body.get("encoding_format") == "base64":
            return listed([base64.b64encode(np.asarray(row, "<f4").tobytes()).decode() for row in rows])
        return listed(rows)

    def texts(self) -> list[str]:
        """Return all texts that were asked for, in the order they came."""
        return [text for asked in self.asked for text in asked.texts]

    def close(self) -> None:
        self.released.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def told(content: object, status: int = 200, **headers: str) -> Reply:
    return status, {name.replace("_", "-"): value for name, value in headers.items()}, json.dumps(content).encode()


def listed(rows: Sequence[object]) -> Reply:
    data = [{"object": "embedding", "index": index, "embedding": row} for index, row in enumerate(rows)]
    usage = {"prompt_tokens": 1, "total_tokens": 1}
    return told({"object": "list", "data": data[::-1], "model": "m", "usage": usage})


def openai_error(status: int, message: str, **headers: str) -> Reply:
    error = {"message": message, "type": "invalid_request_error", "param": None, "code": None}
    return told({"error": error}, status, **headers)


def gemini_error(status: int, name: str, message: str, *details: object, **headers: str) -> Reply:
    error = {"code": status, "message": message, "status": name, "details": list(details)}
    return told({"error": error}, status, **headers)


def said(text: object, **more: Any) -> Reply:
    """Return a whole answer in the format of chat completions."""
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}} | more
    return told({"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]})


def hang(service: Loopback) -> None:
    """Let every answer wait until the service is closed."""

    def wait(_: Asked) -> None:
        service.released.wait()

    service.always = wait


def chatting(service: Loopback, **environ: str) -> dict[str, str]:
    """Return the environment of somebody whose chat model is this service."""
    return {
        "BUNKO_CHAT_PROVIDER": "openrouter",
        "OPENROUTER_BASE_URL": f"{service.address}/v1",
        "OPENROUTER_API_KEY": KEY,
        "BUNKO_REWRITE_TIMEOUT": "20",
        **environ,
    }


@contextmanager
def saying(text: str) -> Iterator[Loopback]:
    """Run a service that answers every chat with this text."""
    service = Loopback()
    service.always = lambda _: said(text)
    try:
        yield service
    finally:
        service.close()
