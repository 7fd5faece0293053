"""The `bunko token` commands: add, list and revoke the tokens of HTTP clients."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import click

from bunko.interfaces.cli.command_group import CommandGroup
from bunko.interfaces.cli.commands.audit import record_command
from bunko.interfaces.cli.options import SharedOptions, complete_tool_names, shared_options
from bunko.interfaces.cli.terminal.columns import Column, format_age, print_rows
from bunko.interfaces.cli.terminal.printing import print_json, print_stderr, say
from bunko.library.rights.tokens import is_expired, resolve_expiry
from bunko.messages import translate
from bunko.types.access import Token

_COLUMNS = ("name", "reads", "writes", "created", "last used", "expires")


@click.group(name="token", cls=CommandGroup)
def command() -> None:
    """Manage tokens: who may use `bunko serve --http`, and for what.

    A token is for one person or program. It allows to read all tools, unless --read names some, and to change none,
    unless --write names them.

    \b
    Example:
      bunko token add alice
      bunko token add ci --read api-docs --write api-docs --expires 90d
      bunko token ls
      bunko token revoke alice
    """


@command.command()
@click.argument("name")
@click.option(
    "--read",
    "-r",
    multiple=True,
    metavar="TOOL",
    help="Tool that may be searched and read; may be repeated. [all]",
    shell_complete=complete_tool_names,
)
@click.option(
    "--write",
    "-w",
    multiple=True,
    metavar="TOOL",
    help="Tool that may be changed, and read; '*' for all, and new ones. May be repeated. [none]",
    shell_complete=complete_tool_names,
)
@click.option("--expires", metavar="WHEN", help="When it expires: 12h, 30d, 8w, 6m, 1y, or the last day. [never]")
@shared_options
def add(name: str, read: Sequence[str], write: Sequence[str], expires: str | None, shared: SharedOptions) -> None:
    """Add a token and print it, once: the library stores only its hash.

    Clients send it as `Authorization: Bearer TOKEN`. Running servers accept it at once.

    \b
    Example:
      bunko token add alice
      bunko token add ci --write api-docs --expires 90d
    """
    with shared.open(create=False) as library:
        rights = library.tokens.rights(read, write)
        expires_at = resolve_expiry(expires, datetime.now().astimezone()) if expires else ""
        arguments = {"name": name, "read": rights.read, "write": rights.write, "expires_at": expires_at}
        with record_command(library, "token add", arguments=arguments, always=True):
            token = library.tokens.add(name, rights, expires_at=expires_at)
    if shared.as_json:
        print_json(arguments | {"token": token})
        return
    click.echo(token)
    print_stderr(f"Give this token to {name} now: it is not shown again.")


@command.command()
@shared_options
def ls(shared: SharedOptions) -> None:
    """List the tokens, what they allow, and when they were used.

    \b
    Example:
      bunko token ls
    """
    with shared.open(create=False) as library:
        tokens = library.tokens.all()
    if shared.as_json:
        print_json(
            {
                "tokens": [
                    {
                        "name": token.name,
                        "read": list(token.rights.read),
                        "write": list(token.rights.write),
                        "created_at": token.created_at,
                        "last_used_at": token.last_used_at,
                        "expires_at": token.expires_at,
                    }
                    for token in tokens
                ]
            }
        )
        return
    if not tokens:
        print_stderr("There are no tokens yet. Add one with: bunko token add NAME")
        return
    columns = [Column("token"), Column("reads", "wrap"), Column("writes", "wrap", 2)]
    columns += [Column("created", "keep", 4), Column("last used", "keep", 3), Column("expires", "keep", 2)]
    rows = (
        (token.name, *_rights(token), format_age(created), format_age(last_used), translate(expires))
        for token in tokens
        for created, last_used, expires in [_times(token)]
    )
    plain = ((token.name, *_rights(token), *map(translate, _times(token))) for token in tokens)
    print_rows(columns, rows, plain=plain, header=_COLUMNS)


@command.command()
@click.argument("name")
@shared_options
def revoke(name: str, shared: SharedOptions) -> None:
    """Revoke a token: running servers refuse it within a second.

    \b
    Example:
      bunko token revoke alice
    """
    with shared.open(create=False) as library, record_command(library, "token revoke", arguments={"name": name}):
        library.tokens.revoke(name)
    if shared.as_json:
        print_json({"revoked": name})
    else:
        say(f"Revoked the token {name}.")


def _rights(token: Token) -> tuple[str, str]:
    return ", ".join(token.rights.read) or "-", ", ".join(token.rights.write) or "-"


def _times(token: Token) -> tuple[str, str, str]:
    expires = "expired" if is_expired(token) else token.expires_at or "never"
    return token.created_at, token.last_used_at or "never", expires
