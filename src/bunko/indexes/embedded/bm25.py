"""Keys of a query in, the rows that match best out: BM25 over the word lane, grams as a hint beside it.

Only rows that a list touches are scored, and the longest lists are only looked up for the rows that can still win
(the MaxScore idea): the result is exact, and common words cost little.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bunko.indexes.embedded.postings import Postings
from bunko.indexes.embedded.snapshot import EMPTY_RANKING, Ranking, SegmentView, Snapshot, TopK, lower_bound

if TYPE_CHECKING:
    import numpy.typing as npt

    Mask = npt.NDArray[np.bool_] | None
    Rows = npt.NDArray[np.intp]
    Scores = npt.NDArray[np.float32]

# A pair of characters counts a quarter of its idf beside the words: chosen on judged sets, see docs/quality.md.
GRAM_WEIGHT = 0.25
# Looking one row up in a list costs as much as adding this many rows of it.
_LOOKUP_COST = 8
# Merging lists costs as much for each of their rows as clearing and searching this many rows.
_MERGE_COST = 8


class QueryTerm(NamedTuple):
    """One key of a query and what it is worth; words come before grams."""

    key: int
    weight: float
    is_gram: bool = False
    group: int = -1  # of several words for one thing only the one that counts most in a row counts


class _PostingList(NamedTuple):
    """One key's list in one part: the most it can add to a row's score, and how it is scored."""

    max_score: float
    begin: int
    end: int
    is_gram: bool
    members: tuple[_PostingList, ...] = ()  # of a group; it then has no list of its own, only their lengths together


def rank_terms(
    snapshot: Snapshot, terms: Sequence[QueryTerm], k: int, *, k1: float, b: float, masks: Sequence[Mask]
) -> Ranking:
    """Return the k best rows."""
    if not snapshot.views or not terms:
        return EMPTY_RANKING
    best = TopK(snapshot, k)
    for number, lists in enumerate(_posting_lists(snapshot, terms, k1)):
        if lists:
            part = snapshot.views[number]
            best.add(number, *_score_segment(part, lists, k, part.norms(k1, b, snapshot.average_length), masks[number]))
    return best.ranking()


def max_possible_score(snapshot: Snapshot, terms: Sequence[QueryTerm], *, k1: float) -> float:
    """Return more than any row can score by words: all of them in one row, as often as you like."""
    most: dict[int, float] = {}
    for i, (one, worth) in enumerate(zip(terms, _cached_lookup(snapshot, terms, k1)[1], strict=True)):
        if not one.is_gram:
            unit = one.group if one.group >= 0 else ~i
            most[unit] = max(most.get(unit, 0.0), worth)
    return sum(most.values())


def rank_gram_overlap(
    snapshot: Snapshot, terms: Sequence[QueryTerm], k: int, *, min_share: float, masks: Sequence[Mask]
) -> Ranking:
    """Return the k rows that hold the most telling of some grams, if they hold at least a share of them by weight."""
    places = [_find_spans(part, terms) for part in snapshot.views]
    worth = [GRAM_WEIGHT * value for value in _max_contributions(snapshot, terms, places, 0.0)]
    enough = min_share * sum(one.weight for one in terms)
    best = TopK(snapshot, k)
    for number, part in enumerate(snapshot.views):
        scores, shares = np.zeros((2, len(part.segment)), np.float32)
        for one, (begin, end), value in zip(terms, places[number], worth, strict=True):
            rows = part.segment.grams.rows[begin:end].astype(np.intp)
            scores[rows] += value
            shares[rows] += one.weight
        found = np.flatnonzero(shares >= enough)
        mask = masks[number]
        if mask is not None:
            found = found[mask[found]]
        best.add(number, found, scores[found])
    return best.ranking()


def rank_key_ranges(snapshot: Snapshot, ranges: Sequence[tuple[int, int]], k: int, *, masks: Sequence[Mask]) -> Ranking:
    """Return the k rows that hold grams of the most ranges of keys, the rarer ones first."""
    held = []
    for part, mask in zip(snapshot.views, masks, strict=True):
        spans = [part.segment.grams.range_span(*one) for one in ranges]
        lists = [np.unique(part.segment.grams.rows[begin:end]).astype(np.intp) for begin, end in spans]
        held.append(lists if mask is None else [rows[mask[rows]] for rows in lists])
    worth = [GRAM_WEIGHT * idf(snapshot.size, sum(len(lists[i]) for lists in held)) for i in range(len(ranges))]
    best = TopK(snapshot, k)
    for number, part in enumerate(snapshot.views):
        scores = np.zeros(len(part.segment), np.float32)
        for rows, value in zip(held[number], worth, strict=True):
            scores[rows] += value
        found = np.flatnonzero(scores > 0)
        best.add(number, found, scores[found])
    return best.ranking()


def matches(snapshot: Snapshot, terms: Sequence[QueryTerm], rows: Sequence[int]) -> list[list[bool]]:
    """Say for each row which of the keys it holds."""
    held = np.zeros((len(rows), len(terms)), bool)
    places = np.array([snapshot.locate(row) for row in rows], np.int32).reshape(-1, 2)
    for number in np.unique(places[:, 0]):
        which = np.flatnonzero(places[:, 0] == number)
        own = places[which, 1]
        segment = snapshot.views[number].segment
        for i, (one, (begin, end)) in enumerate(zip(terms, _find_spans(snapshot.views[number], terms), strict=True)):
            if begin < end:
                some = (segment.grams if one.is_gram else segment.words).rows[begin:end]
                at = some.searchsorted(own)
                at[at == len(some)] = 0
                held[which, i] = some[at] == own
    table: list[list[bool]] = held.tolist()
    return table


def idf(size: int, frequency: int) -> float:
    """Return how telling a key is: never zero or less, however common it is."""
    return log(1 + (size - frequency + 0.5) / (frequency + 0.5))


def _cached_lookup(
    snapshot: Snapshot, terms: Sequence[QueryTerm], k1: float
) -> tuple[list[list[tuple[int, int]]], list[float]]:
    """Return where each key's list stands in each part, and the most it can add; remembered for the last query."""
    last = snapshot.last_lookup
    if last is not None and last[0] is terms and last[1] == k1:
        return last[2], last[3]
    places = [_find_spans(part, terms) for part in snapshot.views]
    worth = _max_contributions(snapshot, terms, places, k1)
    if isinstance(terms, tuple):  # a list may change
        snapshot.last_lookup = (terms, k1, places, worth)
    return places, worth


