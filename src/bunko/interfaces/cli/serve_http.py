"""Serve HTTP clients: in this process, or in several that share one port."""

from __future__ import annotations

import socket
import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING

from bunko.errors import BunkoError, SettingsError
from bunko.interfaces.cli.language import detect_language, translate
from bunko.interfaces.cli.options import SharedOptions, print_stderr
from bunko.interfaces.cli.output import prepare_streams
from bunko.interfaces.cli.serve import build_registry, close_in_time

if TYPE_CHECKING:
    from multiprocessing.process import BaseProcess

    from bunko.interfaces.http.parts import Part
    from bunko.interfaces.http.sessions import LoginLinks
    from bunko.settings.schema import ServeSection


def enabled_parts(settings: ServeSection, disabled: Collection[str] = ()) -> frozenset[Part]:
    """Return the parts of a server that neither the settings nor options turn off."""
    is_on: dict[Part, bool] = {"mcp": settings.mcp, "api": settings.api, "page": settings.page}
    parts: frozenset[Part] = frozenset(part for part in is_on if is_on[part] and part not in disabled)
    if not parts:
        raise SettingsError("MCP, the API and the page are all off", hint="Leave one of them on.")
    return parts


@dataclass(frozen=True, slots=True)
class HttpServer:
    """How to serve a library over HTTP; sent to each worker."""

    shared: SharedOptions
    toolsets: Sequence[str]
    read_only: bool
    parts: frozenset[Part]

    def serve(self, host: str | None, port: int | None, workers: int | None, *, allow_remote: bool) -> None:
        """Listen, say where, and serve until stopped; options that are not given come from the settings."""
        from bunko.interfaces.http.listener import open_listening_socket

        settings = self.shared.load_settings().settings.serve
        host, port = host or settings.host, settings.port if port is None else port
        workers = workers or settings.workers
        with open_listening_socket(host, port, allow_remote=allow_remote) as listener:
            _, token_name = self._token()
            old_path = self.shared.library_paths().folder / "token"
            if old_path.exists() and old_path != self._token_path():
                print_stderr(f"{old_path} is ignored: tokens are stored in your data folder. Delete it.")
            address = f"http://{f'[{host}]' if ':' in host else host}:{listener.getsockname()[1]}/"
            mcp_address = f"{address}mcp" if "mcp" in self.parts else address
            print_stderr(
                f"Listening on {mcp_address}; clients need {token_name} as bearer token. Press Ctrl-C to stop."
            )
            if "page" in self.parts:
                print_stderr(f"The page is at {address} and asks for a token, too.")
            if workers is None:
                self.serve_listener(listener, host)
            else:
                self._supervise(listener, host, workers)

    def serve_listener(
        self, listener: socket.socket, host: str, shared_folder: Path | None = None, links: LoginLinks | None = None
    ) -> None:
        """Serve the clients of a listening socket in this process, alone or as one of several workers."""
        from bunko.interfaces.http.app import serve_http

        token, _ = self._token()
        settings = self.shared.load_settings().settings.serve
        registry = build_registry(self.shared, self.toolsets, self.read_only, jobs_folder=shared_folder)
        try:
            serve_http(
                registry,
                listener,
                token=token,
                host=host,
                allowed_hosts=settings.allowed_hosts,
                parts=self.parts,
                shared_folder=shared_folder,
                links=links,
                requests_per_second=settings.requests_per_second,
            )
        finally:
            close_in_time(registry)

    def _supervise(self, listener: socket.socket, host: str, count: int) -> None:
        from bunko.interfaces.http.supervisor import Supervisor
        from bunko.temporary_files import TemporaryFolder

        folder = TemporaryFolder("bunko-serve-")
        # Spawned, not forked: a worker that is started again must not inherit the sockets and pipes of the others.
        context = get_context("spawn")

        def start() -> BaseProcess:
            process = context.Process(target=_run_worker, args=(self, listener, host, folder.path), name="bunko-worker")
            process.start()
            return process

        try:
            Supervisor(start, count, print_stderr).run()
        finally:
            folder.cleanup()

    def _token_path(self) -> Path:
        from bunko.library.user_secret import token_path

        return token_path(self.shared.library_paths())

    def _token(self) -> tuple[str, str]:
        """Return the token that clients need, and what to call it in a message."""
        from bunko.library.user_secret import load_or_create_secret

        if token := self.shared.load_settings().settings.serve.token:
            return token, "BUNKO_TOKEN"
        path = self._token_path()
        return load_or_create_secret(path, hint="Set BUNKO_TOKEN instead."), f"the token in {path}"


def _run_worker(server: HttpServer, listener: socket.socket, host: str, shared_folder: Path) -> None:
    """Serve until the supervisor says otherwise or is gone."""
    from bunko.interfaces.http.supervisor import prepare_worker

    is_ending = prepare_worker()
    prepare_streams()
    detect_language()
    try:
        server.serve_listener(listener, host, shared_folder)
    except Exception as error:
        if is_ending.is_set():
            sys.exit(0)
        if not isinstance(error, BunkoError):
            raise
        print_stderr(f"{translate('Error')}: {translate(error.message)}")
        if error.hint:
            print_stderr(error.hint)
        sys.exit(1)
