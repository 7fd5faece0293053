"""Amounts, dates, times and weekdays in both languages: which forms are the same, and what is no number."""

from __future__ import annotations

import pytest

from bunko.answers.quantities import Quantity, find_quantities, kanji_number


def one(text: str) -> Quantity:
    [quantity] = find_quantities(text)
    return quantity


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("1,000円", "1000円"),
        ("1,000円", "千円"),
        ("１，０００円", "1000 yen"),
        ("三千五百円", "3,500円"),
        ("3億2000万円", "320,000,000円"),
        ("twenty-five thousand yen", "25,000円"),
        ("two hundred and twelve steps", "212 steps"),
        ("六か月", "6ヶ月"),
        ("半年", "six months"),
        ("48 hours", "二日間"),
        ("2 kg", "2000グラム"),
        ("310g", "310 grams"),
        ("95%", "95 percent"),
        ("三割", "30 %"),
        ("令和7年2月17日", "2025-02-17"),
        ("17 February 2025", "2025年2月17日"),
        ("February 17th, 2025", "2025/2/17"),
        ("12月3日", "December 3"),
        ("明治5年10月14日", "14 October 1872"),
        ("2025年度", "2025"),
        ("22時", "10 pm"),
        ("午後3時半", "15:30"),
        ("正午", "noon"),
        ("火曜日", "Tuesdays"),
        ("毎分", "per minute"),
        ("月額", "monthly"),
        ("twice", "2回"),
        ("第三会議室", "3"),
    ],
)
def test_two_ways_to_write_a_quantity_are_the_same(first: str, second: str) -> None:
    assert one(first).agrees_with(one(second))
    assert one(second).agrees_with(one(first))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("30 days", "60 days"),
        ("30 days", "30 hours"),
        ("310 g", "310 kg"),
        ("1.2 litres", "2.1 litres"),
        ("3 May", "3 June"),
        ("2025年2月17日", "2024年2月17日"),
        ("火曜日", "木曜日"),
        ("09:00", "19:00"),
        ("三十分", "20分"),
        ("600 per minute"[4:], "per second"),
        ("12 euro", "12 dollars"),
    ],
)
def test_different_quantities_never_agree(first: str, second: str) -> None:
    assert not one(first).agrees_with(one(second))


@pytest.mark.parametrize(
    "text",
    ["一般に二酸化炭素は", "千葉と四国と三田", "十分な量", "一緒に", "HMAC-SHA256", "TM-300", "one by one", "一人ずつ"],
)
def test_words_with_numerals_are_no_quantities(text: str) -> None:
    assert find_quantities(text) == []


def test_ten_minutes_are_told_from_enough_by_what_follows() -> None:
    assert one("十分ほど煮る").value == (600,)
    assert one("三十分煮る").value == (1800,)


def test_an_amount_competes_only_with_the_same_unit() -> None:
    assert one("30 days").competes_with(one("60 days"))
    assert not one("30 days").competes_with(one("48 minutes"))
    assert not one("30 days").competes_with(one("30日"))


@pytest.mark.parametrize(
    ("text", "value"), [("二〇二五", 2025), ("一億二千万", 120_000_000), ("十", 10), ("百五", 105)]
)
def test_japanese_numerals_have_their_value(text: str, value: int) -> None:
    assert kanji_number(text) == value