def _find_spans(view: SegmentView, terms: Sequence[QueryTerm]) -> list[tuple[int, int]]:
    words = [one.key for one in terms if not one.is_gram]
    found = view.segment.words.find_spans(words) if words else []
    if len(words) < len(terms):
        found += view.segment.grams.find_spans([one.key for one in terms if one.is_gram])
    return found


def _max_contributions(
    snapshot: Snapshot, terms: Sequence[QueryTerm], spans: Sequence[Sequence[tuple[int, int]]], k1: float
) -> list[float]:
    """Return the most each key can add to a row's score."""
    frequencies = [0] * len(terms)
    for part, place in zip(snapshot.views, spans, strict=True):
        for i, (begin, end) in enumerate(place):
            if part.alive is None:
                frequencies[i] += end - begin
            else:
                lane = part.segment.grams if terms[i].is_gram else part.segment.words
                frequencies[i] += int(np.count_nonzero(part.alive[lane.rows[begin:end]]))
    return [
        one.weight * idf(snapshot.size, frequency) * (1.0 if one.is_gram else k1 + 1)
        for one, frequency in zip(terms, frequencies, strict=True)
    ]


def _posting_lists(snapshot: Snapshot, terms: Sequence[QueryTerm], k1: float) -> list[list[_PostingList]]:
    places, worth = _cached_lookup(snapshot, terms, k1)
    # Words first: grams add to what words found. The same order in every part, so that sums are the same however the
    # rows are spread.
    by_worth = sorted(range(len(terms)), key=lambda i: (terms[i].is_gram, -worth[i], terms[i].key))
    units: dict[int, list[int]] = {}
    for i in by_worth:
        units.setdefault(terms[i].group if terms[i].group >= 0 else ~i, []).append(i)
    found = []
    for place in places:
        lists = []
        for unit in units.values():
            held = [_PostingList(worth[i], *place[i], terms[i].is_gram) for i in unit if place[i][0] < place[i][1]]
            if len(held) > 1:
                lists.append(
                    _PostingList(held[0].max_score, 0, sum(one.end - one.begin for one in held), False, tuple(held))
                )
            else:
                lists += held
        found.append(lists)
    return [lists if lists and not lists[0].is_gram else [] for lists in found]


