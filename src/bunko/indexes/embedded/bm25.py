"""Rank rows by BM25 over words, with character bigrams as an additional signal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bunko.indexes.embedded.segment_scores import MAX_POSTINGS_AT_ONCE, PostingList, look_up, score_segment
from bunko.indexes.embedded.snapshot import SegmentView, Snapshot, TopK
from bunko.indexes.term_weights import countable_terms, idf, term_idfs
from bunko.types.records import EMPTY_RANKING, GRAM_WEIGHT, QueryTerm, Ranking

if TYPE_CHECKING:
    import numpy.typing as npt

    Mask = npt.NDArray[np.bool_] | None
    Rows = npt.NDArray[np.intp]
    Scores = npt.NDArray[np.float32]


def rank_terms(
    snapshot: Snapshot, terms: Sequence[QueryTerm], k: int, *, k1: float, b: float, masks: Sequence[Mask]
) -> Ranking:
    """Return the k best rows."""
    if not snapshot.views or not terms:
        return EMPTY_RANKING
    top = TopK(snapshot, k)
    for view_index, posting_lists in enumerate(_posting_lists(snapshot, terms, k1)):
        if posting_lists:
            view = snapshot.views[view_index]
            top.add(
                view_index,
                *score_segment(view, posting_lists, k, view.norms(k1, b, snapshot.average_length), masks[view_index]),
            )
    return top.ranking()


def max_possible_score(snapshot: Snapshot, terms: Sequence[QueryTerm], *, k1: float) -> float:
    """Return an upper bound of a row's score by words: the score of a row with unlimited occurrences of each."""
    group_scores: dict[int, float] = {}
    lookup = _cached_lookup(snapshot, terms, k1)
    is_countable = countable_terms(terms, lookup.frequencies)
    for i, (term, score) in enumerate(zip(terms, lookup.contributions, strict=True)):
        if not term.is_gram and is_countable[i]:
            group = term.group if term.group >= 0 else ~i
            group_scores[group] = max(group_scores.get(group, 0.0), score)
    return sum(group_scores.values())


def rank_gram_overlap(
    snapshot: Snapshot, terms: Sequence[QueryTerm], k: int, *, min_share: float, masks: Sequence[Mask]
) -> Ranking:
    """Return the k rows with the highest idf sum of their grams, among rows with at least `min_share` of the grams."""
    spans = [_find_spans(view, terms) for view in snapshot.views]
    contributions = _max_contributions(snapshot, terms, _frequencies(snapshot, terms, spans), 0.0)
    values = np.array([GRAM_WEIGHT * contribution for contribution in contributions], np.float32)
    weights = np.array([term.weight for term in terms], np.float32)
    min_weight = min_share * sum(term.weight for term in terms)
    top = TopK(snapshot, k)
    for view_index, view in enumerate(snapshot.views):
        scores, shares = np.zeros((2, len(view.segment)), np.float32)
        view_spans, gram_rows = spans[view_index], view.segment.grams.rows
        lengths = [end - begin for begin, end in view_spans]
        lists_at_once = max(len(terms), 1) if sum(lengths) <= MAX_POSTINGS_AT_ONCE else 1
        for first in range(0, len(terms), lists_at_once):
            part = slice(first, first + lists_at_once)
            rows = np.concatenate([gram_rows[begin:end] for begin, end in view_spans[part]], dtype=np.intp)
            np.add.at(scores, rows, values[part].repeat(lengths[part]))
            np.add.at(shares, rows, weights[part].repeat(lengths[part]))
        matching = np.flatnonzero(shares >= min_weight)
        mask = masks[view_index]
        if mask is not None:
            matching = matching[mask[matching]]
        top.add(view_index, matching, scores[matching])
    return top.ranking()


