"""The `bunko init-test-db` command: create a persistent library for evaluations."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from bunko.interfaces.cli.options import (
    PATH,
    pop_shared_options,
    print_json,
    print_stderr,
    replace_controls,
    shared_options,
)


@click.command("init-test-db")
@click.option("--chunk-size", type=click.IntRange(1), required=True, metavar="N", help="Maximum characters per chunk.")
@click.option(
    "--chunk-overlap",
    type=click.IntRange(0),
    required=True,
    metavar="N",
    help="Characters shared by neighbouring chunks.",
)
@click.option("--persist-dir", type=PATH, metavar="DIR", help="Folder of the library. [.tmp/test_chroma_db]")
@click.option(
    "--fixture",
    type=PATH,
    metavar="FILE",
    help="Test documents. [tests/fixtures/rag_test_documents.json, or the built-in ones]",
)
@shared_options
def command(
    chunk_size: int, chunk_overlap: int, persist_dir: Path | None, fixture: Path | None, **options: Any
) -> None:
    """Create a library of test documents for bunko evaluate.

    \b
    Example:
      bunko init-test-db --chunk-size 200 --chunk-overlap 30 --fixture documents.json
    """
    shared = pop_shared_options(options)
    shared.configure_logging()
    from bunko.evaluation import files
    from bunko.evaluation.eval_library import judged_library
    from bunko.evaluation.overrides import chunk_size_overrides
    from bunko.interfaces.cli.evaluation_output import show_evaluation_progress

    notices: list[str] = []
    documents = files.find_documents(fixture, notices)
    flags = chunk_size_overrides(chunk_size, chunk_overlap)
    settings = shared.load_settings(flags).settings
    folder = persist_dir or files.PERSIST_DIR
    with (
        show_evaluation_progress() as observer,
        judged_library(
            documents,
            settings,
            persist_dir=folder,
            observer=observer.for_step("Importing"),
        ) as library,
    ):
        totals = library.status().tools[0].totals
    for notice in notices:
        print_stderr(notice)
    if shared.as_json:
        print_json({"library": str(folder), "documents": totals.documents, "chunks": totals.chunks})
    else:
        click.echo(replace_controls(f"Wrote {folder}: {totals.documents} documents, {totals.chunks} chunks."))
