"""Count documents by day, and tags by year."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING

from bunko.text.dates import local_date

if TYPE_CHECKING:
    from datetime import tzinfo

    from bunko.types.records import ListedDocument


@dataclass(frozen=True, slots=True)
class TagYears:
    """How many documents of each year have a tag."""

    tag: str
    total: int
    counts: list[int]  # of each year


def count_days(documents: Iterable[ListedDocument], zone: tzinfo | None) -> dict[date, int]:
    """Return how many documents each day has, in the order of the days; those without a day are not counted."""
    days = Counter(day for document in documents if (day := document_day(document, zone)))
    return dict(sorted(days.items()))


def count_tags_by_year(
    documents: Iterable[ListedDocument], zone: tzinfo | None, *, limit: int
) -> tuple[list[int], list[TagYears]]:
    """Return all years from the first to the last with a tag, and the counts of the tags with the most documents."""
    counts: defaultdict[str, Counter[int]] = defaultdict(Counter)
    for document in documents:
        if day := document_day(document, zone):
            for tag in set(document.tags):
                counts[tag][day.year] += 1
    ranked = sorted(counts, key=lambda tag: (-counts[tag].total(), tag))[:limit]
    tagged_years = {year for tag in ranked for year in counts[tag]}
    years = list(range(min(tagged_years), max(tagged_years) + 1)) if tagged_years else []
    return years, [TagYears(tag, counts[tag].total(), [counts[tag][year] for year in years]) for tag in ranked]


def document_day(document: ListedDocument, zone: tzinfo | None) -> date | None:
    """Return the day of a document in a time zone; None if its date says no day."""
    try:
        return date.fromisoformat(local_date(document.date, zone)[:10])
    except ValueError:
        return None