def rank_key_ranges(snapshot: Snapshot, ranges: Sequence[tuple[int, int]], k: int, *, masks: Sequence[Mask]) -> Ranking:
    """Return the k rows with grams in the most key ranges; rarer ranges count more."""
    rows_by_view = []
    for view, mask in zip(snapshot.views, masks, strict=True):
        spans = [view.segment.grams.range_span(*key_range) for key_range in ranges]
        row_lists = [np.unique(view.segment.grams.rows[begin:end]).astype(np.intp) for begin, end in spans]
        rows_by_view.append(row_lists if mask is None else [rows[mask[rows]] for rows in row_lists])
    values = [
        GRAM_WEIGHT * idf(snapshot.size, sum(len(row_lists[i]) for row_lists in rows_by_view))
        for i in range(len(ranges))
    ]
    top = TopK(snapshot, k)
    for view_index, view in enumerate(snapshot.views):
        scores = np.zeros(len(view.segment), np.float32)
        for rows, value in zip(rows_by_view[view_index], values, strict=True):
            scores[rows] += value
        matching = np.flatnonzero(scores > 0)
        top.add(view_index, matching, scores[matching])
    return top.ranking()


def matches(snapshot: Snapshot, terms: Sequence[QueryTerm], rows: Sequence[int]) -> list[list[bool]]:
    """Return for each row which of the terms it contains."""
    spans = _spans(snapshot, terms)
    if len(rows) == 1:
        view_index, segment_row = snapshot.locate(rows[0])
        return [_matches_of(snapshot.views[view_index], terms, spans[view_index], segment_row)]
    is_match = np.zeros((len(rows), len(terms)), bool)
    for view_index, selected, positions in snapshot.split_by_segment(rows):
        segment_rows = positions.astype(np.int32)  # as the lists are: else they would be converted
        view = snapshot.views[view_index]
        for i, (term, (begin, end)) in enumerate(zip(terms, spans[view_index], strict=True)):
            if begin < end:
                listed_rows = (view.segment.grams if term.is_gram else view.segment.words).rows[begin:end]
                found_rows = listed_rows.take(listed_rows.searchsorted(segment_rows), mode="clip")
                is_match[selected, i] = found_rows == segment_rows
    table: list[list[bool]] = is_match.tolist()
    return table


def _matches_of(
    view: SegmentView, terms: Sequence[QueryTerm], spans: Sequence[tuple[int, int]], row: int
) -> list[bool]:
    """Return which of the terms a row of a segment contains, without arrays for each term."""
    word_rows, gram_rows, key = view.segment.words.rows, view.segment.grams.rows, np.int32(row)
    is_match = []
    for term, (begin, end) in zip(terms, spans, strict=True):
        listed_rows = gram_rows if term.is_gram else word_rows
        position = begin + int(listed_rows[begin:end].searchsorted(key)) if begin < end else end
        is_match.append(position < end and listed_rows.item(position) == row)
    return is_match


def term_scores(
    snapshot: Snapshot, terms: Sequence[QueryTerm], rows: Sequence[int], *, k1: float, b: float
) -> list[list[float]]:
    """Return for each row what each of the terms alone adds to its score, without regard to groups."""
    table = np.zeros((len(rows), len(terms)), np.float32)
    spans, contributions, *_ = _cached_lookup(snapshot, terms, k1)
    for view_index, selected, candidates in snapshot.split_by_segment(rows):
        view = snapshot.views[view_index]
        norms = view.norms(k1, b, snapshot.average_length)
        for i, (term, (begin, end)) in enumerate(zip(terms, spans[view_index], strict=True)):
            if begin < end:
                postings = view.segment.grams if term.is_gram else view.segment.words
                posting_list = PostingList(contributions[i], begin, end, term.is_gram)
                matching, values = look_up(postings, posting_list, candidates, norms)
                table[selected[matching], i] = values
    scores: list[list[float]] = table.tolist()
    return scores


class _Lookup(NamedTuple):
    """The span of each key's list in each segment, the most it can add to a score, and in how many rows it is."""

    spans: list[list[tuple[int, int]]]
    contributions: list[float]
    frequencies: list[int]
    places: dict[int, int]  # of each key among these


