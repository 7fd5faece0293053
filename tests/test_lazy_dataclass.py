"""Dataclasses whose methods are generated late behave like those of the standard library."""

from __future__ import annotations

import copy
import dataclasses
import pickle

import pytest

from bunko.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Point:
    """A point with a name."""

    x: int
    y: int = 2
    names: list[str] = dataclasses.field(default_factory=list, compare=False)
    secret: str = dataclasses.field(default="", repr=False)

    def __post_init__(self) -> None:
        if self.x < 0:
            raise ValueError("x is negative")


@dataclasses.dataclass(frozen=True, slots=True)
class StandardPoint:
    """The same, as the standard library makes it."""

    x: int
    y: int = 2
    names: list[str] = dataclasses.field(default_factory=list, compare=False)
    secret: str = dataclasses.field(default="", repr=False)


@dataclass(slots=True)
class Counter:
    """A number that changes."""

    value: int = 0


def test_objects_are_created_compared_and_shown_as_usual() -> None:
    point, standard = Point(1, secret="s"), StandardPoint(1, secret="s")

    assert dataclasses.asdict(point) == dataclasses.asdict(standard)
    assert repr(point) == repr(standard).removeprefix("Standard")
    assert point == Point(1, 2, ["other"], "s") != Point(3)
    assert hash(point) == hash(standard)
    assert {Point(4): "four"}[Point(4)] == "four"
    assert Point(1).names is not Point(1).names
    assert Point.__match_args__ == StandardPoint.__match_args__


def test_wrong_arguments_are_errors_before_and_after_the_first_use() -> None:
    for _ in range(2):
        with pytest.raises(TypeError, match=r"Point\.__init__\(\) missing 1 required positional argument: 'x'"):
            Point()  # type: ignore[call-arg]
        with pytest.raises(ValueError, match="x is negative"):
            Point(-1)


def test_a_frozen_object_cannot_change() -> None:
    point = Point(1)

    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'x'"):
        point.x = 2  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot delete field 'x'"):
        del point.x
    assert dataclasses.replace(point, x=5) == Point(5)


def test_objects_can_be_copied_and_pickled() -> None:
    point = Point(1, names=["a"])

    assert copy.deepcopy(point).names == pickle.loads(pickle.dumps(point)).names == ["a"]
    assert copy.copy(point) == point


def test_an_object_that_changes_has_no_hash() -> None:
    counter = Counter()
    counter.value += 1

    assert counter == Counter(1)
    with pytest.raises(TypeError, match="unhashable"):
        hash(counter)


def test_a_class_can_inherit_from_one() -> None:
    @dataclasses.dataclass(frozen=True, slots=True)
    class Labelled(Point):
        label: str = ""

    assert Labelled(1, label="a") == Labelled(1, label="a") != Labelled(1, label="b")
    assert not hasattr(Labelled(1), "__dict__")
