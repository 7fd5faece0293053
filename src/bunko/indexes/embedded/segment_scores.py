"""Score the rows of one segment by the posting lists of a query.

Only rows of the lists are scored, and the longest lists are looked up only for rows that can still reach the top k (the
MaxScore idea): the result is exact, and common words cost little.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bunko.indexes.embedded.postings import Postings
from bunko.indexes.embedded.snapshot import SegmentView, kth_highest, lower_bound

if TYPE_CHECKING:
    import numpy.typing as npt

    Mask = npt.NDArray[np.bool_] | None
    Rows = npt.NDArray[np.intp]
    Scores = npt.NDArray[np.float32]

# Looking up one row in a list costs as much as adding this many of its rows.
_LOOKUP_COST = 8
# Merging lists costs as much per row as clearing and scanning this many rows.
_MERGE_COST = 8
# From this size on, adding to all rows is faster than to listed ones, if many are listed.
MIN_DENSE_ROWS = 10_000
# Lists with fewer postings than one in so many rows are added without a look at other rows.
_LISTED_SHARE = 16
# Lists with this share of all that a row can score come last; with 0.1 or 0.2, questions take a tenth longer.
# With fewer postings in them, it takes longer to score again what is left.
_LATE_SHARE, MIN_LATE_POSTINGS = 0.15, 300_000
# If one in so many rows is still reachable, it takes longer to leave out the others of a list.
_MANY_REACHABLE = 8
_LEADERS = 8  # times as many rows as are wanted tell early how high the last of these will score
_LEAST_SCORE = np.finfo(np.float32).tiny
_ROUNDING = 1e-5  # how much a sum of scores in single precision may be off, with far more lists than a query has
# Up to this many postings, and rows of a segment, the calls for each list cost more than what pruning could save.
MAX_POSTINGS_AT_ONCE, _MAX_ROWS_AT_ONCE = 64_000, 50_000
# A long list is added in pieces: the system takes as long to provide the arrays of all of it as to fill them.
PIECE_POSTINGS = 65_536


class PostingList(NamedTuple):
    """The posting list of a key in one segment, with the most it can add to a row's score."""

    max_score: float
    begin: int
    end: int
    is_gram: bool
    members: tuple[PostingList, ...] = ()  # of a group, whose begin and end only give the total length


def score_segment(
    view: SegmentView, posting_lists: list[PostingList], k: int, norms: npt.NDArray[np.float32], mask: Mask
) -> tuple[Rows, Scores]:
    """Return rows of a segment with their scores: all rows that can be among the k best, and some others."""
    words = view.segment.words
    if len(posting_lists) == 1 and mask is None:
        return _score_list(words, posting_lists[0], norms)
    remaining_length = sum([posting_list.end - posting_list.begin for posting_list in posting_lists])
    if remaining_length <= MAX_POSTINGS_AT_ONCE and len(norms) <= _MAX_ROWS_AT_ONCE:
        return _score_at_once(view, posting_lists, norms, mask)
    max_length = len(norms) // _LISTED_SHARE if len(norms) >= MIN_DENSE_ROWS else remaining_length
    remaining_max = sum(posting_list.max_score for posting_list in posting_lists)
    if _length_of_half(posting_lists, remaining_max) > max_length:
        return _score_many(view, posting_lists, k, norms, mask)
    total = np.zeros(len(view.segment), np.float32)
    touched: list[Rows] = []  # the rows with a score
    row_count = 0
    for index, posting_list in enumerate(posting_lists):
        if posting_list.is_gram:
            break
        row_count += posting_list.end - posting_list.begin
        if row_count > max_length:
            return _score_many(view, posting_lists, k, norms, mask)
        touched.append(_add_list(total, words, posting_list, norms, mask, is_first=index == 0))
        remaining_length -= posting_list.end - posting_list.begin
        remaining_max -= posting_list.max_score
        # Pruning pays only if the remaining lists are longer than the list of candidates.
        if remaining_length > row_count > k:
            rows = _concatenate(touched)
            values = total[rows]
            threshold = lower_bound(values, k) if len(rows) > k else np.float32(0)
            if remaining_max < threshold:
                candidates = rows[values >= _min_score(threshold, remaining_max)]
                return _score_candidates(view, posting_lists[index + 1 :], candidates, total, k, norms, remaining_max)
    else:
        index = len(posting_lists)
    # Grams only add to rows that words found, so those have to be known now.
    candidates = _concatenate(touched)
    if remaining_length > _LOOKUP_COST * len(candidates) and len(candidates) > 4 * k:
        values = total[candidates]
        candidates = candidates[values >= _min_score(lower_bound(values, k), remaining_max)]
    return _score_candidates(view, posting_lists[index:], candidates, total, k, norms, remaining_max)


