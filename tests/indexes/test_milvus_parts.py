"""The parts of the Milvus index that need no Milvus."""

from __future__ import annotations

import itertools
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from bunko.errors import IndexFailure, SettingsError
from bunko.indexes.milvus.cards import Card, cards_of, contain_grams, count_words
from bunko.indexes.milvus.dimensions import FILLER_DIMENSION, KeyKind, dimensions, first_characters
from bunko.indexes.milvus.filters import date_number, filter_expression
from bunko.indexes.milvus.server import MilvusServer
from bunko.indexes.milvus.writer import StatisticsAccumulator
from bunko.indexes.options import MilvusOptions
from bunko.library.open import open_library
from bunko.library.opening.paths import paths_for_folder
from bunko.stores.filters import document_matcher
from bunko.text import ngrams
from bunko.types.records import Filter, SelectedDocuments, StoredChunk
from tests.conftest import Opener
from tests.library.test_library import put

KINDS: tuple[KeyKind, ...] = ("word", "gram", "character")


def test_dimensions_are_stable_spread_and_within_the_limits_of_milvus() -> None:
    keys = np.arange(200_000, dtype=np.uint64)
    for kind in KINDS:
        hashed = dimensions(keys, kind)
        assert hashed.min() > FILLER_DIMENSION
        assert hashed.max() < 2**32 - 1
        assert len(np.unique(hashed)) > 199_980, "about five pairs of 200,000 keys share a dimension by chance"
    assert not np.isin(dimensions(keys[:1000], "word"), dimensions(keys[:1000], "gram")).any()
    assert dimensions(np.array([1, 2**63 + 5], np.uint64), "word").tolist() == [3874419792, 1775035946]


def test_the_first_character_of_a_pair_is_the_start_of_its_key_range() -> None:
    starts = {ngrams.pair_key_range(character)[0] for character in "東京都"}
    assert starts <= set(first_characters(ngrams.gram_keys("東京都の寺")).tolist())


@pytest.mark.parametrize("has_vector", [True, False])
def test_a_card_is_read_as_it_was_written(has_vector: bool) -> None:
    keys, counts = np.array([9, 2**63 + 5, 4], np.uint64), np.array([1, 700, 3], np.uint16)
    vector = np.array([0.6, -0.8], np.float32) if has_vector else None
    sentences = np.array([1, 2, 15360, 8, 9], np.uint16) if has_vector else None
    chunk = StoredChunk(2**40, 7, 2**64 - 1, "京都の寺\n京都", keys, counts, vector, sentences)
    empty = StoredChunk(3, 8, 0, "", keys[:0], counts[:0], None)
    cards = cards_of([chunk, empty], 5, 12)
    assert [Card.unpack(card.chunk_id, card.pack()) for card in cards] == cards
    assert (cards[0].length, cards[0].document_id, cards[0].tiebreak_order) == (704, 7, 2**64 - 1)
    assert count_words(cards, dimensions(np.array([4, 2**63 + 5, 1], np.uint64), "word")).tolist() == [
        [3, 700, 0],
        [0] * 3,
    ]
    grams = dimensions(np.concatenate((ngrams.gram_keys("京都"), ngrams.gram_keys("奈良"))), "gram")
    present = contain_grams(cards, grams)
    assert present[0].tolist() == np.isin(grams, cards[0].dimensions()).tolist()
    assert (present[0].any(), present[0].all(), present[1].any()) == (True, False, False)
    assert cards[1].sparse_vector(100.0) == {FILLER_DIMENSION: pytest.approx(1e-6)}


def test_chunks_that_are_added_and_removed_leave_no_trace() -> None:
    accumulator = StatisticsAccumulator()
    vectors = np.eye(4, dtype="<f4")

    def card(number: int, length: int, word: int, grams: list[int]) -> Card:
        word_bytes, gram_bytes = (np.array(values, "<u4").tobytes() for values in ([word], grams))
        return Card(number, 1, 1, 1, 0, length, word_bytes, b"", gram_bytes, vectors[number].tobytes(), b"")

    first, second = card(0, 3, 5, [5, 7]), card(1, 2, 7, [9])
    accumulator.add([first, second], 4)
    assert dict(accumulator.changes()) == {5: 1, 7: 2, 9: 1}
    accumulator.add([second], 4, sign=-1)
    assert dict(accumulator.changes()) == {7: -1, 9: -1}
    statistics = accumulator.statistics(3)
    assert (statistics.generation, statistics.chunks, statistics.terms) == (3, 1, 3)
    accumulator.add([first], 4, sign=-1)
    assert (dict(accumulator.changes()), accumulator.statistics(4).vectors) == ({5: -1, 7: -1}, b"")