def _score_segment(
    view: SegmentView, posting_lists: list[_PostingList], k: int, norms: npt.NDArray[np.float32], mask: Mask
) -> tuple[Rows, Scores]:
    words = view.segment.words
    if len(posting_lists) == 1 and mask is None:
        return _score_list(words, posting_lists[0], norms)
    total = np.zeros(len(view.segment), np.float32)
    touched: list[Rows] = []
    number = 0
    left = sum(one.end - one.begin for one in posting_lists)
    rest = sum(one.max_score for one in posting_lists)
    for at, one in enumerate(posting_lists):
        if one.is_gram:
            break
        rows, scores = _score_list(words, one, norms)
        if mask is not None:
            kept = mask[rows]
            rows, scores = rows[kept], scores[kept]
        if touched:
            before = total[rows]
            total[rows] = before + scores
            rows = rows[before == 0]
        else:
            total[rows] = scores
        touched.append(rows)
        number += len(rows)
        left -= one.end - one.begin
        rest -= one.max_score
        # Is it worth finding out what can still win? Only if the lists to come are longer than what there is.
        if number > k and left > number:
            candidates = np.concatenate(touched)
            values = total[candidates]
            least = lower_bound(values, k)
            if rest < least:
                candidates = candidates[values + np.float32(rest) >= least]
                return _score_candidates(view, posting_lists[at + 1 :], candidates, total, k, norms, rest)
    else:
        at = len(posting_lists)
    candidates = touched[0] if len(touched) == 1 else np.concatenate(touched)
    if left > _LOOKUP_COST * len(candidates) and len(candidates) > 4 * k:
        values = total[candidates]
        candidates = candidates[values + np.float32(rest) >= lower_bound(values, k)]
    return _score_candidates(view, posting_lists[at:], candidates, total, k, norms, rest)


def _score_candidates(
    view: SegmentView,
    posting_lists: list[_PostingList],
    candidates: Rows,
    total: Scores,
    k: int,
    norms: npt.NDArray[np.float32],
    remaining_max: float,
) -> tuple[Rows, Scores]:
    """Look the remaining lists up for the candidates alone; nothing outside them can win."""
    words, grams = view.segment.words, view.segment.grams
    for one in posting_lists:
        remaining_max -= one.max_score
        if one.end - one.begin <= _LOOKUP_COST * len(candidates):
            # What this adds to other rows is never looked at.
            if one.is_gram:
                total[grams.rows[one.begin : one.end].astype(np.intp)] += np.float32(one.max_score)
            else:
                all_rows, scores = _score_list(words, one, norms)
                total[all_rows] += scores
            continue
        if one.members:
            most = np.zeros(len(candidates), np.float32)
            for member in one.members:
                hit, values = _look_up(words, member, candidates, norms)
                most[hit] = np.maximum(most[hit], values)
            total[candidates] += most
        else:
            hit, values = _look_up(grams if one.is_gram else words, one, candidates, norms)
            total[candidates[hit]] += values
        if len(candidates) > 4 * k:
            values = total[candidates]
            candidates = candidates[values + np.float32(remaining_max) >= lower_bound(values, k)]
    return candidates, total[candidates]


def _look_up(
    lane: Postings, posting_list: _PostingList, candidates: Rows, norms: npt.NDArray[np.float32]
) -> tuple[Rows, Scores | np.float32]:
    """Return which of the candidates are in a list, and what it adds to each."""
    # Searched in the list's own type: a conversion would copy the whole list.
    rows = lane.rows[posting_list.begin : posting_list.end]
    at = rows.searchsorted(candidates.astype(np.int32))
    at[at == len(rows)] = 0
    hit = np.flatnonzero(rows[at] == candidates)
    if posting_list.is_gram:
        return hit, np.float32(posting_list.max_score)
    counts = lane.counts[posting_list.begin : posting_list.end][at[hit]].astype(np.float32)
    return hit, counts * np.float32(posting_list.max_score) / (counts + norms[candidates[hit]])


def _score_list(words: Postings, posting_list: _PostingList, norms: npt.NDArray[np.float32]) -> tuple[Rows, Scores]:
    """Return the rows of a list, each once, and what it adds to each."""
    if posting_list.members:
        found = [_score_list(words, member, norms) for member in posting_list.members]
        if (posting_list.end - posting_list.begin) * _MERGE_COST < len(norms):
            return _merge_highest(found)
        most = np.zeros(len(norms), np.float32)
        for rows, scores in found:
            most[rows] = np.maximum(most[rows], scores)
        rows = np.flatnonzero(most > 0)  # far quicker of truths than of numbers
        return rows, most[rows]
    # Converted once: indexing with anything but the machine's own integer converts at every use.
    rows = words.rows[posting_list.begin : posting_list.end].astype(np.intp)
    counts = words.counts[posting_list.begin : posting_list.end].astype(np.float32)
    return rows, counts * np.float32(posting_list.max_score) / (counts + norms[rows])


def _merge_highest(lists: Sequence[tuple[Rows, Scores]]) -> tuple[Rows, Scores]:
    """Return the rows of some lists, each once, with the highest of its scores."""
    rows, scores = (np.concatenate(some) for some in zip(*lists, strict=True))
    order = rows.argsort(kind="stable")  # each list is in order already, so that this is a merge
    rows, scores = rows[order], scores[order]
    first = np.flatnonzero(np.concatenate(([True], rows[1:] != rows[:-1])))
    highest: Scores = np.maximum.reduceat(scores, first)
    return rows[first], highest
