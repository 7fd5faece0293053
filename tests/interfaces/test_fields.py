"""A class that declares a JSON object writes it, and describes it to programs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter

from bunko.interfaces.fields import Fields, of


@dataclass
class Shelf:
    """A part of a library."""

    name: str
    number: int = 0


@dataclass
class Book:
    """Something to read."""

    title: str
    shelf: Shelf | None = None
    tags: tuple[str, ...] = ()
    score: float | None = None
    copies: tuple[Shelf, ...] = ()


class ShelfFields(Fields):
    """Where a book is."""

    name: str
    label: str = of(lambda shelf: f"{shelf.number}: {shelf.name}")


class BookFields(Fields):
    """A book."""

    title: str
    place: str = of("shelf.name")
    tags: list[str] = of(optional=True)
    note: str = of(optional=True)


class ScoredFields(BookFields):
    """A book that was found."""

    title: str = of("title", str.upper)
    shelf: ShelfFields | None
    score: float = of("score", round, optional=True)
    copies: list[ShelfFields]


def test_an_object_has_the_values_of_its_attributes_in_the_order_of_its_fields() -> None:
    fields = BookFields.fill(Book("枕草子", Shelf("古典"), ("随筆",)), note="")
    assert list(fields.items()) == [("title", "枕草子"), ("place", "古典"), ("tags", ["随筆"]), ("note", "")]


def test_what_is_empty_is_left_out_only_if_it_is_optional() -> None:
    assert BookFields.fill(Book("", Shelf("")), note=None) == {"title": "", "place": ""}


def test_a_score_of_nothing_is_not_empty() -> None:
    class Hit(Fields):
        score: float = of(optional=True)

    assert Hit.fill(Book("", score=0.0)) == {"score": 0.0}
    assert Hit.fill(Book("")) == {}


def test_objects_within_an_object_are_filled_too() -> None:
    fields = ScoredFields.fill(Book("genji", Shelf("c", 3), copies=(Shelf("d", 4),)), note=None)
    assert fields["shelf"] == {"name": "c", "label": "3: c"}
    assert fields["copies"] == [{"name": "d", "label": "4: d"}]
    assert ScoredFields.fill(Book("genji"), place="", note=None)["shelf"] is None


def test_a_field_that_is_declared_again_comes_after_those_that_are_inherited() -> None:
    fields = ScoredFields.fill(Book("genji", Shelf("c"), score=0.6), note="rare")
    assert list(fields) == ["place", "note", "title", "shelf", "score", "copies"]
    assert fields["title"] == "GENJI"


def test_the_description_has_the_same_fields_in_the_same_order() -> None:
    schema: dict[str, Any] = TypeAdapter(ScoredFields).json_schema()
    assert schema["description"] == "A book that was found."
    assert list(schema["properties"]) == ["place", "tags", "note", "title", "shelf", "score", "copies"]
    assert schema["required"] == ["place", "title", "shelf", "copies"]
    assert schema["$defs"]["ShelfFields"]["required"] == ["name", "label"]
