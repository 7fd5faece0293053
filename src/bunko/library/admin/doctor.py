"""Check a library: its file, its derived indexes, and whether searches find its texts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from bunko.embedders.embed import embed_and_check
from bunko.errors import INCOMPLETE_HINT, BunkoError, EmbedderError, SourceError, rebuild_hint
from bunko.ingest.watched import WatchedFolders
from bunko.protocols import ApproximateView, Embedder, Index, IndexView, Source, Store, WatchableSource
from bunko.search.rank import rank_rows
from bunko.search.request import RankRequest
from bunko.text import analyzer
from bunko.text.language import detect_language
from bunko.types import MODES, Chunk, Mode, Tool

if TYPE_CHECKING:
    from bunko.types import Vectors

# Questions per language, each taken from a text that answers it.
_QUESTIONS_PER_LANGUAGE = 25
_MAX_SAMPLED_CHUNKS = 400
# Not every question finds the text it came from; below this share, search does not work.
_MIN_FOUND_SHARE = 0.5
_MIN_QUESTIONS = 4  # failures of fewer questions may be chance
_SAME_TEXT_SHARE = 0.8  # of the terms of a question
# Of the terms of two chunks, figures aside: of two paragraphs of the bundled judged set, 99 in 100 share less than 0.2.
_NEAR_DUPLICATE_SHARE = 0.7
_READ_BATCH = 200
# Vectors that a large library is searched with, and the nearest chunks of each; of these, a share must be found.
_SAMPLED_VECTORS, _NEAREST_CHUNKS, _MIN_RECALL = 30, 10, 0.95
_SENTENCE = re.compile(r"[^\n。.!?！？|`#<>]{6,60}")
_FIGURE = re.compile(r"[A-Za-z0-9]*[0-9][A-Za-z0-9]*")
_LANGUAGE_NAMES = {"ja": "Japanese", "en": "English"}


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check."""

    state: Literal["ok", "warning", "error"]
    subject: str
    message: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class _Question:
    """A sentence of an indexed chunk, with the terms of that chunk, figures aside."""

    text: str
    origin_terms: frozenset[int]


def check_storage(store: Store) -> list[Finding]:
    """Check the integrity of the library's file, and that documents are complete."""
    try:
        problem, incomplete = store.check(), store.stats.count_incomplete()
    except BunkoError as error:
        return [Finding("error", "library", error.message, error.hint)]
    if problem:
        return [Finding("error", "library", problem, rebuild_hint(store.location))]
    if incomplete:
        message = f"{incomplete} document{'s lack' if incomplete > 1 else ' lacks'} some of the chunks"
        return [Finding("error", "library", message, INCOMPLETE_HINT)]
    if store.address.server is not None:
        return [Finding("ok", "library", f"{store.location} answers and has all its tables ({store.engine})")]
    return [Finding("ok", "library", "the file is intact")]


def check_index(index: Index, tool: Tool) -> list[Finding]:
    """Check the integrity of a tool's derived index, and rebuild it if it is wrong."""
    try:
        problem = index.check(tool.id)
        if problem:
            index.repair(tool.id)
    except BunkoError as error:
        return [Finding("error", tool.name, error.message, error.hint)]
    if problem:
        return [Finding("warning", tool.name, f"{problem}; it was rebuilt from the library", "No data is lost.")]
    return [Finding("ok", tool.name, "the derived index is intact")]


def check_index_state(index: Index, tool: Tool) -> list[Finding]:
    """Report which index answers and how far it has followed the library, if it is not part of the library."""
    if not index.location:
        return []
    state = index.state(tool.id)
    place = f"the index {index.kind} at {index.location}"
    if state.problem:
        return [Finding("error", tool.name, f"{place} is not used: {state.problem}", state.hint)]
    if state.pending:
        documents = f"{state.pending} document{'' if state.pending == 1 else 's'}"
        return [Finding("warning", tool.name, f"{place} is {documents} behind", "Update it with: bunko index sync.")]
    return [Finding("ok", tool.name, f"{place} is up to date at generation {state.generation}", state.hint)]


def check_vectors(view: IndexView, tool: Tool) -> list[Finding]:
    """Report how many of the nearest chunks a search by vectors finds, if it may miss some."""
    recall = view.sampled_recall(_NEAREST_CHUNKS, _SAMPLED_VECTORS) if isinstance(view, ApproximateView) else None
    if recall is None:
        return []
    found, total = recall
    message = f"vectors find {found} of {total} nearest chunks"
    if found >= _MIN_RECALL * total:
        return [Finding("ok", tool.name, message)]
    hint = "Searches by vectors alone may miss texts. Please report it, with the name of the embedder."
    return [Finding("warning", tool.name, message, hint)]


def check_events(tool: Tool, source: Source) -> list[Finding]:
    """Report a folder that a server has to list before each search, because nobody tells what happens in it."""
    if not isinstance(source, WatchableSource):
        return []
    watched = WatchedFolders()
    try:
        watched.look(tool, source)
        problem = watched.problem(tool)
    except SourceError as error:
        return [Finding("warning", tool.name, error.message, error.hint)]
    finally:
        watched.close()
    if problem is None:
        return []
    message = f"{tool.source} is listed before each search: {problem.message}"
    return [Finding("warning" if problem.hint else "ok", tool.name, message, problem.hint)]


