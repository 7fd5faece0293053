"""Stand between a client and a Milvus server on loopback, and answer some requests in its place."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import grpc

# The answer to a request, as bytes of its message; None lets the server answer.
Answer = Callable[[bytes, grpc.ServicerContext], bytes | None]


class MilvusProxy:
    """Passes requests on to a server, except those whose method has an answer here."""

    def __init__(self, target: str) -> None:
        self.answers: dict[str, Answer] = {}  # by method, such as Search
        self.methods: list[str] = []  # of all requests so far
        self.released = threading.Event()
        # A server that was started again is found at once.
        backoff = [(f"grpc.{name}_reconnect_backoff_ms", 100) for name in ("initial", "min", "max")]
        self._channel = grpc.insecure_channel(target, options=backoff)
        self._server = grpc.server(ThreadPoolExecutor(16))
        self._server.add_generic_rpc_handlers((_Handler(self),))
        self.port = self._server.add_insecure_port("127.0.0.1:0")
        self._server.start()

    @property
    def url(self) -> str:
        """Return the address for clients."""
        return f"http://127.0.0.1:{self.port}"

    def handle(self, path: str, request: bytes, context: grpc.ServicerContext) -> bytes:
        """Answer a request."""
        method = path.rpartition("/")[2]
        self.methods.append(method)
        answer = self.answers.get(method)
        reply = answer(request, context) if answer else None
        if reply is not None:
            return reply
        try:
            passed: bytes = self._channel.unary_unary(path)(request, timeout=60, metadata=_metadata(context))
            return passed
        except grpc.RpcError as error:
            context.abort(error.code(), error.details())
            raise AssertionError("abort raises") from error

    def hang(self, _request: bytes, _context: grpc.ServicerContext) -> bytes | None:
        """Answer nothing until the proxy is closed."""
        self.released.wait(60)
        return None

    def close(self) -> None:
        """Close all connections."""
        self.released.set()
        self._server.stop(0).wait()
        self._channel.close()


class _Handler(grpc.GenericRpcHandler):  # type: ignore[misc]  # grpc is not in .venv
    def __init__(self, proxy: MilvusProxy) -> None:
        self._proxy = proxy

    def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler:
        return grpc.unary_unary_rpc_method_handler(
            lambda request, context: self._proxy.handle(details.method, request, context)
        )


def _metadata(context: grpc.ServicerContext) -> list[tuple[str, Any]]:
    return [(key, value) for key, value in context.invocation_metadata() if not key.startswith((":", "grpc-", "user-"))]


def refuse(code: grpc.StatusCode, details: str) -> Answer:
    """Return an answer that fails as gRPC does."""

    def answer(_request: bytes, context: grpc.ServicerContext) -> bytes | None:
        context.abort(code, details)
        return None

    return answer


@contextmanager
def milvus_proxy(port: int) -> Iterator[MilvusProxy]:
    """Run a proxy for a server on loopback."""
    proxy = MilvusProxy(f"127.0.0.1:{port}")
    try:
        yield proxy
    finally:
        proxy.close()
