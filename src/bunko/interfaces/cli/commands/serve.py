"""The `bunko serve` and `bunko ui` commands: run a server for assistants, programs and browsers."""

from __future__ import annotations

import asyncio
import html
import os
import shlex
import signal
import socket
import sys
import threading
import webbrowser
from collections.abc import Callable, Collection, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bunko.errors import BunkoError, SettingsError
from bunko.interfaces.cli.main import INTERRUPTED_EXIT_CODE, detect_language
from bunko.interfaces.cli.options import SharedOptions, shared_options
from bunko.interfaces.cli.output import OutputError, prepare_streams
from bunko.interfaces.cli.terminal.printing import print_stderr
from bunko.interfaces.http.listener import open_listening_socket
from bunko.interfaces.http.supervisor import Supervisor, prepare_worker
from bunko.interfaces.mcp.stdio import serve_stdio
from bunko.interfaces.tools.registry import ToolRegistry
from bunko.interfaces.tools.toolsets import ALL_TOOLSETS, TOOLSET_NAMES, parse_toolsets
from bunko.library.rights.user_secret import load_or_create_secret, token_path
from bunko.messages import translate
from bunko.runtime.temporary_files import TemporaryFolder

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess

    from bunko.interfaces.http.parts import Part
    from bunko.interfaces.http.sessions import LoginLinks
    from bunko.library.rights.identity_provider import IdentityProvider
    from bunko.settings.schema import ServeSection

CLOSE_SECONDS = 5.0


@click.command()
@click.option(
    "--toolsets",
    metavar="NAMES",
    help=f"Comma-separated: {', '.join(TOOLSET_NAMES)}, or {ALL_TOOLSETS}. [folder with --docs-dir, else tools]",
)
@click.option("--read-only", is_flag=True, help="Hide tools that change the library, and do not refresh it.")
@click.option("--http", is_flag=True, help="Serve MCP, the API and the page over HTTP, instead of MCP over stdio.")
@click.option("--no-mcp", is_flag=True, help="Leave MCP out of --http.")
@click.option("--no-api", is_flag=True, help="Leave the API out of --http.")
@click.option("--no-page", is_flag=True, help="Leave the page out of --http.")
@click.option("--host", metavar="HOST", help="Address for --http. [127.0.0.1]")
@click.option("--port", type=click.IntRange(0, 65535), metavar="N", help="Port for --http. [8765]")
@click.option("--allow-remote", is_flag=True, help="Allow a --host that other machines can reach.")
@click.option(
    "--workers",
    type=click.IntRange(1, 64),
    metavar="N",
    help="Number of processes for --http, which keep no sessions. [one process that keeps them]",
)
@shared_options
def command(
    toolsets: str | None,
    read_only: bool,
    http: bool,
    no_mcp: bool,
    no_api: bool,
    no_page: bool,
    host: str | None,
    port: int | None,
    allow_remote: bool,
    workers: int | None,
    shared: SharedOptions,
) -> None:
    """Run a server for assistants, programs and browsers.

    Assistants start it and talk MCP over stdin and stdout. Without a command, `python -m bunko --docs-dir DIR` does the
    same. With --http, it serves MCP, an API and a page to whoever has
    a token.

    \b
    Example:
      bunko serve --docs-dir ~/notes
      bunko serve --toolsets all --read-only
      bunko serve --library ~/library --http --port 8765
      bunko serve --library ~/library --http --workers 4 --no-page
    """
    paths = shared.library_paths()  # reports a wrong folder now, in the terminal
    if workers is not None and not http:
        raise click.UsageError("--workers needs --http.")
    disabled = [part for part, is_off in (("mcp", no_mcp), ("api", no_api), ("page", no_page)) if is_off]
    if disabled and not http:
        raise click.UsageError(f"--no-{disabled[0]} needs --http.")
    toolset_names, read_only = resolve_options(shared, toolsets, read_only)
    if http:
        parts = enabled_parts(shared.load_settings().settings.serve, disabled)
        HttpServer(shared, toolset_names, read_only, parts).serve(host, port, workers, allow_remote=allow_remote)
        return
    registry = build_registry(shared, toolset_names, read_only)
    try:
        if sys.stdin.isatty():
            location = shlex.join(paths.cli_arguments())
            print_stderr(
                "This is an MCP server: an assistant starts it and talks to it over stdin and stdout."
                f"\nConnect one with: bunko connect claude-code {location}\nPress Ctrl-C to stop."
            )
        _serve_stdio(registry)
    finally:
        close_in_time(registry)


