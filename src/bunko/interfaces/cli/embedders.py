"""The `bunko embedders` commands: list the embedding providers, or test one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from bunko.embedders.names import display_name
from bunko.interfaces.cli.help_formatter import CommandGroup
from bunko.interfaces.cli.language import translate
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
    from bunko.library.embedder_status import EmbedderTrial
    from bunko.settings import Settings

_COLUMNS = ("embedder", "state", "model", "install", "key", "description")


@click.group(name="embedders", cls=CommandGroup, invoke_without_command=True)
@shared_options
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> None:
    """List the embedders and what each one needs, or test one.

    Listing embeds no text, loads no model and costs nothing: it looks for packages and keys, and asks servers that
    need no key for their models.

    \b
    Example:
      bunko embedders
      bunko embedders test gemini
    """
    shared = pop_shared_options(options)
    if ctx.invoked_subcommand is not None:
        ctx.obj = shared
        return

    from bunko.interfaces.serialize_library import embedder_to_dict
    from bunko.library.embedder_status import provider_statuses

    statuses = provider_statuses(_load_settings(shared))
    if shared.as_json:
        print_json({"embedders": [embedder_to_dict(status) for status in statuses]})
        return
    if is_terminal():
        from bunko.interfaces.cli.render import show_providers

        show_providers(statuses)
        return
    click.echo("\t".join(_COLUMNS))
    for status in statuses:
        row = status.name, status.state, status.model, status.install_command, status.key_name, status.description
        click.echo("\t".join(replace_controls(" ".join(cell.split())) for cell in row))


@command.command()
@click.argument("name", required=False)
@shared_options
@click.pass_obj
def test(group_options: SharedOptions, /, name: str | None, **options: Any) -> None:
    """Embed three sentences with a provider and compare them.

    Two sentences mean the same in Japanese and English, the third means something else. A model that knows both
    languages rates the first two as most similar. Without NAME, the provider in use is tested. A remote provider is
    called once, which may cost a little.

    \b
    Example:
      bunko embedders test
      bunko embedders test openai --json
    """
    shared = pop_shared_options(options)
    for option in ("library", "database", "docs_dir", "data_dir", "config"):
        if getattr(shared, option) is None:
            setattr(shared, option, getattr(group_options, option))
    from bunko.library.embedder_status import try_embedder

    shared.configure_logging()
    settings = _load_settings(shared)
    trial = try_embedder(settings, name or settings.embedding.provider)
    if shared.as_json or group_options.as_json:
        print_json(_trial_to_dict(trial))
        return
    _print_trial(trial)
    if trial.same_meaning <= max(trial.other_meaning):
        print_stderr(
            "The two sentences with the same meaning are not the most similar:"
            " this model does not know both languages well enough."
        )


def _trial_to_dict(trial: EmbedderTrial) -> dict[str, Any]:
    from bunko.library.embedder_status import ENGLISH_SENTENCE, JAPANESE_SENTENCE, OTHER_SENTENCE

    return {
        "name": trial.name,
        "dimension": trial.size,
        "seconds": round(trial.seconds, 4),
        "sentences": [JAPANESE_SENTENCE, ENGLISH_SENTENCE, OTHER_SENTENCE],
        "same_meaning": round(trial.same_meaning, 4),
        "other_meaning": [round(similarity, 4) for similarity in trial.other_meaning],
    }


def _print_trial(trial: EmbedderTrial) -> None:
    from bunko.library.embedder_status import ENGLISH_SENTENCE, JAPANESE_SENTENCE, OTHER_SENTENCE

    rows = [
        (f"{trial.same_meaning:.3f}", JAPANESE_SENTENCE, ENGLISH_SENTENCE),
        (f"{trial.other_meaning[0]:.3f}", JAPANESE_SENTENCE, OTHER_SENTENCE),
        (f"{trial.other_meaning[1]:.3f}", ENGLISH_SENTENCE, OTHER_SENTENCE),
    ]
    facts = translate(f"{trial.size} dimensions, {trial.seconds * 1000:.0f} ms")
    title = f"{replace_controls(display_name(trial.name))}: {facts}"
    if is_terminal():
        from bunko.interfaces.cli.tables import Column, number, show_table

        columns = (number("similarity"), Column("first sentence", "wrap"), Column("second sentence", "wrap"))
        show_table(columns, rows, title=title)
    else:
        click.echo(title)
        for row in rows:
            click.echo("\t".join(row))


def _load_settings(shared: SharedOptions) -> Settings:
    loaded = shared.load_settings(all_providers=True)
    for notice in loaded.notices:
        print_stderr(notice)
    return loaded.settings