def _score_many(
    view: SegmentView, posting_lists: list[PostingList], k: int, norms: npt.NDArray[np.float32], mask: Mask
) -> tuple[Rows, Scores]:
    """Return the rows of long lists that can be among the k best, with their scores.

    The lists that add least for their length come last, and only to the rows that can still reach the k-th best. What
    is left is scored again in the usual order, as sums of floats depend on it.
    """
    words, grams = view.segment.words, view.segment.grams
    early, late = _split_by_cost(posting_lists)
    total = np.zeros(len(norms), np.float32)
    has_groups = any(posting_list.members for posting_list in posting_lists)
    group_scores = np.zeros_like(total) if has_groups else np.empty(0, np.float32)
    for posting_list in early:
        if posting_list.members:
            group_scores.fill(0)
            for piece in _pieces(*posting_list.members):
                np.maximum.at(group_scores, *_score_list(words, piece, norms))
            total += group_scores
        elif not posting_list.is_gram:
            for piece in _pieces(posting_list):
                np.add.at(total, *_score_list(words, piece, norms))  # faster than += with an index
    if mask is not None:
        total *= mask
    # Rows found by words, most of the best among them: the k-th best of these is no better than that of all.
    leader_count = _LEADERS * k
    least = lower_bound(total, leader_count) if len(total) > leader_count else _LEAST_SCORE
    leaders = np.flatnonzero(total >= max(least, _LEAST_SCORE))
    is_found = None if late else total > 0
    for posting_list in early:
        for piece in _pieces(posting_list) if posting_list.is_gram else ():
            np.add.at(total, _gram_rows(grams, piece), np.float32(piece.max_score))
    remaining_max = sum(posting_list.max_score for posting_list in late)
    for posting_list in late:
        is_reachable = _find_reachable(total, leaders, k, remaining_max, mask)
        rows_to_score = is_reachable if np.count_nonzero(is_reachable) * _MANY_REACHABLE < len(norms) else None
        if posting_list.members:
            pieces = _pieces(*posting_list.members)
            parts = [_score_reachable(words, piece, norms, rows_to_score) for piece in pieces]
            rows = np.concatenate([part[0] for part in parts])
            group_scores[rows] = 0
            for part in parts:
                np.maximum.at(group_scores, *part)
            total[rows] += group_scores[rows]  # once, however often a row is listed
        else:
            for piece in _pieces(posting_list):
                postings = grams if piece.is_gram else words
                np.add.at(total, *_score_reachable(postings, piece, norms, rows_to_score))
        remaining_max -= posting_list.max_score
    is_reachable = _find_reachable(total, leaders, k, 0.0, mask)
    if is_found is not None:
        candidates = np.flatnonzero(is_reachable & is_found)
        return candidates, total[candidates]
    candidates = np.flatnonzero(is_reachable)
    total[candidates] = 0
    remaining_max = sum(posting_list.max_score for posting_list in posting_lists)
    word_lists = [posting_list for posting_list in posting_lists if not posting_list.is_gram]
    candidates, scores = _score_candidates(view, word_lists, candidates, total, k, norms, remaining_max)
    remaining_max -= sum(posting_list.max_score for posting_list in word_lists)
    # Grams only add to rows that words found.
    gram_lists = posting_lists[len(word_lists) :]
    return _score_candidates(view, gram_lists, candidates[scores > 0], total, k, norms, remaining_max)