def build_registry(
    shared: SharedOptions, toolsets: Sequence[str], read_only: bool, *, jobs_folder: Path | None = None
) -> ToolRegistry:
    """Return the tools of a server, which opens the library at the first call."""
    docs_dir = shared.library_paths().docs_dir
    return ToolRegistry(
        lambda: shared.open(read_only=read_only),
        toolsets=toolsets,
        read_only=read_only,
        folder=str(docs_dir) if docs_dir else "",
        jobs_folder=jobs_folder,
    )


def resolve_options(shared: SharedOptions, toolsets: str | None, read_only: bool) -> tuple[Sequence[str], bool]:
    """Return the toolsets and whether the server only reads, from the options, else from the settings."""
    try:
        settings = shared.load_settings().settings.serve
    except BunkoError:  # the first call reports it to the assistant, where the user sees it
        return parse_toolsets([toolsets or ""]), read_only
    return parse_toolsets([toolsets] if toolsets else settings.toolsets), read_only or settings.read_only


def _serve_stdio(registry: ToolRegistry) -> None:
    if threading.current_thread() is threading.main_thread():

        def exit_now(*_: object) -> None:
            # A thread that waits for the next line on stdin would keep the process until that comes.
            close_in_time(registry)
            os._exit(INTERRUPTED_EXIT_CODE)

        signal.signal(signal.SIGINT, exit_now)
    try:
        asyncio.run(serve_stdio(registry))
    except OSError as error:  # stdout, or the file that it is copied to
        raise OutputError(error.errno, error.strerror) from error


def close_in_time(registry: ToolRegistry) -> None:
    """Close the registry; a call that hangs in the library must not keep the process."""
    closing = threading.Thread(target=registry.close, name="bunko-close", daemon=True)
    closing.start()
    closing.join(CLOSE_SECONDS)


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
        settings = self.shared.load_settings().settings.serve
        host, port = host or settings.host, settings.port if port is None else port
        workers = workers or settings.workers
        self._identity_provider()  # reports wrong settings before anything listens
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
        self,
        listener: socket.socket,
        host: str,
        shared_folder: Path | None = None,
        links: LoginLinks | None = None,
        note_ready: Callable[[], None] = lambda: None,
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
                provider=self._identity_provider(),
                note_ready=note_ready,
            )
        finally:
            close_in_time(registry)

    def _supervise(self, listener: socket.socket, host: str, count: int) -> None:
        folder = TemporaryFolder("bunko-serve-")
        # Spawned, not forked: a worker that is started again must not inherit the sockets and pipes of the others.
        context = get_context("spawn")

        def start() -> tuple[BaseProcess, Connection]:
            reader, writer = context.Pipe(duplex=False)
            with writer:
                arguments = (self, listener, host, folder.path, writer)
                process = context.Process(target=run_worker, args=arguments, name="bunko-worker")
                process.start()
            return process, reader

        try:
            Supervisor(start, count, print_stderr, listener).run()
        finally:
            folder.cleanup()

    def _identity_provider(self) -> IdentityProvider | None:
        from bunko.library.rights.identity_provider import IdentityProvider

        settings = self.shared.load_settings().settings.sign_in
        return IdentityProvider(settings) if settings.issuer else None

    def _token_path(self) -> Path:
        return token_path(self.shared.library_paths())

    def _token(self) -> tuple[str, str]:
        """Return the token that clients need, and what to call it in a message."""
        if token := self.shared.load_settings().settings.serve.token:
            return token, "BUNKO_TOKEN"
        path = self._token_path()
        return load_or_create_secret(path, hint="Set BUNKO_TOKEN instead."), f"the token in {path}"


