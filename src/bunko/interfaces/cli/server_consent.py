"""Ask at the terminal whether the MCP servers of a list may be used."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bunko.interfaces.chat.consent import describe_server
from bunko.interfaces.chat.server_config import ServerConfig
from bunko.interfaces.cli.ask import print_notice
from bunko.interfaces.cli.options import confirm, escape_controls, print_stderr


def ask_about_servers(path: Path, servers: Sequence[ServerConfig]) -> bool:
    """Show what a list in the current folder runs, and ask whether it may be used."""
    print_notice(f"{escape_controls(str(path))} names MCP servers. Using them runs these commands:")
    for server in servers:
        command, *details = [escape_controls(line) for line in describe_server(server)]
        print_stderr(f"  {escape_controls(server.name)}: {command}")
        for detail in details:
            print_stderr(f"    {detail}")
    return confirm("Do you trust this file and want to use them?")