@pytest.mark.parametrize(
    ("where", "expression"),
    [
        (Filter(path="a/b/*.md"), 'path like "a/b/%"'),
        (Filter(path="*.md"), ""),
        (Filter(path="a_b/*"), ""),
        (Filter(path='a"b/*'), ""),
        (Filter(tags=("日記", "x")), 'ARRAY_CONTAINS_ALL(tags, ["日記", "x"])'),
        (Filter(tags=('"]) or id > 0 or ARRAY_CONTAINS_ALL(tags, ["',)), ""),
        (Filter(since="2024-01-01"), "(date == -1 or (date >= 20231230))"),
        (Filter(since="2024-02"), "(date == -1 or (date >= 20240130))"),
        (Filter(until="2024-02"), "(date == -1 or (date <= 20240304))"),
        (Filter(until="2024"), "(date == -1 or (date <= 20250102))"),
        (
            Filter(since="2024-01-15T10:00:00", until="2024-01-15T11:00:00"),
            "(date == -1 or (date >= 20240113 and date <= 20240117))",
        ),
        (Filter(since="9999-12-31", until="9999-12-31"), "(date == -1 or (date >= 99991229))"),
        (Filter(since="0001"), ""),
    ],
)
def test_a_filter_is_narrowed_by_what_is_safe_to_write(where: Filter, expression: str) -> None:
    selected = SelectedDocuments.of(range(5000), where)
    assert filter_expression([1, 2], selected) == " and ".join(filter(None, ["tool in [1, 2]", expression]))
    assert filter_expression([1], None) == "tool in [1]"
    assert "date" not in filter_expression([1], selected, with_dates=False)
    assert filter_expression([1], (4, 5)) == "tool in [1] and document_id in [4, 5]"


def test_a_range_of_dates_matches_at_least_what_the_store_selects() -> None:
    """In whatever time zone a date was written, and however exact it is."""
    rests = (
        "", "-01", "-06", "-12", "-01-01", "-02-28", "-12-31", "-06-30T23:59:59", "-07-01T00:30:00+14:00",
        "-06-30T11:30:00-12:00", "-01-01T00:00:00+00:00",
    )  # fmt: skip
    texts = [f"{year}{rest}" for year in (2023, 2024) for rest in rests]
    ends = ["", *(text[:19] for text in texts)]
    checked = 0
    for since, until, zone in itertools.product(ends, ends, ("UTC", "Pacific/Kiritimati", "Etc/GMT+12")):
        where = Filter(since=since, until=until, zone=zone)
        if not where:
            continue
        matches = document_matcher(where, 1)
        expression = filter_expression([1], SelectedDocuments.of(range(5000), where)).removeprefix("tool in [1] and ")
        condition = compile(expression, "expression", "eval")
        for text in ("", *texts):
            if matches("a.md", text, frozenset()):
                checked += 1
                assert eval(condition, {"date": date_number(text)}), (text, where)  # noqa: S307 - written by us
    assert checked > 5000


@pytest.mark.parametrize("uri", ["localhost:19530", "milvus", "/tmp/folder"])
def test_an_address_that_is_neither_server_nor_file_is_a_settings_error(uri: str) -> None:
    with pytest.raises(SettingsError, match=r"milvus\.uri is neither a URL nor a Milvus Lite file"):
        MilvusServer(MilvusOptions(uri=uri))


def test_a_library_in_memory_has_no_place_for_a_file(open_docs: Opener) -> None:
    with pytest.raises(SettingsError, match="needs a library in files, or a server"):
        open_docs(BUNKO_INDEX_KIND="milvus", BUNKO_STORAGE_KIND="memory")


@pytest.mark.skipif(find_spec("pymilvus") is not None, reason="pymilvus is installed here")
def test_without_the_package_local_segments_answer_or_a_sentence_names_the_extra(docs: Path, open_docs: Opener) -> None:
    put(docs, "a.md", "京都の寺を巡る旅の記録")
    with open_docs(BUNKO_INDEX_KIND="milvus") as library:
        report = library.reindex()
        assert report.added == 1, "the documents are imported"
        assert 'pip install "bunko[milvus]"' in report.notices[0]
        with pytest.raises(IndexFailure, match="needs the package pymilvus"):
            library.search("京都の寺")
        assert any(finding.message.startswith("The index milvus needs") for finding in library.maintenance.diagnose())
        assert library.index.status()[0].state.problem.startswith("The index milvus needs")
    with open_docs() as library:
        library.index.sync("documents")
    with open_docs(BUNKO_INDEX_KIND="milvus") as library:
        answer = library.search("京都の寺")
        assert answer.hits[0].uri == "a.md"
        assert "so the local index was searched" in answer.notices[0]


@pytest.mark.skipif(find_spec("pymilvus") is not None, reason="pymilvus is installed here")
def test_an_import_that_milvus_does_not_follow_says_so_once_for_all_tools(docs: Path, tmp_path: Path) -> None:
    put(docs, "a.md", "京都の寺を巡る旅の記録")
    paths = paths_for_folder(tmp_path / "library")
    with open_library(paths, environ={}) as library:
        for name in ("one", "two"):
            library.add(docs, name=name)
        library.import_()  # leaves segments, so that searches go on
    with open_library(paths, environ={"BUNKO_INDEX_KIND": "milvus"}) as library:
        (notice,) = library.import_().notices
        assert notice.startswith("The index was not updated: The index milvus needs the package pymilvus")