def _length_of_half(posting_lists: list[PostingList], max_score: float) -> int:
    """Return the length of the first lists that can add half of a score: before, no other row can be left out."""
    length, half = 0, max_score / 2
    for posting_list in posting_lists:
        if half <= 0:
            break
        length += posting_list.end - posting_list.begin
        half -= posting_list.max_score
    return length


def _pieces(*posting_lists: PostingList) -> Iterator[PostingList]:
    """Yield lists in pieces."""
    for posting_list in posting_lists:
        for begin in range(posting_list.begin, posting_list.end, PIECE_POSTINGS):
            end = min(begin + PIECE_POSTINGS, posting_list.end)
            yield posting_list._replace(begin=begin, end=end)


def _split_by_cost(posting_lists: list[PostingList]) -> tuple[list[PostingList], list[PostingList]]:
    """Return the lists that are added to all rows, and those that add little for their length, the highest first."""
    rest = _LATE_SHARE * sum(posting_list.max_score for posting_list in posting_lists)
    value = [posting_list.max_score / (posting_list.end - posting_list.begin) for posting_list in posting_lists]
    late = []
    for index in sorted(range(1, len(posting_lists)), key=value.__getitem__):
        rest -= posting_lists[index].max_score
        if rest < 0:
            break
        late.append(index)
    if sum(posting_lists[index].end - posting_lists[index].begin for index in late) < MIN_LATE_POSTINGS:
        return posting_lists, []
    early = [posting_list for index, posting_list in enumerate(posting_lists) if index not in late]
    return early, sorted((posting_lists[index] for index in late), key=lambda posting_list: -posting_list.max_score)


def _find_reachable(total: Scores, leaders: Rows, k: int, remaining_max: float, mask: Mask) -> npt.NDArray[np.bool_]:
    """Return which rows can reach the k-th best of the leaders by lists that are not added yet."""
    threshold = kth_highest(total[leaders], k) if len(leaders) >= k else _LEAST_SCORE
    is_reachable: npt.NDArray[np.bool_] = total >= _min_score(threshold, remaining_max)
    return is_reachable if mask is None else is_reachable & mask


def _score_reachable(
    postings: Postings,
    posting_list: PostingList,
    norms: npt.NDArray[np.float32],
    is_reachable: Mask,
) -> tuple[Rows, Scores | np.float32]:
    """Return those rows of a list that are reachable, None meaning all, and their scores."""
    if is_reachable is None:
        if posting_list.is_gram:
            return _gram_rows(postings, posting_list), np.float32(posting_list.max_score)
        return _score_list(postings, posting_list, norms)
    rows = postings.rows[posting_list.begin : posting_list.end].astype(np.intp)
    selected = is_reachable.take(rows).nonzero()[0]
    rows = rows.take(selected)
    if posting_list.is_gram:
        return rows, np.float32(posting_list.max_score)
    counts = postings.counts[posting_list.begin : posting_list.end].take(selected).astype(np.float32)
    return rows, counts * np.float32(posting_list.max_score) / (counts + norms.take(rows))


def _gram_rows(grams: Postings, posting_list: PostingList) -> Rows:
    return grams.rows[posting_list.begin : posting_list.end].astype(np.intp)