def _cached_lookup(snapshot: Snapshot, terms: Sequence[QueryTerm], k1: float) -> _Lookup:
    """Look up the keys of a query; the last query is cached."""
    last = snapshot.last_lookup
    if last is not None and last[0] is terms and last[1] == k1:
        lookup: _Lookup = last[2]
        return lookup
    spans = [_find_spans(view, terms) for view in snapshot.views]
    frequencies = _frequencies(snapshot, terms, spans)
    places = {term.key: place for place, term in enumerate(terms)}
    lookup = _Lookup(spans, _max_contributions(snapshot, terms, frequencies, k1), frequencies, places)
    if isinstance(terms, tuple):  # a list may change
        snapshot.last_lookup = (terms, k1, lookup)
    return lookup


def _spans(snapshot: Snapshot, terms: Sequence[QueryTerm]) -> list[list[tuple[int, int]]]:
    """Return the span of each key's list in each segment, from the last lookup if it had all of these terms."""
    last = snapshot.last_lookup
    if last is not None:
        lookup: _Lookup = last[2]
        places = [lookup.places.get(term.key, -1) for term in terms]
        if -1 not in places:
            return [[view_spans[place] for place in places] for view_spans in lookup.spans]
    return [_find_spans(view, terms) for view in snapshot.views]


def _find_spans(view: SegmentView, terms: Sequence[QueryTerm]) -> list[tuple[int, int]]:
    """Return the span of each term's list in a segment; relies on words coming before n-grams in `terms`."""
    word_keys = [term.key for term in terms if not term.is_gram]
    spans = view.segment.words.find_spans(word_keys) if word_keys else []
    if len(word_keys) < len(terms):
        spans += view.segment.grams.find_spans([term.key for term in terms if term.is_gram])
    return spans


def _frequencies(
    snapshot: Snapshot, terms: Sequence[QueryTerm], spans: Sequence[Sequence[tuple[int, int]]]
) -> list[int]:
    """Return in how many rows that are alive each key is."""
    frequencies = [0] * len(terms)
    for view, view_spans in zip(snapshot.views, spans, strict=True):
        alive, segment = view.alive, view.segment
        for i, (begin, end) in enumerate(view_spans):
            if alive is None:
                frequencies[i] += end - begin
            else:
                rows = (segment.grams if terms[i].is_gram else segment.words).rows[begin:end]
                frequencies[i] += int(np.count_nonzero(alive[rows]))
    return frequencies


def _max_contributions(
    snapshot: Snapshot, terms: Sequence[QueryTerm], frequencies: Sequence[int], k1: float
) -> list[float]:
    """Return the most each key can add to a row's score."""
    return [
        weight * term_idf * (1.0 if is_gram else k1 + 1)
        for (_, weight, is_gram, _), term_idf in zip(terms, term_idfs(terms, frequencies, snapshot.size), strict=True)
    ]


def _posting_lists(snapshot: Snapshot, terms: Sequence[QueryTerm], k1: float) -> list[list[PostingList]]:
    """Return the posting lists of each segment, those that can add most first; none where no word matches."""
    spans, contributions, *_ = _cached_lookup(snapshot, terms, k1)
    # Words first: grams only add to rows that words found. The order is the same in every segment, so that sums do not
    # depend on how rows are spread over segments.
    order = sorted(
        [
            (is_gram, -contribution, key, group if group >= 0 else ~i, i)
            for i, ((key, _, is_gram, group), contribution) in enumerate(zip(terms, contributions, strict=True))
        ]
    )
    lists_by_view = []
    for view_spans in spans:
        groups: dict[int, list[PostingList]] = {}
        for is_gram, negative_max, _, group, i in order:
            members = groups.setdefault(group, [])
            begin, end = view_spans[i]
            if begin < end:
                members.append(PostingList(-negative_max, begin, end, is_gram))
        lists = [members[0] if len(members) == 1 else _join_group(members) for members in groups.values() if members]
        lists_by_view.append(lists if lists and not lists[0].is_gram else [])
    return lists_by_view


def _join_group(members: list[PostingList]) -> PostingList:
    total_length = sum(member.end - member.begin for member in members)
    return PostingList(members[0].max_score, 0, total_length, False, tuple(members))
