"""`bunko init-test-db`: a file of documents in, a kept library for evaluations out."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from bunko.interfaces.cli.options import PATH, pop_shared_options, print_json, replace_controls, shared_options


@click.command("init-test-db")
@click.option("--chunk-size", type=click.IntRange(1), required=True, metavar="N", help="Most characters in a chunk.")
@click.option(
    "--chunk-overlap", type=click.IntRange(0), required=True, metavar="N", help="Characters that neighbours share."
)
@click.option("--persist-dir", type=PATH, metavar="DIR", help="Where the library goes. [.tmp/test_chroma_db]")
@click.option(
    "--fixture", type=PATH, metavar="FILE", help="The documents. [tests/fixtures/rag_test_documents.json, or ours]"
)
@shared_options
def command(
    chunk_size: int, chunk_overlap: int, persist_dir: Path | None, fixture: Path | None, **options: Any
) -> None:
    """Keep a library of judged documents, for bunko evaluate.

    \b
    Example:
      bunko init-test-db --chunk-size 200 --chunk-overlap 30 --fixture documents.json
    """
    asked = pop_shared_options(options)
    asked.configure_logging()
    from bunko.evaluation import files
    from bunko.evaluation.eval_library import judged_library
    from bunko.evaluation.overrides import chunk_size_overrides
    from bunko.interfaces.cli.evaluation_output import show_evaluation_progress
    from bunko.library.open import load_library_settings

    documents = files.find_documents(fixture)
    flags = chunk_size_overrides(chunk_size, chunk_overlap)
    settings = load_library_settings(
        asked.library_paths(), environ=os.environ, flags=flags, config=asked.config
    ).settings
    folder = persist_dir or files.PERSIST_DIR
    with (
        show_evaluation_progress() as watch,
        judged_library(
            documents,
            settings,
            persist_dir=folder,
            progress=lambda done: watch("Importing", done.files, done.total_files),
        ) as library,
    ):
        totals = library.status().tools[0].totals
    if asked.as_json:
        print_json({"library": str(folder), "documents": totals.documents, "chunks": totals.chunks})
    else:
        click.echo(replace_controls(f"{folder} holds {totals.documents} documents in {totals.chunks} chunks."))
