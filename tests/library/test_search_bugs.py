"""A bug of ours in a search is neither hidden nor taken for a damaged index."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import bunko
from bunko.protocols import DocumentStore


class FailsOnce:
    """The documents of a store, whose chunks cannot be read the first time because of a bug."""

    def __init__(self, documents: DocumentStore, error: Exception) -> None:
        self._documents, self._errors = documents, [error]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._documents, name)

    def chunks(self, ids: Sequence[int], **options: Any) -> Any:
        if self._errors:
            raise self._errors.pop()
        return self._documents.chunks(ids, **options)


@pytest.mark.parametrize("error", [KeyError("chunk"), IndexError("list index out of range"), ValueError("no number")])
def test_a_bug_in_a_search_is_raised_also_where_an_index_file_is_damaged(error: Exception, tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "note.md").write_text("The garden in Kyoto.\n")
    with bunko.open(docs, environ={}, embedding_provider="none") as library:
        assert library.search("garden").hits
        [file] = (docs / ".rag-index").rglob("*.segment")
        file.unlink()  # the library has mapped it
        file.write_bytes(b"not an index")
        library.store.documents = FailsOnce(library.store.documents, error)
        with pytest.raises(type(error)) as raised:
            library.search("garden")
        assert raised.value is error
        assert file.read_bytes() == b"not an index"  # nothing was rebuilt on account of a bug
        assert library.search("garden").hits
