"""The `bunko token` commands: add, list and revoke the tokens of HTTP clients."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import click

from bunko.interfaces.cli.audit import record_command
from bunko.interfaces.cli.help_formatter import CommandGroup
from bunko.interfaces.cli.language import translate
from bunko.interfaces.cli.options import (
    complete_tool_names,
    is_terminal,
    pop_shared_options,
    print_json,
    print_stderr,
    replace_controls,
    say,
    shared_options,
)
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
def add(name: str, read: Sequence[str], write: Sequence[str], expires: str | None, **options: Any) -> None:
    """Add a token and print it, once: the library stores only its hash.

    Clients send it as `Authorization: Bearer TOKEN`. Running servers accept it at once.

    \b
    Example:
      bunko token add alice
      bunko token add ci --write api-docs --expires 90d
    """
    shared = pop_shared_options(options)
    from bunko.library.tokens import add_token, resolve_expiry, resolve_rights

    with shared.open(create=False) as library:
        rights = resolve_rights(library.store, read, write)
        expires_at = resolve_expiry(expires, datetime.now().astimezone()) if expires else ""
        arguments = {"name": name, "read": rights.read, "write": rights.write, "expires_at": expires_at}
        with record_command(library, "token add", arguments=arguments, always=True):
            token = add_token(library.store, name, rights, expires_at=expires_at)
    if shared.as_json:
        print_json(arguments | {"token": token})
        return
    click.echo(token)
    print_stderr(f"Give this token to {name} now: it is not shown again.")


@command.command()
@shared_options
def ls(**options: Any) -> None:
    """List the tokens, what they allow, and when they were used.

    \b
    Example:
      bunko token ls
    """
    shared = pop_shared_options(options)
    with shared.open(create=False) as library:
        tokens = library.store.tokens.all()
    if shared.as_json:
        print_json({"tokens": [_to_dict(token) for token in tokens]})
        return
    if is_terminal() and tokens:
        from bunko.interfaces.cli.tables import Column, format_age, show_table

        columns = [Column("token"), Column("reads", "wrap"), Column("writes", "wrap", 2)]
        columns += [Column("created", "keep", 4), Column("last used", "keep", 3), Column("expires", "keep", 2)]
        rows = [(*_rights(token), *map(format_age, _times(token)[:2]), translate(_times(token)[2])) for token in tokens]
        show_table(columns, [(token.name, *row) for token, row in zip(tokens, rows, strict=True)])
        return
    if not tokens:
        print_stderr("There are no tokens yet. Add one with: bunko token add NAME")
        return
    click.echo("\t".join(_COLUMNS))
    for token in tokens:
        click.echo("\t".join(replace_controls(cell) for cell in (token.name, *_rights(token), *_times(token))))


@command.command()
@click.argument("name")
@shared_options
def revoke(name: str, **options: Any) -> None:
    """Revoke a token: running servers refuse it within a second.

    \b
    Example:
      bunko token revoke alice
    """
    shared = pop_shared_options(options)
    from bunko.library.tokens import revoke_token

    with shared.open(create=False) as library, record_command(library, "token revoke", arguments={"name": name}):
        revoke_token(library.store, name)
    if shared.as_json:
        print_json({"revoked": name})
    else:
        say(f"Revoked the token {name}.")


def _rights(token: Token) -> tuple[str, str]:
    return ", ".join(token.rights.read) or "-", ", ".join(token.rights.write) or "-"


def _times(token: Token) -> tuple[str, str, str]:
    from bunko.library.tokens import is_expired

    expires = "expired" if is_expired(token) else token.expires_at or "never"
    return token.created_at, token.last_used_at or "never", expires


def _to_dict(token: Token) -> dict[str, Any]:
    return {
        "name": token.name,
        "read": list(token.rights.read),
        "write": list(token.rights.write),
        "created_at": token.created_at,
        "last_used_at": token.last_used_at,
        "expires_at": token.expires_at,
    }
