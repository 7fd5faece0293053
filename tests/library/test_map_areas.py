"""Names on the map: what lies together is named by what it is about, in the languages of its documents."""

from __future__ import annotations

from itertools import chain
from typing import Literal

import numpy as np
import numpy.typing as npt

from bunko.library.overview.areas import Area, Text, find_areas

JAPANESE = ["味噌汁", "望遠鏡", "自転車", "図書館", "温泉宿"]
ENGLISH = ["garden roses", "kernel scheduler", "string quartet", "income tax", "coral reef"]
PLACES = [(40.0 * column, 40.0 * row) for row in range(2) for column in range(5)]


def islands(count: int, places: list[tuple[float, float]]) -> npt.NDArray[np.float32]:
    """As many points around each place."""
    noise = np.random.default_rng(3).standard_normal((len(places), count, 2))
    return (np.array(places)[:, None] + noise).reshape(-1, 2).astype(np.float32)


def texts(subject: str, language: Literal["ja", "en"], count: int = 24) -> list[Text]:
    """Titles about a subject, each of a word that is in no other."""
    others = (
        ["bark", "cliff", "dune", "elm", "fjord", "gorge"] if language == "en" else ["朝", "昼", "夜", "春", "夏", "秋"]
    )
    glue = " and the " if language == "en" else "と"
    return [Text(f"{subject}{glue}{others[number % 6]}", "", language) for number in range(count)]


def names(areas: list[Area], level: int = 0) -> set[str]:
    return {area.name("en") for area in areas if area.level == level}


def test_what_lies_together_is_named_by_what_it_is_about() -> None:
    documents = [*chain.from_iterable(texts(word, "ja") for word in JAPANESE)]
    documents += chain.from_iterable(texts(word, "en") for word in ENGLISH)
    areas, area_of = find_areas(islands(24, PLACES), documents)
    assert names(areas) == {*JAPANESE, *ENGLISH}
    roses = next(number for number, area in enumerate(areas) if area.name("en") == "garden roses")
    assert np.flatnonzero(area_of == roses).tolist() == [*range(5 * 24, 6 * 24)]
    assert areas[roses].count == 24
    left, low, right, high = areas[roses].box
    assert left <= areas[roses].x <= right
    assert low <= areas[roses].y <= high


def test_finer_areas_lie_within_coarser_ones_and_are_smaller() -> None:
    positions = islands(30, [(20 * column, 20 * row) for column in range(8) for row in range(8)])
    words = ["bread", "river", "piano", "engine", "lawyer", "planet", "cotton", "tiger"]
    documents = [
        Text(f"{words[place // 8]} {words[place % 8]} club {number}", "", "en")
        for place in range(64) for number in range(30)
    ]  # fmt: skip
    areas, _ = find_areas(positions, documents)
    counts = [max(area.count for area in areas if area.level == level) for level in (0, 1)]
    assert counts[0] > counts[1]
    assert 5 <= sum(area.level == 0 for area in areas) <= 10
    assert sum(area.level == 1 for area in areas) > 10
    for level in {area.level for area in areas}:
        of_level = [area.name("en") for area in areas if area.level == level]
        assert len(set(of_level)) == len(of_level), "no name twice"


def test_a_reader_gets_names_in_the_own_language_where_there_are_documents_in_it() -> None:
    soups = ["miso soup", "telescope mirror", "bicycle tyre", "public library", "hot spring"]
    documents: list[Text] = []
    for japanese, english in zip(JAPANESE, soups, strict=True):
        documents += [*texts(japanese, "ja"), *texts(english, "en", 12)]
    documents += chain.from_iterable(texts(english, "en", 36) for english in ENGLISH)
    areas, _ = find_areas(islands(36, PLACES), documents)
    assert {area.name("ja") for area in areas if area.level == 0} == {*JAPANESE, *ENGLISH}
    assert {area.name("en") for area in areas if area.level == 0} == {*soups, *ENGLISH}


def test_names_are_no_file_names_numbers_or_common_words() -> None:
    documents = [Text(title, "", "en") for title in ("index", "2024", "README", "Overview", "12") for _ in range(20)]
    areas, area_of = find_areas(islands(20, [(0, 0), (50, 0), (0, 50), (50, 50), (25, 100)]), documents)
    assert areas == []
    assert set(area_of) == {-1}


def test_few_documents_need_no_names() -> None:
    assert find_areas(islands(10, [(0, 0)]), texts("coral reef", "en", 10))[0] == []
    assert find_areas(np.zeros((0, 2), np.float32), [])[0] == []


def test_documents_at_one_place_are_one_area() -> None:
    areas, _ = find_areas(np.zeros((100, 2), np.float32), texts("coral reef", "en", 100))
    assert names(areas) == {"coral reef"}
