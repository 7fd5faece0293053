"""The check of a library by sentences of its own texts: near duplicates are no failure, a dead search is one."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bunko import indexes
from bunko.embedders import hashing
from bunko.indexes.embedded import codes
from bunko.indexes.embedded.view import EmbeddedView
from bunko.library.admin import doctor
from bunko.library.open import open_library
from bunko.library.opening.paths import locate_library
from bunko.types import Tool
from tests.conftest import Opener

if TYPE_CHECKING:
    from bunko.types import Vectors


def test_notes_that_differ_in_a_few_figures_are_no_dead_search(docs: Path, open_docs: Opener) -> None:
    for number in range(500):
        (docs / f"{number:04}.md").write_text(
            f"# 顧客カード\n\n氏名: 顧客{number}\n\n電話番号: 03-{number:04}-{number * 37 % 10000:04}\n\n"
            f"住所: 東京都千代田区{number % 9 + 1}-{number % 20 + 1}-{number % 15 + 1}\n\n備考: 特になし\n",
            encoding="utf-8",
        )
    library = open_docs()
    assert library.reindex().notices == []
    findings = library.maintenance.diagnose()
    assert "Japanese, semantic" in {finding.message.partition(":")[0] for finding in findings}
    assert [finding.message for finding in findings if finding.state != "ok"] == []


class _Reversed(hashing.Hashing):
    """An embedder whose queries point away from the texts that answer them."""

    def embed(self, texts: Sequence[str], *, query: bool = False) -> Vectors:
        vectors = super().embed(texts, query=query)
        return -vectors if query else vectors


def test_a_search_that_finds_other_texts_is_still_reported(docs: Path, open_docs: Opener) -> None:
    numbers = random.Random(1)
    for number in range(60):
        text = "。".join(
            "".join(chr(numbers.randrange(0x4E00, 0x8000)) for _ in range(12)) + "のこと" for _ in range(3)
        )
        (docs / f"{number}.md").write_text(f"# {number}\n\n{text}\n", encoding="utf-8")
    library = open_docs(EMBEDDING_PROVIDER="hashing")
    library.reindex()
    (tool,) = library.tools()
    embedder = library.embedder_of(tool)
    assert embedder is not None
    with library.store.read_transaction():
        view = indexes.build("embedded", library.store, None).sync(tool.id)
        findings = doctor.check_search(library.store, view, tool, _Reversed(embedder.size))
    states = {finding.message.partition(":")[0]: finding.state for finding in findings}
    assert states == {"Japanese, bm25": "ok", "Japanese, semantic": "error", "Japanese, hybrid": "ok"}


def test_a_vanished_folder_and_a_tool_without_documents_are_warnings_that_name_the_next_command(
    docs: Path, tmp_path: Path
) -> None:
    empty, place = tmp_path / "empty", tmp_path / "library"
    empty.mkdir()
    (docs / "寺.md").write_text("# 京都の寺\n\n秋の京都で寺の庭を巡った日の記録です。\n", encoding="utf-8")
    with open_library(locate_library(library=place, environ={}), environ={}) as library:
        library.tools.add("notes", "旅行の記録", docs)
        library.tools.add("later", "Not yet", empty)
        library.import_tools(["notes"], "new")
        docs.rename(tmp_path / "moved")
        warnings = {
            finding.subject: finding for finding in library.maintenance.diagnose() if finding.state == "warning"
        }
    assert warnings["notes"].message == f"its source {docs} is missing; the index is kept"
    assert warnings["notes"].hint.endswith(f"bunko tool update -n notes -s PATH --library {place}")
    assert warnings["later"].hint == f"Import them with: bunko import -n later --library {place}"


def test_the_share_of_nearest_chunks_that_vectors_find_in_a_large_library_is_reported(
    docs: Path, open_docs: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("BYTE_ROWS", "PLANE_ROWS"):
        monkeypatch.setattr(codes, name, 50)
    for number in range(120):
        (docs / f"{number}.md").write_text(
            f"# 記録 {number}\n\n第{number}回の観測では {number * 37} 件を数えた。\n", encoding="utf-8"
        )
    library = open_docs(EMBEDDING_PROVIDER="hashing")
    library.reindex()
    messages = {finding.message: finding.state for finding in library.maintenance.diagnose()}
    assert messages["vectors find 300 of 300 nearest chunks"] == "ok"


def test_vectors_that_miss_many_nearest_chunks_are_a_warning() -> None:
    class View(EmbeddedView):
        def sampled_recall(self, k: int, sample_count: int) -> tuple[int, int]:
            return k * sample_count // 2, k * sample_count

    [finding] = doctor.check_vectors(View([], 0), Tool("docs"))
    assert (finding.state, finding.message) == ("warning", "vectors find 150 of 300 nearest chunks")
    assert doctor.check_vectors(EmbeddedView([], 0), Tool("docs")) == []
