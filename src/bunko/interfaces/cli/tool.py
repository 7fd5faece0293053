"""`bunko tool`: named, described folders, each something an assistant can call."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bunko.interfaces.cli.options import PATH, Chosen, chosen, is_terminal, print_json, say, shared

if TYPE_CHECKING:
    from bunko.library import Library
    from bunko.types import Tool

_name = click.option("--name", "-n", required=True, metavar="NAME", help="The tool.")


@click.group(name="tool")
def command() -> None:
    """Name folders, describe them, and show them to assistants."""


@command.command()
@_name
@click.option("--description", "-d", required=True, metavar="TEXT", help="What the documents are about.")
@click.option("--source", "-s", required=True, type=PATH, metavar="DIR", help="The folder.")
@click.option("--include", multiple=True, metavar="GLOB", help="Only these files; may be repeated.")
@click.option("--exclude", multiple=True, metavar="GLOB", help="Not these files; may be repeated.")
@shared
def add(
    name: str, description: str, source: Path, include: Sequence[str], exclude: Sequence[str], **options: Any
) -> None:
    """Register a folder under a name; `bunko import` then brings its documents in.

    \b
    Example:
      bunko tool add -n api-docs -d "API documentation for user authentication" -s ./docs/api
    """
    asked = chosen(options)
    from bunko import catalog

    with asked.open() as library:
        tool = catalog.add(library.store, name, description, source, include=include, exclude=exclude)
        files = library.preview(tool)
        next_step = f"Bring them in with: bunko import -n {name}"
        _told(asked, tool, f"Added {name}: {files} files to import. {next_step}", files=files)


@command.command()
@_name
@click.option("--description", "-d", metavar="TEXT", help="A new description.")
@click.option("--source", "-s", type=PATH, metavar="DIR", help="Another folder.")
@shared
def update(name: str, description: str | None, source: Path | None, **options: Any) -> None:
    """Change a tool's description or folder.

    \b
    Example:
      bunko tool update -n api-docs -d "How users sign in, and what the API answers"
    """
    asked = chosen(options)
    from bunko import catalog

    if description is None and source is None:
        raise click.UsageError("Give --description or --source.")
    with _existing(asked) as library:
        tool = catalog.update(library.store, name, description=description, source=source)
        after = f" Its documents follow with: bunko import -n {name} --mode update" if source is not None else ""
        _told(asked, tool, f"Updated {name}.{after}")


@command.command()
@_name
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@shared
def delete(name: str, yes: bool, **options: Any) -> None:
    """Remove a tool and its index; the folder is left alone.

    \b
    Example:
      bunko tool delete -n api-docs
    """
    asked = chosen(options)
    from bunko import catalog

    with _existing(asked) as library:
        tool = catalog.named(library.store, name)
        totals = library.store.totals(tool.id)
        lost = f"{totals.documents} documents and {totals.chunks} chunks of its index"
        if not yes:
            question = f"Delete {name}? {lost} will be lost; the files in {tool.source} stay."
            if not click.confirm(question, err=True):
                raise click.ClickException("Nothing was deleted.")
        library.delete_tool(name, waiting=say)
        _told(asked, tool, f"Deleted {name}: {lost}.")


@command.command()
@_name
@shared
def enable(name: str, **options: Any) -> None:
    """Show a tool to assistants.

    \b
    Example:
      bunko tool enable -n api-docs
    """
    _activate(chosen(options), name, active=True)


@command.command()
@_name
@shared
def disable(name: str, **options: Any) -> None:
    """Hide a tool from assistants; its index stays.

    \b
    Example:
      bunko tool disable -n api-docs
    """
    _activate(chosen(options), name, active=False)


@command.command(name="ls")
@click.option("--all", "everything", is_flag=True, help="All tools with what they are, not only active ones.")
@click.option("--format", "form", type=click.Choice(["json", "table"]), help="How to print them.")
@shared
def ls(everything: bool, form: str | None, **options: Any) -> None:
    """List tools.

    \b
    Example:
      bunko tool ls --all
    """
    asked = chosen(options)
    with _existing(asked) as library:
        tools = [tool for tool in library.tools() if everything or tool.active]
        form = "json" if asked.as_json else form
        if form is None and not everything:
            for tool in tools:
                click.echo(tool.name)
            return
        if (form or library.settings.display.default_format) == "json":
            print_json([described(tool) for tool in tools])
        elif is_terminal():
            from bunko.interfaces.cli.show import tools as show

            show(tools)
        else:
            for tool in tools:
                state = "active" if tool.active else "disabled"
                click.echo(f"{tool.name}\t{state}\t{tool.source}\t{tool.description}")


def described(tool: Tool) -> dict[str, Any]:
    """Return a tool as a plain dictionary."""
    return {
        "name": tool.name,
        "kind": tool.kind,
        "description": tool.description,
        "source": tool.source,
        "active": tool.active,
        "created_at": tool.created_at,
        "last_import": tool.imported_at,
        **tool.options,
    }


def _activate(asked: Chosen, name: str, *, active: bool) -> None:
    from bunko import catalog

    with _existing(asked) as library:
        tool = catalog.activate(library.store, name, active=active)
        _told(asked, tool, f"{'Enabled' if active else 'Disabled'} {name}.")


def _existing(asked: Chosen) -> Library:
    return asked.open(create=asked.docs_dir is not None)


def _told(asked: Chosen, tool: Tool, sentence: str, **more: Any) -> None:
    if asked.as_json:
        print_json(described(tool) | more)
    else:
        click.echo(sentence)
