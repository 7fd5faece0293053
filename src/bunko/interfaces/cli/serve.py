"""`bunko serve`: a library in, an MCP server for assistants out."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from bunko.interfaces.cli.options import SharedOptions, pop_shared_options, print_stderr, shared_options

if TYPE_CHECKING:
    from bunko.interfaces.tools.registry import ToolRegistry


@click.command()
@click.option("--toolsets", metavar="NAMES", help="folder, tools, memos, web. [folder with --docs-dir, else tools]")
@click.option("--read-only", is_flag=True, help="Hide whatever changes the library, and stop refreshing.")
@click.option("--http", is_flag=True, help="Streamable HTTP instead of stdio.")
@click.option("--host", metavar="HOST", help="Where --http listens. [127.0.0.1]")
@click.option("--port", type=click.IntRange(0, 65535), metavar="N", help="Where --http listens. [8765]")
@click.option("--allow-remote", is_flag=True, help="Let --host be an address that other machines reach.")
@shared_options
def command(
    toolsets: str | None,
    read_only: bool,
    http: bool,
    host: str | None,
    port: int | None,
    allow_remote: bool,
    **options: Any,
) -> None:
    """Serve assistants over MCP.

    \b
    Example:
      bunko serve --docs-dir ~/notes
      bunko serve --library ~/library --http --port 8765
    """
    asked = pop_shared_options(options)
    home = asked.library_paths()  # a wrong folder is told at once, in the terminal
    from bunko.interfaces.tools.registry import ToolRegistry

    names = tuple(name.strip() for name in (toolsets or "").split(",") if name.strip())
    folder = str(home.docs_dir) if home.docs_dir else ""
    desk = ToolRegistry(lambda: asked.open(read_only=read_only), toolsets=names, read_only=read_only, folder=folder)
    try:
        if http:
            _serve_http(asked, desk, host, port, allow_remote)
        else:
            import anyio

            from bunko.interfaces.mcp.server import serve_stdio

            anyio.run(serve_stdio, desk)
    finally:
        desk.close()


def _serve_http(
    shared: SharedOptions, registry: ToolRegistry, host: str | None, port: int | None, allow_remote: bool
) -> None:
    from bunko.interfaces.mcp.http import load_or_create_token, open_listening_socket, serve_http
    from bunko.library.open import load_library_settings

    home = shared.library_paths()
    settings = load_library_settings(home, environ=os.environ, config=shared.config).settings.serve
    host, port = host or settings.host, settings.port if port is None else port
    with open_listening_socket(host, port, allow_remote=allow_remote) as ear:
        path = home.folder / "token"
        token = settings.token or load_or_create_token(path)
        shown = "BUNKO_TOKEN" if settings.token else f"the token in {path}"
        address = f"http://{f'[{host}]' if ':' in host else host}:{ear.getsockname()[1]}/mcp"
        print_stderr(f"bunko listens on {address}; clients need {shown} as bearer token. Ctrl-C stops it.")
        serve_http(registry, ear, token=token, host=host, allowed_hosts=settings.allowed_hosts)