def _score_at_once(
    view: SegmentView, posting_lists: list[PostingList], norms: npt.NDArray[np.float32], mask: Mask
) -> tuple[Rows, Scores]:
    """Return all rows of the lists of words with their scores, with few calls however many lists there are."""
    word_lists = [posting_list for posting_list in posting_lists if not posting_list.is_gram]
    gram_lists = posting_lists[len(word_lists) :]
    if len(word_lists) == 1 and not word_lists[0].members:
        total = np.zeros(len(norms), np.float32)
        rows, scores = _score_list(view.segment.words, word_lists[0], norms)
        total[rows] = scores
        candidates = rows if mask is None else rows[mask[rows]]
    else:
        total = _add_lists(view.segment.words, word_lists, norms)
        candidates = (total > 0 if mask is None else (total > 0) & mask).nonzero()[0]
    if gram_lists:
        gram_rows = view.segment.grams.rows
        rows = np.concatenate([gram_rows[gram.begin : gram.end] for gram in gram_lists], dtype=np.intp)
        np.add.at(total, rows, _repeat_max_scores(gram_lists))
    return candidates, total[candidates]


def _add_lists(words: Postings, posting_lists: list[PostingList], norms: npt.NDArray[np.float32]) -> Scores:
    """Return the scores of all rows by lists that are short in total."""
    if len(posting_lists) == 1:
        return _dense_scores(words, posting_lists[0], norms)
    members = [member for posting_list in posting_lists for member in posting_list.members or (posting_list,)]
    rows, scores = _score_lists(words, members, norms)
    total, group_scores = np.zeros((2, len(norms)), np.float32)
    end = 0
    for posting_list in posting_lists:
        begin, end = end, end + posting_list.end - posting_list.begin
        if posting_list.members:
            group_scores.fill(0)
            np.maximum.at(group_scores, rows[begin:end], scores[begin:end])
            total += group_scores
        else:
            np.add.at(total, rows[begin:end], scores[begin:end])
    return total


def _score_lists(
    words: Postings, posting_lists: Sequence[PostingList], norms: npt.NDArray[np.float32]
) -> tuple[Rows, Scores]:
    """Return the rows of several lists, one list after the other, and what each list adds to the scores of its rows."""
    rows = np.concatenate([words.rows[member.begin : member.end] for member in posting_lists], dtype=np.intp)
    counts = np.concatenate([words.counts[member.begin : member.end] for member in posting_lists], dtype=np.float32)
    return rows, counts * _repeat_max_scores(posting_lists) / (counts + norms.take(rows))


def _repeat_max_scores(posting_lists: Sequence[PostingList]) -> Scores:
    """Return the maximum score of its list for each posting."""
    lengths = [posting_list.end - posting_list.begin for posting_list in posting_lists]
    return np.array([posting_list.max_score for posting_list in posting_lists], np.float32).repeat(lengths)


def _add_list(
    total: Scores,
    words: Postings,
    posting_list: PostingList,
    norms: npt.NDArray[np.float32],
    mask: Mask,
    *,
    is_first: bool,
) -> Rows:
    """Add the scores of a list, and return its rows that had none."""
    rows, scores = _score_list(words, posting_list, norms)
    if mask is not None:
        is_allowed = mask[rows]
        rows, scores = rows[is_allowed], scores[is_allowed]
    if is_first:
        total[rows] = scores
        return rows
    previous = total[rows]
    total[rows] = previous + scores
    new_rows: Rows = rows[previous == 0]
    return new_rows


def _concatenate(touched: list[Rows]) -> Rows:
    return touched[0] if len(touched) == 1 else np.concatenate(touched)


def _score_candidates(
    view: SegmentView,
    posting_lists: list[PostingList],
    candidates: Rows,
    total: Scores,
    k: int,
    norms: npt.NDArray[np.float32],
    remaining_max: float,
) -> tuple[Rows, Scores]:
    """Look up the remaining lists for the candidates alone; no other row can reach the top k."""
    words, grams = view.segment.words, view.segment.grams
    for posting_list in posting_lists:
        remaining_max -= posting_list.max_score
        if posting_list.end - posting_list.begin <= _LOOKUP_COST * len(candidates):
            # This also changes the totals of other rows, which are not read again.
            if posting_list.is_gram:
                np.add.at(total, _gram_rows(grams, posting_list), np.float32(posting_list.max_score))
            else:
                np.add.at(total, *_score_list(words, posting_list, norms))
            continue
        if posting_list.members:
            group_scores = np.zeros(len(candidates), np.float32)
            for member in posting_list.members:
                matching, values = look_up(words, member, candidates, norms)
                group_scores[matching] = np.maximum(group_scores[matching], values)
            total[candidates] += group_scores
        else:
            matching, values = look_up(grams if posting_list.is_gram else words, posting_list, candidates, norms)
            total[candidates[matching]] += values
        if len(candidates) > 4 * k:
            values = total[candidates]
            candidates = candidates[values >= _min_score(lower_bound(values, k), remaining_max)]
    return candidates, total[candidates]


