"""The `bunko models` commands: list local models that are known to be good, get one, or remove it."""

from __future__ import annotations

import click

from bunko.interfaces.cli.command_group import CommandGroup
from bunko.interfaces.cli.options import SharedOptions, shared_options
from bunko.interfaces.cli.terminal.columns import Column, number, print_rows
from bunko.interfaces.cli.terminal.printing import is_terminal, print_json, print_stderr, replace_controls
from bunko.interfaces.cli.terminal.progress import show_download
from bunko.interfaces.serialize_state import ModelFields
from bunko.library.admin.model_status import delete_model, get_model, model_statuses, naming_setting
from bunko.local_models.catalogue import find_model
from bunko.messages import translate

_MEGABYTE = 1_000_000


@click.group(name="models", cls=CommandGroup, invoke_without_command=True)
@shared_options
@click.pass_context
def command(ctx: click.Context, /, shared: SharedOptions) -> None:
    """List good local models, and get or remove one.

    Listing loads no model and asks nobody. An embedder computes the vectors of texts: set embedding.provider to onnx
    and embedding.model to its name. A reranker puts the first results in order: set search.reranker to its name.

    \b
    Example:
      bunko models
      bunko models get ruri-v3-30m
      bunko models remove ruri-v3-30m
    """
    if ctx.invoked_subcommand is None:
        _print_models(shared, as_json=shared.as_json)
    ctx.obj = shared


@command.command(name="list")
@shared_options
@click.pass_obj
def list_models(group_options: SharedOptions, /, shared: SharedOptions) -> None:
    """List good local models, which are here, and which are in use.

    \b
    Example:
      bunko models list --json
    """
    _print_models(shared, as_json=shared.as_json or group_options.as_json)


@command.command()
@click.argument("name")
@shared_options
@click.pass_obj
def get(group_options: SharedOptions, /, name: str, shared: SharedOptions) -> None:
    """Download a model from the Hugging Face Hub, or check one that is here.

    NAME is one of the list, or OWNER/NAME of another model on the hub that has an ONNX file. A download that was
    interrupted continues where it stopped, and every file must have the checksum that the hub names. HF_ENDPOINT,
    HF_HOME, HF_HUB_OFFLINE, HF_TOKEN and the proxy of the environment are respected.

    \b
    Example:
      bunko models get ruri-v3-30m
      bunko models get japanese-reranker-xsmall-v2
    """
    with show_download() as progress:
        files = get_model(name, progress)
    if shared.as_json or group_options.as_json:
        entries = [
            {"repository": file.repo, "file": file.name, "path": str(file.path), "bytes": file.bytes,
             "checksum": file.digest}
            for file in files
        ]  # fmt: skip
        print_json({"name": name, "files": entries, "bytes": sum(file.bytes for file in files)})
        return
    megabytes = sum(file.bytes for file in files) / _MEGABYTE
    click.echo(translate(f"{replace_controls(name)} is here: {len(files)} files, {megabytes:.1f} MB"))
    model = find_model(name)
    if model is None:
        return
    is_reranker = model.purpose == "reranker"
    section = "search" if is_reranker else "embedding"
    click.echo(
        translate(f"To use it, write this into the section [{section}] of bunko.toml, which bunko init creates:")
    )
    click.echo(f'  reranker = "{model.name}"' if is_reranker else f'  provider = "onnx"\n  model = "{model.name}"')
    if not is_reranker:
        click.echo(translate("Then compute the vectors of your documents again: bunko reembed --all"))


@command.command()
@click.argument("name")
@shared_options
@click.pass_obj
def remove(group_options: SharedOptions, /, name: str, shared: SharedOptions) -> None:
    """Remove a model from this machine.

    The cache of the hub belongs to other programs too: what they downloaded stays.

    \b
    Example:
      bunko models remove ruri-v3-30m
    """
    setting = naming_setting(shared.load_settings(all_providers=True).settings, name)
    freed = delete_model(name)
    if freed and setting:
        print_stderr(f"{setting} still names {replace_controls(name)}. Change it, or get the model again.")
    if shared.as_json or group_options.as_json:
        print_json({"name": name, "removed": freed > 0, "bytes": freed})
    elif freed:
        click.echo(translate(f"Removed {replace_controls(name)}: {freed / _MEGABYTE:.1f} MB are free again"))
    else:
        print_stderr(f"{replace_controls(name)} is not on this machine.")


def _print_models(shared: SharedOptions, *, as_json: bool) -> None:
    statuses = model_statuses(shared.load_all_settings().settings)
    if as_json:
        models = [ModelFields.fill(status) | {"path": str(status.onnx_path or "")} for status in statuses]
        print_json({"models": models})
        return
    columns = (
        Column("model", "keep", min_width=20),
        Column("purpose", priority=2),
        Column("state", "keep"),
        number("size"),
        Column("languages", priority=3),
        Column("licence", priority=3),
        Column("description", "wrap", priority=4, min_width=30),
    )
    rows = [
        (
            status.model.name,
            translate(status.model.purpose),
            translate(status.state),
            f"{status.model.megabytes:,} MB" if status.model.megabytes else "",
            ", ".join(status.model.languages),
            status.model.licence,
            translate(status.model.summary),
        )
        for status in statuses
    ]
    print_rows(columns, rows, plain=rows, header=[column.name for column in columns])
    if is_terminal():
        click.echo(translate("Get one with: bunko models get NAME"))
