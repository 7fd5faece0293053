"""Select hits from a ranking: by the phrases in their texts, once for each passage, and some of each document."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from bunko.protocols import Embedder, IndexView, Store
from bunko.records import QueryTerm
from bunko.search.fetch import fetch_hits, filter_documents
from bunko.search.rank import rank_rows
from bunko.search.request import MAX_HITS, RankRequest, Selection, clean_query
from bunko.text import ngrams
from bunko.text.phrases import fold_text, has_phrase
from bunko.types import Hit

# If the first rows are too few, this many times as many are ranked.
_DEPTH_FACTOR = 8
# A phrase in more rows than these is in enough of the first rows of any ranking.
_MAX_PHRASE_ROWS = 1000
_MAX_GRAMS = 128


def select_hits(
    store: Store,
    view: IndexView,
    tools: Mapping[int, str],
    embedder: Embedder | None,
    request: RankRequest,
    selection: Selection,
) -> list[Hit]:
    """Return the best hits of some tools that a selection keeps; call it as `search`.

    A longer list begins with the same hits as a shorter one of the same request.
    """
    return select_from(selection, _ranked_hits(store, view, tools, embedder, request, selection))


def select_from(selection: Selection, ranked_hits: Iterable[Hit]) -> list[Hit]:
    """Return the hits that a selection keeps, from the first of these on."""
    selected = _SelectedHits(selection)
    for hit in ranked_hits:
        selected.add(hit)
        if selected.is_complete:
            break
    return selected.finish()


def ranked_candidates(
    store: Store,
    view: IndexView,
    tools: Mapping[int, str],
    embedder: Embedder | None,
    request: RankRequest,
    selection: Selection,
) -> list[Hit]:
    """Return the hits that a selection may keep in any order: at least `rerank_count`, and enough to select from."""
    selected, candidates = _SelectedHits(selection), []
    for hit in _ranked_hits(store, view, tools, embedder, request, selection):
        if selected.allows(hit):
            selected.add(hit)
            candidates.append(hit)
            if selected.is_complete and len(candidates) >= request.rerank_count:
                break
    return candidates


def _ranked_hits(
    store: Store,
    view: IndexView,
    tools: Mapping[int, str],
    embedder: Embedder | None,
    request: RankRequest,
    selection: Selection,
) -> Iterator[Hit]:
    """Yield hits, best first, with the phrases of a selection as far as the index can tell.

    If more are needed, the rows of a deeper ranking follow those of the first, whose order stays.
    """
    query, where = clean_query(request.query), filter_documents(store, tools, request)
    rows_with_phrases: set[int] | None = None
    if selection.phrases:
        rows_with_phrases, where = _find_phrases(store, view, selection, where)
    depth = request.rows_to_select_from
    max_depth = max(depth, MAX_HITS)
    seen_rows: set[int] = set()
    while rows_with_phrases is None or not rows_with_phrases <= seen_rows:
        ranked_rows = rank_rows(view, query, embedder, replace(request, top_k=MAX_HITS, depth=depth), where)
        new_rows = [ranked_row for ranked_row in ranked_rows if ranked_row.row not in seen_rows]
        seen_rows.update(ranked_row.row for ranked_row in new_rows)
        rows = [row for row in new_rows if rows_with_phrases is None or row.row in rows_with_phrases]
        for start in range(0, len(rows), selection.limit):
            yield from fetch_hits(store, view, tools, request, rows[start : start + selection.limit])
        is_below_minimum = selection.min_score is not None and rows and rows[-1].score < selection.min_score
        if not new_rows or is_below_minimum or depth >= max_depth or len(seen_rows) >= view.size:
            return
        depth = min(depth * _DEPTH_FACTOR, max_depth)


def _find_phrases(
    store: Store, view: IndexView, selection: Selection, where: tuple[int, ...] | None
) -> tuple[set[int] | None, tuple[int, ...] | None]:
    """Return the rows that contain the phrases and their documents; None and `where` if there are very many."""
    candidates: set[int] | None = None
    for phrase in selection.phrases:
        rows = _rows_with_grams(view, phrase, where)
        if rows is not None:
            candidates = rows if candidates is None else candidates & rows
    if candidates is None:
        return None, where
    rows_by_id = dict(zip(view.chunk_ids(list(candidates)), candidates, strict=True))
    matching = {
        chunk_id: chunk_row
        for chunk_id, chunk_row in store.documents.chunks(list(rows_by_id)).items()
        if _allows_text(selection, chunk_row.chunk.text_to_index(chunk_row.title))
    }
    document_ids = {chunk_row.document_id for chunk_row in matching.values()}
    return {rows_by_id[chunk_id] for chunk_id in matching}, tuple(sorted(document_ids))


def _rows_with_grams(view: IndexView, phrase: str, where: tuple[int, ...] | None) -> set[int] | None:
    """Return the rows that have all n-grams of a phrase; None if it has none, or if there are too many rows."""
    grams = ngrams.query_grams(fold_text(phrase))
    longer = [gram for gram in grams if not ngrams.is_single_char(gram)][:_MAX_GRAMS]
    if longer:
        terms = [QueryTerm(gram.key, 1.0, is_gram=True) for gram in longer]
        rows = view.rank_grams(terms, _MAX_PHRASE_ROWS, min_share=1.0, where=where).rows
    elif grams:
        rows = view.rank_key_ranges([ngrams.pair_key_range(grams[0].spelling)], _MAX_PHRASE_ROWS, where=where).rows
    else:
        return None
    return None if len(rows) == _MAX_PHRASE_ROWS else set(rows)


def _allows_text(selection: Selection, text: str) -> bool:
    folded = fold_text(text)
    return all(has_phrase(folded, phrase) for phrase in selection.phrases) and not any(
        has_phrase(folded, phrase) for phrase in selection.excluded
    )


@dataclass(slots=True, eq=False)
class _Candidate:
    hit: Hit
    position: int  # in the list without folding


class _SelectedHits:
    """Collects the hits that a selection keeps, in the order of a ranking."""

    def __init__(self, selection: Selection) -> None:
        self._selection = selection
        self._folders = dict(selection.folders)
        self._innermost_first = list(self._folders)
        self._returned: list[_Candidate] = []
        self._folded: list[_Candidate] = []
        self._counts: Counter[tuple[str, str]] = Counter()  # returned hits by document
        self._candidates_by_file: dict[str, list[_Candidate]] = {}
        self._hits_after_last = 0

    @property
    def is_complete(self) -> bool:
        """Return whether no further hit changes what is returned."""
        if len(self._returned) < self._selection.limit:
            return False
        # The same passage in another tool follows closely, if not at once.
        return not self._folders or self._hits_after_last >= self._selection.limit

    def allows(self, hit: Hit) -> bool:
        """Return whether the score and the text of a hit are as the selection wants them."""
        selection = self._selection
        # Scores are shown with four digits, and people copy what they see.
        if selection.min_score is not None and round(hit.score, 4) < selection.min_score:
            return False
        has_phrases = selection.phrases or selection.excluded
        return not has_phrases or _allows_text(selection, hit.chunk.text_to_index(hit.title))

    def add(self, hit: Hit) -> None:
        """Add the next hit of the ranking."""
        selection = self._selection
        if not self.allows(hit):
            return
        if self._folders and self._replace_repeated(hit):
            return
        if len(self._returned) >= selection.limit:
            self._hits_after_last += 1
            return
        candidate = _Candidate(hit, len(self._returned) + len(self._folded) + 1)
        if hit.tool in self._folders:
            self._candidates_by_file.setdefault(self._file_of(hit), []).append(candidate)
        document = self._document_of(hit)
        if selection.per_document is not None and self._counts[document] >= selection.per_document:
            self._folded.append(candidate)
        else:
            self._counts[document] += 1
            self._returned.append(candidate)

    def finish(self) -> list[Hit]:
        """Return the hits; the last of a document has the number of those that were folded."""
        limit = self._selection.limit
        last_position = max(limit, self._returned[-1].position) if self._returned else 0
        missing = limit - len(self._returned) if self._selection.fill_up else 0
        hits = [candidate.hit for candidate in (*self._returned, *self._folded[:missing])]
        counts = Counter(
            self._document_of(candidate.hit)
            for candidate in self._folded[missing:]
            if candidate.position <= last_position  # the others would not have been returned anyway
        )
        for index in reversed(range(len(hits))):
            if count := counts.pop(self._document_of(hits[index]), 0):
                hits[index] = replace(hits[index], more_in_document=count)
        return hits

    def _replace_repeated(self, hit: Hit) -> bool:
        """Return whether another tool has found the same passage; the innermost folder is named."""
        if hit.tool not in self._folders:
            return False
        text = _without_blanks(hit.text)
        for candidate in self._candidates_by_file.get(self._file_of(hit), ()):
            other = candidate.hit
            other_text = _without_blanks(other.text)
            if hit.tool != other.tool and (text in other_text or other_text in text):
                if text == other_text and self._is_inside(hit, other):
                    candidate.hit = hit
                return True
        return False

    def _is_inside(self, hit: Hit, other: Hit) -> bool:
        return self._innermost_first.index(hit.tool) < self._innermost_first.index(other.tool)

    def _document_of(self, hit: Hit) -> tuple[str, str]:
        return (hit.tool, hit.uri) if hit.tool not in self._folders else ("", f"{self._folders[hit.tool]}/{hit.uri}")

    def _file_of(self, hit: Hit) -> str:
        path = f"{self._folders[hit.tool]}/{hit.uri}"
        file, mark, entry = path.rpartition("#")
        return path if not mark or "." in entry or "/" in entry else file


def _without_blanks(text: str) -> str:
    return "".join(text.split())
