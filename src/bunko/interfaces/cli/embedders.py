"""`bunko embedders`: the settings in, what can make vectors and what each lacks out; or what one makes of sentences."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from bunko.interfaces.cli.options import Chosen, chosen, is_terminal, print_json, say, shared, visible

if TYPE_CHECKING:
    from bunko.settings import Settings

_COLUMNS = ("embedder", "state", "model", "install", "key", "what it is")


@click.group(name="embedders", invoke_without_command=True)
@shared
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> None:
    """List what can make vectors, what each lacks, and try one.

    Nothing is embedded, loaded or paid for by the list: packages and keys are looked for, and servers that need no key
    are asked for their models.

    \b
    Example:
      bunko embedders
      bunko embedders test gemini
    """
    asked = chosen(options)
    if ctx.invoked_subcommand is not None:
        ctx.obj = asked
        return

    from bunko.library.embedder_status import providers

    found = providers(_settings(asked))
    if asked.as_json:
        print_json(
            {
                "embedders": [
                    {
                        "name": one.name,
                        "about": one.about,
                        "in_use": one.is_used,
                        "ready": not one.missing,
                        "missing": one.missing,
                        "model": one.model,
                        "install": one.install,
                        "key": one.key,
                        "remote": one.is_remote,
                    }
                    for one in found
                ]
            }
        )
        return
    rows = [(one.name, one.state, one.model, one.install, one.key, one.about) for one in found]
    if is_terminal():
        from bunko.interfaces.cli.render import table

        table(_COLUMNS, rows)
    else:
        click.echo("\t".join(_COLUMNS))
        for row in rows:
            click.echo("\t".join(visible(" ".join(cell.split())) for cell in row))


@command.command()
@click.argument("name", required=False)
@shared
@click.pass_obj
def test(before: Chosen, /, name: str | None, **options: Any) -> None:
    """Let an embedder, or the one in use, make vectors of three sentences, and compare them.

    One says the same in Japanese and English, the third something else. A model that knows both languages finds the
    first two nearer to each other. A remote one is asked once, which may cost a little.

    \b
    Example:
      bunko embedders test
      bunko embedders test openai --json
    """
    asked = chosen(options)
    for option in ("library", "database", "docs_dir", "data_dir", "config"):
        if getattr(asked, option) is None:
            setattr(asked, option, getattr(before, option))
    from bunko.library import embedder_status

    asked.log()
    settings = _settings(asked)
    name = name or settings.embedding.provider
    found = embedder_status.trial(settings, name)
    if asked.as_json or before.as_json:
        print_json(
            {
                "name": found.name,
                "dimension": found.size,
                "seconds": round(found.seconds, 4),
                "sentences": [embedder_status.JAPANESE, embedder_status.ENGLISH, embedder_status.OTHER],
                "same_meaning": round(found.same, 4),
                "other_meaning": [round(one, 4) for one in found.others],
            }
        )
        return
    rows = [
        (f"{found.same:.3f}", embedder_status.JAPANESE, embedder_status.ENGLISH),
        (f"{found.others[0]:.3f}", embedder_status.JAPANESE, embedder_status.OTHER),
        (f"{found.others[1]:.3f}", embedder_status.ENGLISH, embedder_status.OTHER),
    ]
    head = f"{visible(found.name)}: {found.size} dimensions, {found.seconds * 1000:.0f} ms"
    if is_terminal():
        from bunko.interfaces.cli.render import table

        table(("similarity", "sentence", "and"), rows, title=head, numbers=("similarity",))
    else:
        click.echo(head)
        for row in rows:
            click.echo("\t".join(row))
    if found.same <= max(found.others):
        say("It does not put the two that mean the same together: it knows one of the languages too little.")


def _settings(asked: Chosen) -> Settings:
    from bunko.library.open import settings_for

    loaded = settings_for(asked.home(), environ=os.environ, config=asked.config)
    for notice in loaded.notices:
        say(notice)
    return loaded.settings