def _min_score(threshold: np.float32, remaining_max: float) -> np.float32:
    """Return the score from which a row can reach a threshold by the remaining lists, less what rounding may change."""
    return np.float32(float(threshold) * (1 - _ROUNDING) - remaining_max * (1 + _ROUNDING))


def look_up(
    postings: Postings, posting_list: PostingList, candidates: Rows, norms: npt.NDArray[np.float32]
) -> tuple[Rows, Scores | np.float32]:
    """Return which of the candidates are in a list, and their scores."""
    # The candidates are converted to the list's type: converting the list would copy all of it.
    rows = postings.rows[posting_list.begin : posting_list.end]
    positions = rows.searchsorted(candidates.astype(np.int32))
    positions[positions == len(rows)] = 0
    matching = np.flatnonzero(rows[positions] == candidates)
    if posting_list.is_gram:
        return matching, np.float32(posting_list.max_score)
    counts = postings.counts[posting_list.begin : posting_list.end][positions[matching]].astype(np.float32)
    return matching, counts * np.float32(posting_list.max_score) / (counts + norms[candidates[matching]])


def _score_list(words: Postings, posting_list: PostingList, norms: npt.NDArray[np.float32]) -> tuple[Rows, Scores]:
    """Return the distinct rows of a list and their scores."""
    if posting_list.members:
        if len(norms) > _MAX_ROWS_AT_ONCE and not _is_dense(posting_list, len(norms)):
            return _merge_highest([_score_list(words, member, norms) for member in posting_list.members])
        group_scores = _dense_scores(words, posting_list, norms)
        rows = (group_scores > 0).nonzero()[0]
        return rows, group_scores[rows]
    # Converted once: indexing with any type but intp converts at every use.
    rows = words.rows[posting_list.begin : posting_list.end].astype(np.intp)
    counts = words.counts[posting_list.begin : posting_list.end].astype(np.float32)
    return rows, counts * np.float32(posting_list.max_score) / (counts + norms.take(rows))


def _is_dense(posting_list: PostingList, row_count: int) -> bool:
    return (posting_list.end - posting_list.begin) * _MERGE_COST >= row_count


def _dense_scores(words: Postings, posting_list: PostingList, norms: npt.NDArray[np.float32]) -> Scores:
    """Return the scores of all rows by the member of a group that counts most in each."""
    group_scores = np.zeros(len(norms), np.float32)
    if posting_list.end - posting_list.begin <= MAX_POSTINGS_AT_ONCE:
        np.maximum.at(group_scores, *_score_lists(words, posting_list.members, norms))
        return group_scores
    for member in posting_list.members:
        np.maximum.at(group_scores, *_score_list(words, member, norms))
    return group_scores


def _merge_highest(lists: Sequence[tuple[Rows, Scores]]) -> tuple[Rows, Scores]:
    """Return the distinct rows of several lists, each with its highest score."""
    rows, scores = (np.concatenate(arrays) for arrays in zip(*lists, strict=True))
    order = rows.argsort(kind="stable")  # each list is sorted already, so this is a merge
    rows, scores = rows[order], scores[order]
    first = np.flatnonzero(np.concatenate(([True], rows[1:] != rows[:-1])))
    highest: Scores = np.maximum.reduceat(scores, first)
    return rows[first], highest
