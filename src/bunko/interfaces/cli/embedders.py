"""`bunko embedders`: the settings in, what can make vectors and what each lacks out; or what one makes of sentences."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from bunko.interfaces.cli.options import (
    SharedOptions,
    is_terminal,
    pop_shared_options,
    print_json,
    print_stderr,
    replace_controls,
    shared_options,
)

if TYPE_CHECKING:
    from bunko.settings import Settings

_COLUMNS = ("embedder", "state", "model", "install", "key", "what it is")


@click.group(name="embedders", invoke_without_command=True)
@shared_options
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
    asked = pop_shared_options(options)
    if ctx.invoked_subcommand is not None:
        ctx.obj = asked
        return

    from bunko.library.embedder_status import provider_statuses

    found = provider_statuses(_load_settings(asked))
    if asked.as_json:
        print_json(
            {
                "embedders": [
                    {
                        "name": one.name,
                        "about": one.description,
                        "in_use": one.is_used,
                        "ready": not one.unavailable_reason,
                        "missing": one.unavailable_reason,
                        "model": one.model,
                        "install": one.install_command,
                        "key": one.key_name,
                        "remote": one.is_remote,
                    }
                    for one in found
                ]
            }
        )
        return
    rows = [(one.name, one.state, one.model, one.install_command, one.key_name, one.description) for one in found]
    if is_terminal():
        from bunko.interfaces.cli.render import show_table

        show_table(_COLUMNS, rows)
    else:
        click.echo("\t".join(_COLUMNS))
        for row in rows:
            click.echo("\t".join(replace_controls(" ".join(cell.split())) for cell in row))


@command.command()
@click.argument("name", required=False)
@shared_options
@click.pass_obj
def test(group_options: SharedOptions, /, name: str | None, **options: Any) -> None:
    """Let an embedder, or the one in use, make vectors of three sentences, and compare them.

    One says the same in Japanese and English, the third something else. A model that knows both languages finds the
    first two nearer to each other. A remote one is asked once, which may cost a little.

    \b
    Example:
      bunko embedders test
      bunko embedders test openai --json
    """
    asked = pop_shared_options(options)
    for option in ("library", "database", "docs_dir", "data_dir", "config"):
        if getattr(asked, option) is None:
            setattr(asked, option, getattr(group_options, option))
    from bunko.library import embedder_status

    asked.configure_logging()
    settings = _load_settings(asked)
    name = name or settings.embedding.provider
    found = embedder_status.try_embedder(settings, name)
    if asked.as_json or group_options.as_json:
        print_json(
            {
                "name": found.name,
                "dimension": found.size,
                "seconds": round(found.seconds, 4),
                "sentences": [
                    embedder_status.JAPANESE_SENTENCE,
                    embedder_status.ENGLISH_SENTENCE,
                    embedder_status.OTHER_SENTENCE,
                ],
                "same_meaning": round(found.same_meaning, 4),
                "other_meaning": [round(one, 4) for one in found.other_meaning],
            }
        )
        return
    rows = [
        (f"{found.same_meaning:.3f}", embedder_status.JAPANESE_SENTENCE, embedder_status.ENGLISH_SENTENCE),
        (f"{found.other_meaning[0]:.3f}", embedder_status.JAPANESE_SENTENCE, embedder_status.OTHER_SENTENCE),
        (f"{found.other_meaning[1]:.3f}", embedder_status.ENGLISH_SENTENCE, embedder_status.OTHER_SENTENCE),
    ]
    head = f"{replace_controls(found.name)}: {found.size} dimensions, {found.seconds * 1000:.0f} ms"
    if is_terminal():
        from bunko.interfaces.cli.render import show_table

        show_table(("similarity", "sentence", "and"), rows, title=head, number_columns=("similarity",))
    else:
        click.echo(head)
        for row in rows:
            click.echo("\t".join(row))
    if found.same_meaning <= max(found.other_meaning):
        print_stderr("It does not put the two that mean the same together: it knows one of the languages too little.")


def _load_settings(shared: SharedOptions) -> Settings:
    from bunko.library.open import load_library_settings

    loaded = load_library_settings(shared.library_paths(), environ=os.environ, config=shared.config)
    for notice in loaded.notices:
        print_stderr(notice)
    return loaded.settings
