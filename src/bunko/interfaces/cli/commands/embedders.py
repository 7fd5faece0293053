"""The `bunko embedders` commands: list the embedding providers, or test one."""

from __future__ import annotations

import click

from bunko.embedders.names import display_name
from bunko.interfaces.cli import terminal
from bunko.interfaces.cli.command_group import CommandGroup
from bunko.interfaces.cli.options import SharedOptions, shared_options
from bunko.interfaces.cli.terminal.columns import Column, number, print_rows
from bunko.interfaces.cli.terminal.printing import is_terminal, print_json, print_stderr, replace_controls
from bunko.interfaces.serialize_state import EmbedderFields
from bunko.library.admin.provider_status import (
    ENGLISH_SENTENCE,
    JAPANESE_SENTENCE,
    OTHER_SENTENCE,
    provider_statuses,
    try_embedder,
)
from bunko.messages import translate

_COLUMNS = ("embedder", "state", "model", "install", "key", "description")


@click.group(name="embedders", cls=CommandGroup, invoke_without_command=True)
@shared_options
@click.pass_context
def command(ctx: click.Context, /, shared: SharedOptions) -> None:
    """List the embedders and what each one needs, or test one.

    Listing embeds no text, loads no model and costs nothing: it looks for packages and keys, and asks servers that
    need no key for their models.

    \b
    Example:
      bunko embedders
      bunko embedders test gemini
    """
    if ctx.invoked_subcommand is not None:
        ctx.obj = shared
        return

    statuses = provider_statuses(shared.load_all_settings().settings)
    if shared.as_json:
        print_json({"embedders": [EmbedderFields.fill(status) for status in statuses]})
        return
    if is_terminal():
        terminal.render.show_providers(statuses)
        return
    click.echo("\t".join(map(translate, _COLUMNS)))
    for status in statuses:
        state, description = translate(status.state), translate(status.description)
        row = status.name, state, status.model, status.install_command, status.key_name, description
        click.echo("\t".join(replace_controls(" ".join(cell.split())) for cell in row))


@command.command()
@click.argument("name", required=False)
@shared_options
@click.pass_obj
def test(group_options: SharedOptions, /, name: str | None, shared: SharedOptions) -> None:
    """Embed three sentences with a provider and compare them.

    Two sentences mean the same in Japanese and English, the third means something else. A model that knows both
    languages rates the first two as most similar. Without NAME, the provider in use is tested. A remote provider is
    called once, which may cost a little.

    \b
    Example:
      bunko embedders test
      bunko embedders test openai --json
    """
    for option in ("library", "database", "docs_dir", "data_dir", "config"):
        if getattr(shared, option) is None:
            setattr(shared, option, getattr(group_options, option))
    shared.configure_logging()
    settings = shared.load_all_settings().settings
    trial = try_embedder(settings, name or settings.embedding.provider)
    if shared.as_json or group_options.as_json:
        print_json(
            {
                "name": trial.name,
                "dimension": trial.size,
                "seconds": round(trial.seconds, 4),
                "sentences": [JAPANESE_SENTENCE, ENGLISH_SENTENCE, OTHER_SENTENCE],
                "same_meaning": round(trial.same_meaning, 4),
                "other_meaning": [round(similarity, 4) for similarity in trial.other_meaning],
            }
        )
        return
    rows = [
        (f"{trial.same_meaning:.3f}", JAPANESE_SENTENCE, ENGLISH_SENTENCE),
        (f"{trial.other_meaning[0]:.3f}", JAPANESE_SENTENCE, OTHER_SENTENCE),
        (f"{trial.other_meaning[1]:.3f}", ENGLISH_SENTENCE, OTHER_SENTENCE),
    ]
    facts = translate(f"{trial.size} dimensions, {trial.seconds * 1000:.0f} ms")
    title = f"{replace_controls(display_name(trial.name))}: {facts}"
    columns = (number("similarity"), Column("first sentence", "wrap"), Column("second sentence", "wrap"))
    if not is_terminal():
        click.echo(title)
    print_rows(columns, rows, plain=rows, title=title)
    if trial.same_meaning <= max(trial.other_meaning):
        print_stderr(
            "The two sentences with the same meaning are not the most similar:"
            " this model does not know both languages well enough."
        )
