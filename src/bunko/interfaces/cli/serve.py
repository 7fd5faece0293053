"""The `bunko serve` command: run a server for assistants, programs and browsers."""

from __future__ import annotations

import os
import shlex
import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bunko.errors import BunkoError
from bunko.interfaces.cli.options import SharedOptions, pop_shared_options, print_stderr, shared_options
from bunko.interfaces.cli.output import find_output_error
from bunko.interfaces.tools.toolsets import ALL_TOOLSETS, TOOLSET_NAMES, parse_toolsets

if TYPE_CHECKING:
    from bunko.interfaces.tools.registry import ToolRegistry

_CLOSE_SECONDS = 5.0


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
    **options: Any,
) -> None:
    """Run a server for assistants, programs and browsers.

    Assistants start it and talk MCP over stdin and stdout. With --http, it serves MCP, an API and a page to whoever has
    a token.

    \b
    Example:
      bunko serve --docs-dir ~/notes
      bunko serve --toolsets all --read-only
      bunko serve --library ~/library --http --port 8765
      bunko serve --library ~/library --http --workers 4 --no-page
    """
    shared = pop_shared_options(options)
    paths = shared.library_paths()  # reports a wrong folder now, in the terminal
    if workers is not None and not http:
        raise click.UsageError("--workers needs --http.")
    disabled = [part for part, is_off in (("mcp", no_mcp), ("api", no_api), ("page", no_page)) if is_off]
    if disabled and not http:
        raise click.UsageError(f"--no-{disabled[0]} needs --http.")
    toolset_names, read_only = resolve_options(shared, toolsets, read_only)
    if http:
        from bunko.interfaces.cli.serve_http import HttpServer, enabled_parts

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
    from bunko.interfaces.tools.registry import ToolRegistry

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
    import anyio

    from bunko.interfaces.mcp.server import serve_stdio

    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, lambda *_: _exit_now(registry))
    try:
        anyio.run(serve_stdio, registry)
    except ExceptionGroup as group:
        raise find_output_error(group) or group from None


def _exit_now(registry: ToolRegistry) -> None:
    """End the process at Ctrl-C: a thread that waits for the next line on stdin would keep it until that comes."""
    from bunko.interfaces.cli.main import INTERRUPTED_EXIT_CODE

    close_in_time(registry)
    os._exit(INTERRUPTED_EXIT_CODE)


def close_in_time(registry: ToolRegistry) -> None:
    """Close the registry; a call that hangs in the library must not keep the process."""
    closing = threading.Thread(target=registry.close, name="bunko-close", daemon=True)
    closing.start()
    closing.join(_CLOSE_SECONDS)
