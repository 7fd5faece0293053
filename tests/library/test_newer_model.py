"""A library whose vectors an earlier version of the bundled model computed."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from bunko.embedders import static
from tests.conftest import Run


def test_a_library_with_vectors_of_an_earlier_model_says_how_to_compute_them_again(
    tmp_path: Path, docs: Path, run: Run
) -> None:
    (docs / "a.md").write_text("# 望遠鏡\n\n鏡を柔らかい布で磨く。\n", encoding="utf-8")
    library = tmp_path / "library"
    run("add", docs, "--library", library)
    with sqlite3.connect(library / "library.db") as connection:
        connection.execute("UPDATE tools SET built = replace(built, ?, 'static:0:')", (f"{static.build().label}:",))
    connection.close()
    ran = run("search", "鏡", "--library", library)
    assert ran.code == 0
    assert "the model static is newer than its vectors. Compute them again: bunko reembed -n docs" in ran.err
    run("reembed", "-n", "docs", "--library", library)
    assert "newer" not in run("search", "鏡", "--library", library).err
