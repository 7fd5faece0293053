"""`bunko init-test-db`: a file of documents in, a kept library for evaluations out."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from bunko.interfaces.cli.options import PATH, chosen, print_json, shared, visible


@click.command("init-test-db")
@click.option("--chunk-size", type=click.IntRange(1), required=True, metavar="N", help="Most characters in a chunk.")
@click.option(
    "--chunk-overlap", type=click.IntRange(0), required=True, metavar="N", help="Characters that neighbours share."
)
@click.option("--persist-dir", type=PATH, metavar="DIR", help="Where the library goes. [.tmp/test_chroma_db]")
@click.option(
    "--fixture", type=PATH, metavar="FILE", help="The documents. [tests/fixtures/rag_test_documents.json, or ours]"
)
@shared
def command(
    chunk_size: int, chunk_overlap: int, persist_dir: Path | None, fixture: Path | None, **options: Any
) -> None:
    """Keep a library of judged documents, for bunko evaluate.

    \b
    Example:
      bunko init-test-db --chunk-size 200 --chunk-overlap 30 --fixture documents.json
    """
    asked = chosen(options)
    asked.log()
    from bunko.evaluation import files
    from bunko.evaluation.eval_library import holding
    from bunko.evaluation.overrides import cutting
    from bunko.interfaces.cli.evaluation_output import watching
    from bunko.library.open import settings_for

    documents = files.documents(fixture)
    flags = cutting(chunk_size, chunk_overlap)
    settings = settings_for(asked.home(), environ=os.environ, flags=flags, config=asked.config).settings
    folder = persist_dir or files.PERSIST
    with (
        watching() as watch,
        holding(
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
        click.echo(visible(f"{folder} holds {totals.documents} documents in {totals.chunks} chunks."))
