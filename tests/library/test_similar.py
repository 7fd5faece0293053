"""Documents that are like another one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import Opener

TEXTS = {
    "backup.md": "# Backups\n\nBackups of the database are kept for 35 days. A backup takes two hours.",
    "restore.md": "# Restoring\n\nRestoring a backup of the database takes an hour. Backups are kept for 35 days.",
    "bread.md": "# Bread\n\nKnead the dough and let it rise. Bake the bread until its crust is brown.",
    "rolls.md": "# Rolls\n\nBake the rolls of bread dough until the crust is brown, after the dough did rise.",
}


@pytest.fixture
def texts(docs: Path) -> None:
    for name, text in TEXTS.items():
        (docs / name).write_text(text, "utf-8")


@pytest.mark.parametrize("provider", ["static", "none"])
@pytest.mark.usefixtures("texts")
def test_the_nearest_document_comes_first_and_never_the_one_itself(open_docs: Opener, provider: str) -> None:
    library = open_docs(BUNKO_EMBEDDING_PROVIDER=provider)
    library.reindex()
    (tool,) = library.searches.tools()
    for name, nearest in (("backup.md", "restore.md"), ("restore.md", "backup.md"), ("bread.md", "rolls.md")):
        hits = library.searches.similar(tool, name)
        assert hits[0].uri == nearest
        assert name not in [hit.uri for hit in hits]
        assert len({hit.uri for hit in hits}) == len(hits)
    assert len(library.searches.similar(tool, "bread.md", limit=1)) == 1
    assert library.searches.similar(tool, "gone.md") == []
