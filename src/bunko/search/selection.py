"""Select hits in the order of their ranking: those that a search allows, from enough documents, each passage once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from bunko.search.request import MAX_HITS, RankRequest, Selection
from bunko.text.language import detect_language
from bunko.text.phrases import fold_text, has_phrase
from bunko.types import ArmScore, Hit

_LANGUAGE_CHARS = 400


def allows_text(selection: Selection, text: str) -> bool:
    """Return whether a text has the phrases that a selection wants, and nothing that it excludes."""
    folded = fold_text(text)
    return all(has_phrase(folded, phrase) for phrase in selection.phrases) and not any(
        has_phrase(folded, phrase) for phrase in selection.excluded
    )


def hit_language(hit: Hit) -> str:
    """Return the language of a hit, as far as its beginning tells: ja, en, or empty."""
    return detect_language(hit.chunk.text[:_LANGUAGE_CHARS])


@dataclass(slots=True, eq=False)
class _Candidate:
    hit: Hit
    position: int  # in the list without folding


class SelectedHits:
    """Collects the hits that a selection keeps, in the order of a ranking."""

    def __init__(self, selection: Selection) -> None:
        self._selection = selection
        self._folders = dict(selection.folders)
        self._innermost_first = list(self._folders)
        self._ranges = selection.new_ranges() if selection.new_ranges else None
        self._returned: list[_Candidate] = []
        self._folded: list[_Candidate] = []
        self._counts: Counter[tuple[str, str]] = Counter()  # returned hits by document
        self._candidates_by_file: dict[str, list[_Candidate]] = {}
        self._hits_after_last = 0

    @property
    def is_complete(self) -> bool:
        """Return whether no further hit changes what is returned."""
        if self._missing:
            return False
        # The same passage in another tool follows closely, if not at once.
        return not self._folders or self._hits_after_last >= self._selection.limit

    @property
    def _missing(self) -> int:
        """Return how many more are wanted."""
        if len(self._returned) >= MAX_HITS:
            return 0
        count = len(self._returned) - self._selection.already_returned if self._ranges is None else len(self._ranges)
        return self._selection.limit - count

    def _allows(self, hit: Hit) -> bool:
        """Return whether the score and the text of a hit are as the selection wants them."""
        selection = self._selection
        # Scores are shown with four digits, and people copy what they see.
        if selection.min_score is not None and round(hit.score, 4) < selection.min_score:
            return False
        if selection.language and hit_language(hit) != selection.language:
            return False
        has_phrases = selection.phrases or selection.excluded
        return not has_phrases or allows_text(selection, hit.chunk.text_to_index(hit.title))

    def add(self, hit: Hit) -> bool:
        """Add the next hit of the ranking; return whether its score and text are as the selection wants them."""
        selection = self._selection
        if not self._allows(hit):
            return False
        if self._folders and self._replace_repeated(hit):
            return True
        if not self._missing:
            self._hits_after_last += 1
            return True
        candidate = _Candidate(hit, len(self._returned) + len(self._folded) + 1)
        if hit.tool in self._folders:
            self._candidates_by_file.setdefault(self._file_of(hit), []).append(candidate)
        document = self._document_of(hit)
        if selection.per_document is not None and self._counts[document] >= selection.per_document:
            self._folded.append(candidate)
        else:
            self._counts[document] += 1
            self._returned.append(candidate)
            if self._ranges is not None:
                self._ranges.add(hit)
        return True

    def finish(self) -> list[Hit]:
        """Return the hits; the last of a document has the number of those that were folded."""
        limit = self._selection.already_returned + self._selection.limit
        last_position = max(limit, self._returned[-1].position) if self._returned else 0
        missing = self._missing if self._selection.fill_up else 0
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
                    self._join_again()
                return True
        return False

    def _join_again(self) -> None:
        if self._selection.new_ranges is not None:
            self._ranges = self._selection.new_ranges()
            for candidate in self._returned:
                self._ranges.add(candidate.hit)

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


def select_reranked(request: RankRequest, candidates: Sequence[Hit], scores: Sequence[float] | None) -> list[Hit]:
    """Return the hits that a request asks for, those with a score first; without scores, in the given order.

    A hit keeps the score of its ranking: that of a reranker has another scale, and hits further down have none.
    """
    hits = list(candidates) if scores is None else [*_in_order(candidates, scores), *candidates[len(scores) :]]
    if request.selection is not None:
        selected = SelectedHits(request.selection)
        for hit in hits:
            selected.add(hit)
            if selected.is_complete:
                break
        return selected.finish()
    return hits[: request.row_count]


def _in_order(candidates: Sequence[Hit], scores: Sequence[float]) -> list[Hit]:
    """Return the first candidates by descending score; equal ones keep their order."""
    order = sorted(range(len(scores)), key=lambda index: -scores[index])
    return [_add_score(candidates[index], ArmScore(scores[index], rank)) for rank, index in enumerate(order, 1)]


def _add_score(hit: Hit, reranker: ArmScore) -> Hit:
    explanation = replace(hit.explanation, reranker=reranker) if hit.explanation else None
    return replace(hit, explanation=explanation, reranker_score=reranker.score)