def run_worker(server: HttpServer, listener: socket.socket, host: str, shared_folder: Path, ready: Connection) -> None:
    """Serve until the supervisor says otherwise or is gone."""
    is_ending = prepare_worker()
    prepare_streams()
    detect_language()
    try:
        server.serve_listener(listener, host, shared_folder, note_ready=partial(ready.send, True))
    except Exception as error:
        if is_ending.is_set():
            sys.exit(0)
        if not isinstance(error, BunkoError):
            raise
        print_stderr(f"{translate('Error')}: {translate(error.message)}")
        if error.hint:
            print_stderr(error.hint)
        sys.exit(1)


_ANY_HOST = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}  # addresses to listen on, and what a browser here calls them


@click.command()
@click.option("--no-open", is_flag=True, help="Print a link that works once, instead of opening the browser.")
@click.option("--read-only", is_flag=True, help="Allow no change of the library, and do not refresh it.")
@click.option("--host", metavar="HOST", help="Address to listen on. [127.0.0.1]")
@click.option("--port", type=click.IntRange(0, 65535), metavar="N", help="Port. [8765, or a free one]")
@click.option("--allow-remote", is_flag=True, help="Allow a --host that other machines can reach.")
@shared_options
def ui(
    no_open: bool, read_only: bool, host: str | None, port: int | None, allow_remote: bool, shared: SharedOptions
) -> None:
    """Search and manage the library in your browser.

    This starts a server for you alone and opens its page. The server also has the API and MCP, and ends with Ctrl-C.

    \b
    Example:
      bunko ui
      bunko ui --docs-dir ~/notes --read-only
      bunko ui --no-open --port 9000
    """
    from bunko.interfaces.http.sessions import LoginLinks

    shared.library_paths()  # reports a wrong folder before anything listens
    settings = shared.load_settings().settings.serve
    toolsets, read_only = resolve_options(shared, None, read_only)
    server = HttpServer(shared, toolsets, read_only, enabled_parts(settings) | {"page", "api"})
    host, links = host or settings.host, LoginLinks()
    with ExitStack() as stack:
        listener = stack.enter_context(listen(host, port, settings.port, allow_remote=allow_remote))
        authority = _ANY_HOST.get(host) or (f"[{host}]" if ":" in host else host)
        address = f"http://{authority}:{listener.getsockname()[1]}/"
        print_stderr(f"The page is at {address}. Press Ctrl-C to stop.")
        if no_open:
            _print_link(address, links)
        else:
            folder = TemporaryFolder("bunko-ui-")
            stack.callback(folder.cleanup)
            # Other users of this machine see the arguments of programs, so the browser gets a file that only its
            # user can read. The server does not wait for the browser.
            file = folder.path / "bunko.html"
            write_redirect(file, f"{address}login?token={links.create()}")

            def open_file() -> None:
                # Without a desktop there may be browsers for terminals, which would take this one.
                names = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
                has_desktop = sys.platform in ("darwin", "win32") or any(os.environ.get(name) for name in names)
                if not has_desktop or not webbrowser.open(file.as_uri()):
                    print_stderr("There is no browser to open.")
                    _print_link(address, links)

            threading.Thread(target=open_file, name="bunko-browser", daemon=True).start()
        server.serve_listener(listener, host, links=links)


def listen(host: str, port: int | None, default_port: int, *, allow_remote: bool) -> socket.socket:
    """Return a listening socket; without a named port, any free one will do if the usual one is taken."""
    if port is not None:
        return open_listening_socket(host, port, allow_remote=allow_remote)
    try:
        return open_listening_socket(host, default_port, allow_remote=allow_remote)
    except SettingsError:
        return open_listening_socket(host, 0, allow_remote=allow_remote)


def _print_link(address: str, links: LoginLinks) -> None:
    print_stderr(f"Open this link within a minute; it works once: {address}login?token={links.create()}")


def write_redirect(file: Path, address: str) -> None:
    """Write a page that leads to an address."""
    link = html.escape(address)
    file.write_text(
        f'<!doctype html><meta charset="utf-8"><title>bunko</title>'
        f'<meta http-equiv="refresh" content="0;url={link}"><a href="{link}">bunko</a>\n',
        encoding="utf-8",
    )
