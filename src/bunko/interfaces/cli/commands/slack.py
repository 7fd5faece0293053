"""The `bunko slack` commands: run the Slack bot, and print the manifest of its app."""

from __future__ import annotations

import signal
import socket
import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING

import anyio
import click
import yaml

from bunko.errors import BunkoError
from bunko.interfaces.cli.command_group import CommandGroup
from bunko.interfaces.cli.options import SharedOptions, shared_options
from bunko.interfaces.cli.terminal.printing import print_json, print_stderr
from bunko.interfaces.http.listener import open_listening_socket
from bunko.interfaces.slack.manifest import EVENTS_PATH, build_manifest
from bunko.interfaces.slack.rights import EVERYWHERE, channel_rights, parse_entry
from bunko.types.access import ALL_TOOLS

if TYPE_CHECKING:
    from bunko.interfaces.slack.events import Identity
    from bunko.library.library import Library

_DEFAULT_HOST = "127.0.0.1"


@click.group(name="slack", cls=CommandGroup, invoke_without_command=True)
@click.option("--http", metavar="[HOST:]PORT", help="Take events over HTTP, on loopback by default. [Socket Mode]")
@click.option("--allow-remote", is_flag=True, help="Allow a HOST that other machines can reach.")
@shared_options
@click.pass_context
def command(context: click.Context, /, http: str | None, allow_remote: bool, shared: SharedOptions) -> None:
    """Run a Slack bot that answers from the library.

    It takes its tokens from SLACK_BOT_TOKEN, and SLACK_APP_TOKEN or, with --http, SLACK_SIGNING_SECRET. It answers
    mentions and direct messages in their thread. At the start, it says who may ask about which tools, which slack.tools
    limits. Only those in slack.write_users and slack.write_channels may change the library.

    \b
    Example:
      bunko slack manifest
      bunko slack --library ~/library
      bunko slack --library ~/library --http 3000
    """
    if context.invoked_subcommand is not None:
        return
    address = None
    if http is not None:
        host, _, port = http.rpartition(":")
        if not port.isascii() or not port.isdigit() or int(port) > 65_535:
            raise click.UsageError(f"--http is {http!r}, but it must be a port or HOST:PORT")
        address = host.strip("[]") or _DEFAULT_HOST, int(port)
    with shared.open(create=shared.docs_dir is not None) as library, ExitStack() as stack:
        from bunko.interfaces.slack.bot import check_settings

        check_settings(library, over_http=address is not None)
        listener = None
        if address is not None:
            listener = stack.enter_context(open_listening_socket(*address, allow_remote=allow_remote))
        # Said at every start, so that no one shares more than they mean to.
        entries, names = library.settings.slack.tools, [tool.name for tool in library.tools()]
        if not entries:
            print_stderr(
                "Everyone in Slack who can write to the bot, also guests and connected organisations, may ask about"
                f" every tool: {', '.join(names) or 'there are none yet'}"
            )
            print_stderr("Limit that with slack.tools.")
        for channel in dict.fromkeys(parse_entry(entry)[0] for entry in entries):
            rights = channel_rights(entries, channel)
            tools = ", ".join(name for name in names if rights.can_read(name)) or "no tool"
            if channel == EVERYWHERE:
                print_stderr(f"In every channel and direct message, everyone may ask about: {tools}")
            else:
                print_stderr(f"In the channel {channel}, everyone may ask about: {tools}")
        for name in dict.fromkeys(parse_entry(entry)[1] for entry in entries):
            if name not in (ALL_TOOLS, *names):
                print_stderr(f"slack.tools names {name!r}, which is no tool of the library.")
        _run(library, listener)


@command.command()
@click.option("--url", metavar="URL", help="Public address of the bot, if it takes events over HTTP. [Socket Mode]")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def manifest(url: str | None, as_json: bool) -> None:
    """Print the manifest of the Slack app.

    Paste it at https://api.slack.com/apps under Create New App, From a manifest.

    \b
    Example:
      bunko slack manifest
      bunko slack manifest --url https://bot.example.com
    """
    address = f"{url.rstrip('/').removesuffix(EVENTS_PATH)}{EVENTS_PATH}" if url else ""
    if as_json:
        print_json(build_manifest(address))
        return
    click.echo(yaml.safe_dump(build_manifest(address), sort_keys=False, allow_unicode=True), nl=False)


def _run(library: Library, listener: socket.socket | None) -> None:
    """Run the bot until Ctrl-C or a request to end; what it has promised is answered after the next start."""
    from bunko.interfaces.chat.setup import load_list
    from bunko.interfaces.cli.commands.chat_session import ask_about_servers
    from bunko.interfaces.slack.bot import run_bot

    if library.settings.mcp.enabled and sys.stdin.isatty() and sys.stderr.isatty():
        load_list(library, approve=ask_about_servers)  # the answer is remembered

    def announce(identity: Identity) -> None:
        if listener is None:
            print_stderr("Connected to Slack in Socket Mode. Press Ctrl-C to stop.")
            return
        host, port = listener.getsockname()[:2]
        address = f"http://{f'[{host}]' if ':' in host else host}:{port}{EVENTS_PATH}"
        print_stderr(f"Listening on {address} for requests that Slack has signed. Press Ctrl-C to stop.")

    async def run() -> None:
        async with anyio.create_task_group() as tasks:

            async def stop_at_signal() -> None:
                with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
                    async for _ in signals:
                        tasks.cancel_scope.cancel()

            tasks.start_soon(stop_at_signal)
            await run_bot(library, listener=listener, on_ready=announce)

    try:
        anyio.run(run)
    except BaseExceptionGroup as group:
        raise _user_error(group) or group from None


def _user_error(group: BaseExceptionGroup[BaseException]) -> BunkoError | None:
    """Return the error in a group that the user can do something about."""
    for error in group.exceptions:
        if isinstance(error, BunkoError):
            return error
        if isinstance(error, BaseExceptionGroup) and (inner_error := _user_error(error)):
            return inner_error
    return None
