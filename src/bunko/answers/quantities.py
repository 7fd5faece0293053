"""Find amounts, dates, times and weekdays in Japanese and English text, in forms that can be compared.

1,000, 1000, １０００, 千 and "one thousand" are the same number; 令和7年2月17日, 2025-02-17 and 17 February 2025 the
same date; 2 kg and 2000 g, 48 hours and 二日 the same amount.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Literal, NamedTuple

from bunko.text.dates import convert_era_years
from bunko.text.normalise import normalise

Kind = Literal["amount", "date", "clock", "weekday"]


class Quantity(NamedTuple):
    """An amount, a date, a time of day or a weekday."""

    kind: Kind
    # amount: the number; date: year, month, day with 0 for what is not said; clock: minutes; weekday: 1 is Monday
    value: tuple[float, ...]
    unit: str  # of an amount, a base unit such as g, second or yen; empty if there is none that is known
    text: str  # as it is written
    scale: float = 1.0  # the size of the unit as it is written, in base units

    def agrees_with(self, other: Quantity) -> bool:
        """Return whether another quantity says the same; one without a unit agrees with every unit."""
        if self.kind != other.kind:
            return _is_year_of(self, other) or _is_year_of(other, self)
        if self.kind == "date":
            pairs = list(zip(self.value, other.value, strict=True))
            both = [(first, second) for first, second in pairs if first and second]
            return bool(both) and all(first == second for first, second in both)
        if self.kind == "amount" and self.unit and other.unit and self.unit != other.unit:
            return False
        return all(
            abs(first - second) < 1e-6 * max(1.0, abs(first))
            for first, second in zip(self.value, other.value, strict=True)
        )

    def competes_with(self, other: Quantity) -> bool:
        """Return whether another quantity answers the same question differently, as 60 days and 30 days do."""
        is_same_question = (self.kind, self.unit, self.scale) == (other.kind, other.unit, other.scale)
        return is_same_question and not self.agrees_with(other)


def _is_year_of(number: Quantity, date: Quantity) -> bool:
    """Return whether a bare number is the year of a date."""
    return number.kind == "amount" and date.kind == "date" and not number.unit and number.value[0] == date.value[0]


# Base units, with the spellings of each unit and its size in the base unit.
_UNITS: dict[str, dict[str, float]] = {
    "second": {
        "秒間|秒|seconds?|secs?": 1,
        "分間|分|minutes?|mins?": 60,
        "時間|hours?|hrs?": 3600,
        "日間|日|days?": 86_400,
        "週間|週|weeks?": 604_800,
    },
    "businessday": {"営業日|business days?|working days?": 1},
    "month": {"[かカヵヶケ箇]月間?|months?": 1, "年間|年|years?": 12},
    "yen": {"円|yen|jpy": 1},
    "euro": {"ユーロ|euros?|eur": 1},
    "dollar": {"ドル|dollars?|usd": 1},
    "percent": {"%|パーセント|percent|per cent": 1, "割": 10},
    "g": {"mg|ミリグラム": 0.001, "kg|キログラム|kilograms?|kilos?": 1000, "g|グラム|grams?": 1},
    "m": {
        "mm|ミリメートル|ミリ|millimet(?:er|re)s?": 0.001,
        "cm|センチメートル|センチ|centimet(?:er|re)s?": 0.01,
        "km|キロメートル|kilomet(?:er|re)s?": 1000,
        "m|メートル|met(?:er|re)s?": 1,
    },
    "l": {"ml|ミリリットル|millilit(?:er|re)s?": 0.001, "l|リットル|lit(?:er|re)s?": 1},
    "degree": {"℃|°c|度|degrees?": 1},
    "byte": {
        "kb|キロバイト|kilobytes?": 1e3,
        "mb|メガバイト|megabytes?": 1e6,
        "gb|ギガバイト|gigabytes?": 1e9,
        "tb|テラバイト|terabytes?": 1e12,
    },
    "v": {"v|ボルト|volts?": 1},
    "w": {"kw|キロワット": 1000, "w|ワット|watts?": 1},
    "person": {"人分|人|名|people|persons?": 1},
    "time": {"回|times": 1},
    "floor": {"階|floors?": 1},
    "night": {"泊|nights?": 1},
    "page": {"ページ|頁|pages?": 1},
    "piece": {"個|つ|pieces?": 1},
    "sheet": {"枚|sheets?": 1},
    "case": {"件": 1},
    "machine": {"台": 1},
    "article": {"条": 1},
    "chapter": {"章|chapters?": 1},
    "times as": {"倍": 1},
}
_KANJI_DIGITS = {digit: value for value, digit in enumerate("〇一二三四五六七八九")} | {"零": 0}
_KANJI_TENS = {"十": 10, "百": 100, "千": 1000}
_KANJI_POWERS = {"万": 10**4, "億": 10**8, "兆": 10**12}
_KANJI = "〇零一二三四五六七八九十百千万億兆"
_NUMBER_WORDS = {
    word: value
    for value, word in enumerate(
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"
        " seventeen eighteen nineteen twenty".split()
    )
} | {"thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90}
_MULTIPLIERS = {"hundred": 100, "thousand": 1000, "million": 10**6, "billion": 10**9}
_MONTHS = "january february march april may june july august september october november december".split()
# May and March are also words, so months are written with a capital.
_MONTH = (
    r"(?P<month>Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sept?(?:ember)?"
    r"|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)\b\.?"
)
_DATES = (
    r"(?<!\d)(?P<year>\d{4})\s?[-/.年]\s?(?P<month>\d{1,2})\s?[-/.月]\s?(?P<day>\d{1,2})(?!\d)日?",
    r"(?<!\d)(?P<year>\d{4})(?:\s?年\s?|[-/])(?P<month>\d{1,2})(?:\s?月|(?![\d/-]))",
    r"(?<!\d)(?P<month>\d{1,2})\s?月\s?(?P<day>\d{1,2})\s?日",
    r"(?<!\d)(?P<year>[12]\d{3})\s?年度?",
    r"(?<!\d)(?P<month>1[0-2]|[1-9])\s?月",
    rf"\b(?P<day>\d{{1,2}})(?:st|nd|rd|th)?(?: of)? {_MONTH},?(?: (?P<year>\d{{4}}))?",
    rf"\b{_MONTH} (?P<day>\d{{1,2}})(?:st|nd|rd|th)?\b(?:,? (?P<year>\d{{4}}))?",
    rf"\b{_MONTH},? (?P<year>\d{{4}})",
    r"\b(?P<month>January|February|April|June|July|August|September|October|November|December"
    r"|(?<=in )(?:March|May)|(?<=by )(?:March|May)|(?<=until )(?:March|May)|(?<=since )(?:March|May))\b",
)
_CLOCKS = (
    r"(?<!\d)(?P<hour>[01]?\d|2[0-4]):(?P<minute>[0-5]\d)(?!\d)\s?(?P<half>[ap]\.?m\.?)?",
    r"(?P<half>午前|午後)?\s?(?<!\d)(?P<hour>[01]?\d|2[0-4])\s?時(?!間)(?:\s?(?P<minute>[0-5]?\d)\s?分|(?P<thirty>半))?",
    r"\b(?P<hour>1[0-2]|[1-9])\s?(?P<half>[ap]\.?m\b\.?)",
    r"(?P<noon>正午|\bnoon\b)",
)
_WEEKDAY_NAMES = "monday tuesday wednesday thursday friday saturday sunday".split()
_WEEKDAY = r"(?P<ja>[月火水木金土日])曜日?|\b(?P<en>(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day)s?\b"
# An amount of one: per minute, 毎分, 月額.
_RATES = {
    r"\b(?:per|each|every) (?P<unit>second|minute|hour|day|week|month|year|person|night|page)\b": "",
    r"毎(?P<unit>秒|分|時|日|週|月|年)(?![月火水木金土日]?曜)": "",
    r"(?<![\d毎今先来翌前同正例学昨])(?P<unit>週|月|年)に?(?=\d)": "",
    r"月額|\bmonthly\b": "month",
    r"年額|年払い|\byearly\b|\bannually\b": "year",
    r"\bdaily\b": "day",
    r"\bweekly\b": "week",
}
_RATE_UNITS = {"時": "時間", "月": "か月"}
_RANGE = re.compile(r"(?<![\w./-])(\d{1,3}(?:\.\d+)?)-(\d{1,3}(?:\.\d+)?)(?![\d./-])")  # 10-20 days: both are numbers
# Possessive, and only at the beginning of a number: otherwise long numbers would take quadratic time.
_ONE_BY_ONE = re.compile(rf"(?<![{_KANJI}\d])[{_KANJI}\d]++[人つ個名枚]ずつ")
_MIXED_NUMBER = re.compile(r"(?<![\d,])\d[\d,]*+(?:\.\d++)?[千万億兆](?:\d[\d,]*[千万億兆]?)*")
_MIXED_PART = re.compile(r"(\d[\d,]*(?:\.\d+)?)([千万億兆]?)")
# What follows a lone 十分 if it is ten minutes; otherwise it is "enough".
_TEN_MINUTES = re.compile(rf"(?<![{_KANJI}\d])十分(?=[間ほ程く待煮置焼茹で以前後か])")


def find_quantities(text: str) -> list[Quantity]:
    """Return the quantities of a text, in no particular order."""
    return extract_quantities(text)[0]


def extract_quantities(text: str) -> tuple[list[Quantity], str]:
    """Return the quantities of a text, and the text without them, normalised."""
    remaining = _RANGE.sub(r"\1~\2", normalise_numbers(text))
    quantities: list[Quantity] = []
    for find in (_find_dates, _find_clocks, _find_rates, _find_weekdays, _find_amounts):
        for quantity, start, end in list(find(remaining)):
            quantities.append(quantity)
            remaining = f"{remaining[:start]}{' ' * (end - start)}{remaining[end:]}"
    return quantities, remaining


def normalise_numbers(text: str) -> str:
    """Return a text with its numbers in digits and its years in the Western calendar."""
    return convert_era_years(_convert_words(_convert_kanji(_ONE_BY_ONE.sub("", normalise(text)))))


_Located = Iterator[tuple[Quantity, int, int]]


def _find_dates(text: str) -> _Located:
    used = [False] * len(text)
    for expression in _DATES:
        for match in _pattern(expression).finditer(text):
            if any(used[match.start() : match.end()]):
                continue
            groups = match.groupdict()
            month_text = groups.get("month") or "0"
            if month_text.isdigit():
                month = int(month_text)
            else:
                month = next(i for i, name in enumerate(_MONTHS, 1) if name.startswith(month_text[:3].lower()))
            value = (int(groups.get("year") or 0), month, int(groups.get("day") or 0))
            if month <= 12 and value[2] <= 31:
                used[match.start() : match.end()] = [True] * (match.end() - match.start())
                yield Quantity("date", value, "", match[0].strip()), match.start(), match.end()


def _find_clocks(text: str) -> _Located:
    for expression in _CLOCKS:
        for match in _pattern(expression, re.IGNORECASE).finditer(text):
            groups = match.groupdict()
            hour = 12 if groups.get("noon") else int(groups["hour"])
            half = (groups.get("half") or "").lower()
            if half.startswith(("p", "午後")) and hour < 12:
                hour += 12
            minute = 30 if groups.get("thirty") else int(groups.get("minute") or 0)
            yield Quantity("clock", (60 * hour + minute,), "", match[0].strip()), match.start(), match.end()


def _find_weekdays(text: str) -> _Located:
    for match in _pattern(_WEEKDAY).finditer(text):
        day = "月火水木金土日".index(match["ja"]) if match["ja"] else _WEEKDAY_NAMES.index(match["en"].lower())
        yield Quantity("weekday", (day + 1,), "", match[0]), match.start(), match.end()


def _find_amounts(text: str) -> _Located:
    for match in _amount_pattern().finditer(text):
        number = float(match["number"].replace(",", ""))
        number = -number if match["minus"] else number
        if multiplier := match["multiplier"]:
            number *= _MULTIPLIERS[multiplier.lower()]
        currency = {"$": "dollar", "€": "euro", "¥": "yen"}.get(match["currency"] or "")
        unit, size = (currency, 1.0) if currency else _base_unit(match["unit"] or "")
        yield Quantity("amount", (number * size,), unit, match[0].strip(), size), match.start(), match.end()


def _find_rates(text: str) -> _Located:
    for expression, name in _RATES.items():
        for match in _pattern(expression, re.IGNORECASE).finditer(text):
            spelling = name or match["unit"]
            unit, size = _base_unit(_RATE_UNITS.get(spelling, spelling))
            yield Quantity("amount", (size,), unit, match[0], size), match.start(), match.end()


@cache
def _base_unit(spelling: str) -> tuple[str, float]:
    for unit, spellings in _UNITS.items():
        for expression, size in spellings.items():
            if spelling and re.fullmatch(expression, spelling, re.IGNORECASE):
                return unit, size
    return "", 1.0


@cache
def _amount_pattern() -> re.Pattern[str]:
    spellings = [spelling for units in _UNITS.values() for group in units for spelling in _alternatives(group)]
    # The longest first: 営業日 before 日.
    units = "|".join(sorted(spellings, key=lambda spelling: -len(spelling)))
    return re.compile(
        r"(?:(?<![A-Za-z0-9_.,)\]%年月日時分秒円-])(?P<minus>-|マイナス|\bminus ))?"
        r"(?<![A-Za-z0-9_.,])(?<![A-Za-z]-)(?P<currency>[$€¥])?(?P<number>\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?)(?![-_.,]?\d)"
        r"(?: ?(?P<multiplier>hundred|thousand|million|billion)\b)?"
        rf"(?![a-z]*\d)(?:[\s-]?(?P<unit>{units}))?(?![A-Za-z])",
        re.IGNORECASE,
    )


def _alternatives(expression: str) -> list[str]:
    """Return the alternatives of an expression at its outermost level."""
    return re.split(r"\|(?![^(]*\))", expression)


def _convert_kanji(text: str) -> str:
    """Return a text with Japanese numerals in digits where they are numbers: 三千五百円 is 3500円, 一般 stays."""
    text = _MIXED_NUMBER.sub(lambda match: str(_mixed_number(match[0])), _TEN_MINUTES.sub("10分", text))
    return _kanji_pattern().sub(_kanji_to_digits, text)


def _mixed_number(text: str) -> int:
    """Return the value of digits with Japanese powers: 3億2000万."""
    powers = {"": 1, "千": 1000} | _KANJI_POWERS
    return round(sum(float(digits.replace(",", "")) * powers[power] for digits, power in _MIXED_PART.findall(text)))


@cache
def _kanji_pattern() -> re.Pattern[str]:
    units = "|".join(
        spelling
        for units in _UNITS.values()
        for group in units
        for spelling in _alternatives(group)
        if not spelling.isascii()
    )
    # A single numeral needs a counter after it, or a word before it that numbers things.
    return re.compile(
        rf"(?<![{_KANJI}\d])(?:(?<=第)[{_KANJI}]+|(?<=大さじ|小さじ)[{_KANJI}]+|(?<=内線|番号)[{_KANJI}]+"
        rf"|[{_KANJI}]+(?=\s?(?:{units}|時|月|桁|歳|才|杯|本|冊|匹|名|号|番|段|世紀|代目|者))"
        rf"|[二三四五六七八九]?[十百千万億][{_KANJI}]+(?![{_KANJI}]))"
    )


def _kanji_to_digits(match: re.Match[str]) -> str:
    text = match[0]
    if text == "十" and match.string[match.end() : match.end() + 1] == "分":
        return text  # "enough" unless `_TEN_MINUTES` said otherwise
    return str(kanji_number(text))


def kanji_number(text: str) -> int:
    """Return the value of a Japanese numeral: 三千五百, 二〇二五, 一億二千万."""
    if not any(char in _KANJI_TENS or char in _KANJI_POWERS for char in text):
        return int("".join(str(_KANJI_DIGITS[char]) for char in text))
    total = section = digit = 0
    for char in text:
        if char in _KANJI_DIGITS:
            digit = digit * 10 + _KANJI_DIGITS[char]
        elif char in _KANJI_TENS:
            section += (digit or 1) * _KANJI_TENS[char]
            digit = 0
        else:
            total += (section + digit or 1) * _KANJI_POWERS[char]
            section = digit = 0
    return total + section + digit


_TENS_WORDS = "twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety"
_WORD_NUMBER = re.compile(
    rf"(?i)\b(?:(?P<tens>{_TENS_WORDS})[- ](?P<ones>one|two|three|four|five|six|seven|eight|nine)"
    rf"|(?P<word>{'|'.join(sorted(_NUMBER_WORDS, key=len, reverse=True))}))\b"
    r"(?P<multipliers>(?: (?:hundred|thousand|million))*)"
)
_AND_REST = re.compile(r"\b(\d+)00 and (\d{1,2})\b")  # 200 and 12
_SPECIAL_WORDS = (
    (re.compile(r"(?i)\btwice\b"), "2 times"),
    (re.compile(r"(?i)\b(?:a|per) dozen\b"), "12"),
    (re.compile(r"(?i)\bhalf a year\b|半年間?"), "6か月"),
)
# "one" is a number before a unit, and a pronoun elsewhere.
_ONE = re.compile(
    r"(?i)one(?= (?:second|minute|hour|day|week|month|year|person|night|page|time|metre|meter|litre|liter)s?\b)"
)


def _convert_words(text: str) -> str:
    """Return a text with English number words in digits."""
    for pattern, number in _SPECIAL_WORDS:
        text = pattern.sub(number, text)

    def digits(match: re.Match[str]) -> str:
        if match["word"] and match["word"].lower() == "one" and not match["multipliers"]:
            return "1" if _ONE.match(text, match.start()) else match[0]
        number = (
            _NUMBER_WORDS[match["tens"].lower()] + _NUMBER_WORDS[match["ones"].lower()]
            if match["tens"]
            else _NUMBER_WORDS[match["word"].lower()]
        )
        for multiplier in match["multipliers"].split():
            number *= _MULTIPLIERS[multiplier.lower()]
        return str(number)

    return _AND_REST.sub(lambda match: f"{match[1]}{match[2]:0>2}", _WORD_NUMBER.sub(digits, text))


@cache
def _pattern(expression: str, flags: int = 0) -> re.Pattern[str]:
    return re.compile(expression, flags)
