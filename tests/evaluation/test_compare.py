"""How sure a difference is: the same every time, 0 where there is none, and not fooled by noise."""

from __future__ import annotations

import random

import pytest

from bunko.evaluation.compare import compare, confidence_intervals


def values(numbers: list[float]) -> dict[str, dict[str, float]]:
    return {"m": {f"q{i}": number for i, number in enumerate(numbers)}}


def test_a_run_compared_with_itself_shows_no_difference() -> None:
    numbers = values([0.1, 0.5, 1.0, 0.0])
    (found,) = compare(numbers, numbers, names=("a", "b")).differences
    assert (found.difference, found.low, found.high, found.p) == (0.0, 0.0, 0.0, 1.0)
    assert (found.wins, found.losses, found.ties) == (0, 0, 4)
    assert not found.is_significant


def test_a_run_compared_with_its_own_rounded_report_shows_no_difference() -> None:
    exact = [1 / 3, 0.6309297536, 0.4306765581, 1 / 7]
    rounded = [round(number, 6) for number in exact]
    (found,) = compare(values(rounded), values(exact), names=("report.json", "a")).differences
    assert (found.difference, found.low, found.high, found.p) == (0.0, 0.0, 0.0, 1.0)
    assert found.verdict == ""


def test_a_steady_win_is_certain_and_a_steady_loss_too() -> None:
    chance = random.Random(1)
    before = [chance.random() * 0.5 for _ in range(60)]
    after = [number + 0.1 + chance.random() * 0.1 for number in before]
    (won,) = compare(values(before), values(after), names=("a", "b")).differences
    (lost,) = compare(values(after), values(before), names=("a", "b")).differences
    assert won.low > 0
    assert won.is_significant
    assert won.p < 0.001
    assert (won.wins, won.losses) == (60, 0)
    assert lost.difference == pytest.approx(-won.difference)
    assert lost.high < 0
    assert (won.verdict, lost.verdict) == ("better", "worse")
    assert (lost.wins, lost.losses) == (0, 60)


@pytest.mark.slow
def test_noise_is_seldom_called_certain() -> None:
    chance = random.Random(7)
    certain = 0
    for _ in range(60):
        before, after = ([chance.gauss(0.5, 0.2) for _ in range(50)] for _ in range(2))
        certain += compare(values(before), values(after), names=("a", "b")).differences[0].is_significant
    assert certain <= 9  # about one in twenty is expected


def test_the_numbers_are_the_same_every_time() -> None:
    chance = random.Random(3)
    before, after = (values([chance.random() for _ in range(30)]) for _ in range(2))
    assert compare(before, after, names=("a", "b")) == compare(before, after, names=("a", "b"))


def test_only_questions_that_both_have_are_compared() -> None:
    first = {"m": {"q1": 0.0, "q2": 1.0}, "only first": {"q1": 1.0}, "apart": {"q1": 1.0}}
    second = {"m": {"q2": 0.5, "q3": 1.0}, "apart": {"q2": 1.0}}
    (found,) = compare(first, second, names=("a", "b")).differences
    assert (found.measure, found.first, found.second, found.losses) == ("m", 1.0, 0.5, 1)


@pytest.mark.slow
def test_an_interval_holds_the_mean_and_shrinks_with_more_questions() -> None:
    chance = random.Random(5)
    few = [chance.random() for _ in range(20)]
    many = [chance.random() for _ in range(2000)]
    (low, high), (lower, higher) = confidence_intervals(values(few))["m"], confidence_intervals(values(many))["m"]
    assert low < sum(few) / 20 < high
    assert lower < sum(many) / 2000 < higher
    assert (higher - lower) < (high - low) / 5
    # The textbook's interval of a mean is the same to two digits for so many.
    assert higher - lower == pytest.approx(2 * 1.96 * (1 / 12) ** 0.5 / 2000**0.5, rel=0.1)


def test_measures_about_different_questions_have_intervals_of_their_own() -> None:
    found = confidence_intervals({"all": {"q1": 0.0, "q2": 1.0}, "one": {"q1": 0.25}})
    assert found["one"] == (0.25, 0.25)
    assert found["all"] == (0.0, 1.0)


def test_less_of_what_must_not_come_back_is_a_win() -> None:
    before, after = {"negative_rate": {"q1": 1.0, "q2": 0.0}}, {"negative_rate": {"q1": 0.0, "q2": 0.0}}
    (found,) = compare(before, after, names=("a", "b")).differences
    assert (found.difference, found.wins, found.losses, found.ties) == (-0.5, 1, 0, 1)