def check_search(
    store: Store,
    view: IndexView,
    tool: Tool,
    embedder: Embedder | None,
    *,
    per_language: int = _QUESTIONS_PER_LANGUAGE,
) -> list[Finding]:
    """Search for sentences of indexed texts in each language and mode, and report how many find their text."""
    findings: list[Finding] = []
    if not view.size:
        return findings
    questions = _sample_questions(store, view, per_language)
    queries: Embedder | None = None
    if embedder is not None:
        try:
            texts = [question.text for sampled in questions.values() for question in sampled]
            queries = _PrecomputedQueries(embedder, texts)
        except EmbedderError as error:
            reason = f"vector search was not checked: {error.message}"
            findings.append(Finding("warning", tool.name, reason, error.hint))
    for language, sampled in questions.items():
        for mode in MODES:
            if mode != "bm25" and queries is None:
                continue
            found_count = sum(_finds_answer(store, view, question, mode, queries) for question in sampled)
            share = found_count / len(sampled)
            counts = f"{found_count} of {len(sampled)} texts found by one of their sentences"
            message = f"{_LANGUAGE_NAMES[language]}, {mode}: {counts}"
            if share < _MIN_FOUND_SHARE and len(sampled) >= _MIN_QUESTIONS:
                findings.append(Finding("error", tool.name, message, "This search does not work. Please report it."))
            else:
                findings.append(Finding("ok", tool.name, message))
    return findings


class _PrecomputedQueries:
    """An embedder with the vectors of known questions, computed in one call because calls may cost money."""

    def __init__(self, embedder: Embedder, questions: Sequence[str]) -> None:
        self.name, self.size, self.label, self.noise_floor = (
            embedder.name,
            embedder.size,
            embedder.label,
            embedder.noise_floor,
        )
        self.batch_size, self.is_remote = embedder.batch_size, embedder.is_remote
        self._embedder = embedder
        distinct = list(dict.fromkeys(questions))
        vectors = embed_and_check(embedder, distinct, query=True) if distinct else ()
        self._vectors = dict(zip(distinct, vectors, strict=True))

    def unavailable_reason(self) -> str:
        """Return why the wrapped embedder cannot be used."""
        return self._embedder.unavailable_reason()

    def embed(self, texts: Sequence[str], *, query: bool = False) -> Vectors:
        """Return the precomputed vectors of questions."""
        return np.stack([self._vectors[text] for text in texts])


def _sample_questions(store: Store, view: IndexView, per_language: int) -> dict[str, list[_Question]]:
    rows = view.rows()
    sample = rows[:: max(1, len(rows) // min(_MAX_SAMPLED_CHUNKS, 8 * per_language))]
    questions: dict[str, list[_Question]] = {}
    for chunk in _load_chunks(store, view, sample):
        # From the middle of the chunk, where a sentence does not repeat the title.
        sentences = _SENTENCE.findall(chunk.text)
        sentence = sentences[len(sentences) // 2].strip() if sentences else ""
        language = detect_language(sentence)
        if language and len(questions.setdefault(language, [])) < per_language:
            questions[language].append(_Question(sentence, _comparable_terms(chunk)))
    return questions


def _load_chunks(store: Store, view: IndexView, rows: Sequence[int]) -> list[Chunk]:
    loaded = []
    for start in range(0, len(rows), _READ_BATCH):
        ids = view.chunk_ids(rows[start : start + _READ_BATCH])
        chunks = store.documents.chunks(ids)
        loaded += [chunks[chunk_id].chunk for chunk_id in ids if chunk_id in chunks]  # a damaged library lacks some
    return loaded


def _finds_answer(store: Store, view: IndexView, question: _Question, mode: Mode, embedder: Embedder | None) -> bool:
    request = RankRequest(question.text, mode=mode, row_count=10)
    ranking = rank_rows(view, embedder, request)
    terms = set(analyzer.term_keys(question.text))
    # Texts repeat each other: one that shares most terms of the question is as good an answer. So is a near duplicate,
    # because no search by meaning can tell which of them was asked for.
    min_shared = _SAME_TEXT_SHARE * max(1, len(terms))
    for chunk in _load_chunks(store, view, [ranked.row for ranked in ranking]):
        if question.text in chunk.text:
            return True
        if len(terms.intersection(analyzer.term_keys(chunk.text))) >= min_shared:
            return True
        if _are_near_duplicates(question.origin_terms, _comparable_terms(chunk)):
            return True
    return False


def _comparable_terms(chunk: Chunk) -> frozenset[int]:
    # Forms and daily reports differ in dates, numbers and identifiers.
    return frozenset(analyzer.term_keys(_FIGURE.sub("0", chunk.text)))


def _are_near_duplicates(first: frozenset[int], second: frozenset[int]) -> bool:
    return len(first & second) >= _NEAR_DUPLICATE_SHARE * max(1, len(first), len(second))
