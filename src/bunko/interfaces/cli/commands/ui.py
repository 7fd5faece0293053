"""The `bunko ui` command: serve the library to the browser of whoever runs it."""

from __future__ import annotations

import html
import os
import socket
import sys
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bunko.errors import SettingsError
from bunko.interfaces.cli.commands.serve import HttpServer, enabled_parts, resolve_options
from bunko.interfaces.cli.options import SharedOptions, shared_options
from bunko.interfaces.cli.terminal.printing import print_stderr
from bunko.interfaces.http.listener import open_listening_socket
from bunko.runtime.temporary_files import TemporaryFolder

if TYPE_CHECKING:
    from bunko.interfaces.http.sessions import LoginLinks

_ANY_HOST = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}  # addresses to listen on, and what a browser here calls them


@click.command()
@click.option("--no-open", is_flag=True, help="Print a link that works once, instead of opening the browser.")
@click.option("--read-only", is_flag=True, help="Allow no change of the library, and do not refresh it.")
@click.option("--host", metavar="HOST", help="Address to listen on. [127.0.0.1]")
@click.option("--port", type=click.IntRange(0, 65535), metavar="N", help="Port. [8765, or a free one]")
@click.option("--allow-remote", is_flag=True, help="Allow a --host that other machines can reach.")
@shared_options
def command(
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
        address = f"http://{_authority(host)}:{listener.getsockname()[1]}/"
        print_stderr(f"The page is at {address}. Press Ctrl-C to stop.")
        if no_open:
            _print_link(address, links)
        else:
            _open_browser(address, links, stack)
        server.serve_listener(listener, host, links=links)


def listen(host: str, port: int | None, default_port: int, *, allow_remote: bool) -> socket.socket:
    """Return a listening socket; if nobody named a port and the usual one is taken, any free one will do."""
    if port is not None:
        return open_listening_socket(host, port, allow_remote=allow_remote)
    try:
        return open_listening_socket(host, default_port, allow_remote=allow_remote)
    except SettingsError:
        return open_listening_socket(host, 0, allow_remote=allow_remote)


def _authority(host: str) -> str:
    return _ANY_HOST.get(host) or (f"[{host}]" if ":" in host else host)


def _print_link(address: str, links: LoginLinks) -> None:
    print_stderr(f"Open this link within a minute; it works once: {address}login?token={links.create()}")


def _open_browser(address: str, links: LoginLinks, stack: ExitStack) -> None:
    """Open the page beside the server, which must not wait for the browser; without one, print a link."""
    folder = TemporaryFolder("bunko-ui-")
    stack.callback(folder.cleanup)
    # Other users of this machine see the arguments of programs, so the browser gets a file that only its user can read.
    file = folder.path / "bunko.html"
    write_redirect(file, f"{address}login?token={links.create()}")

    def open_file() -> None:
        if not _start_browser(file):
            print_stderr("There is no browser to open.")
            _print_link(address, links)

    threading.Thread(target=open_file, name="bunko-browser", daemon=True).start()


def write_redirect(file: Path, address: str) -> None:
    """Write a page that leads to an address."""
    link = html.escape(address)
    file.write_text(
        f'<!doctype html><meta charset="utf-8"><title>bunko</title>'
        f'<meta http-equiv="refresh" content="0;url={link}"><a href="{link}">bunko</a>\n',
        encoding="utf-8",
    )


def _start_browser(file: Path) -> bool:
    import webbrowser

    # Without a desktop there may be browsers for terminals, which would take this one.
    names = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
    if sys.platform not in ("darwin", "win32") and not any(os.environ.get(name) for name in names):
        return False
    return webbrowser.open(file.as_uri())
