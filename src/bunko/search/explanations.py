"""Explain the scores of rows by the contributions of each term and each arm."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from bunko.embedders.embed import embed_and_check
from bunko.errors import EmbedderError
from bunko.protocols import Embedder, IndexView, SentenceReader
from bunko.search import fusion
from bunko.search.arms import Arms, FusedScores, adaptive_weights, gram_terms, single_char_ranges
from bunko.search.nearest_sentence import nearest_heading, nearest_sentence
from bunko.search.passages import split_author
from bunko.search.query_analysis import QueryAnalysis
from bunko.search.request import RankRequest
from bunko.search.similarity import sort_by_score
from bunko.text import analyzer
from bunko.text.normalise import normalise
from bunko.text.sentences import sentence_ranges
from bunko.types import ArmScore, Explanation, Hit, NearWord, ScorePart, TermScore
from bunko.types.records import GRAM_WEIGHT, Ranking, SentenceMatch

# Roles that an explanation lists as expansions of a query word, or beside it.
_EXPANSION_ROLES = ("light", "loanword", "bridge", "synonym", "gram")


def explain_rows(
    view: IndexView,
    analysis: QueryAnalysis,
    request: RankRequest,
    arms: Arms,
    scores: FusedScores,
    sentences: Mapping[int, SentenceMatch],
    rows: Sequence[int],
    where: tuple[int, ...] | None,
) -> dict[int, Explanation]:
    """Return the reasons for each row: its terms, its score and rank in each arm, and their shares of its score."""
    by_meaning = sort_by_score(view, scores.by_meaning())
    lexical_scores = _arm_scores(arms.lexical)
    semantic_scores = _arm_scores(Ranking(by_meaning, [scores.semantic[row] for row in by_meaning]))
    parts_of, fusion_name = _fusion_parts(view, analysis, request, arms, scores, rows)
    table = dict(
        zip(rows, view.term_scores(analysis.terms, rows, k1=request.options.k1, b=request.options.b), strict=True)
    )
    lanes = {row: _lane(analysis, table[row], has_score=row in lexical_scores) for row in rows}
    gram_scores = _gram_scores(view, analysis, [row for row in rows if lanes[row] == "gram"], where)
    explanations = {}
    for row, term_scores in table.items():
        lane, matched = lanes[row], [i for i, score in enumerate(term_scores) if score > 0]
        counted = _highest_of_each_group(analysis, term_scores)
        details = [TermScore(analysis.spellings[i], analysis.roles[i], counted[i]) for i in matched]
        if lane == "gram":
            details = gram_scores[row]
        # Hits by n-grams alone score at most half as much as any other, one with words of the query as much as another
        # with their translations, and one that has not enough words to be among the best nothing.
        total = lexical_scores[row].score if row in lexical_scores else 0.0
        current = sum(term.score for term in details)
        if current:
            details = [replace(term, score=term.score * total / current) for term in details]
        explanations[row] = Explanation(
            lane,
            tuple(analysis.spellings[i] for i in matched if analysis.roles[i] in ("", "part")),
            tuple((analysis.roles[i], analysis.spellings[i]) for i in matched if analysis.roles[i] in _EXPANSION_ROLES),
            lexical_scores.get(row),
            semantic_scores.get(row),
            fusion_name,
            _build_parts(parts_of(row), lexical_scores.get(row), semantic_scores.get(row)),
            tuple(details),
            sentence_score=sentences[row].cosine if row in sentences else None,
        )
    return explanations


def _arm_scores(ranking: Ranking) -> dict[int, ArmScore]:
    return {row: ArmScore(score, rank) for rank, (row, score) in enumerate(zip(*ranking, strict=True), 1)}


def _lane(analysis: QueryAnalysis, scores: Sequence[float], *, has_score: bool) -> str:
    """Return the lane that found a row, from the scores of its terms and whether words or n-grams ranked it."""
    if any(score > 0 and role != "gram" for score, role in zip(scores, analysis.roles, strict=True)):
        return "word"
    return "gram" if has_score else "vector"


def _highest_of_each_group(analysis: QueryAnalysis, scores: Sequence[float]) -> list[float]:
    """Return the scores of terms, 0 for all but the highest of each group of terms with one meaning."""
    best: dict[int, int] = {}
    for i, term in enumerate(analysis.terms):
        if term.group >= 0 and scores[i] > scores[best.setdefault(term.group, i)]:
            best[term.group] = i
    return [
        score if term.group < 0 or best[term.group] == i else 0.0
        for i, (term, score) in enumerate(zip(analysis.terms, scores, strict=True))
    ]


def _gram_scores(
    view: IndexView, analysis: QueryAnalysis, rows: Sequence[int], where: tuple[int, ...] | None
) -> dict[int, list[TermScore]]:
    """Return the points of each n-gram for rows that none of the words found."""
    if not rows:
        return {}
    table: Sequence[Sequence[float]]
    if ranges := single_char_ranges(analysis):
        rankings = [view.rank_key_ranges([key_range], view.size, where=where) for key_range in ranges]
        scores_by_row = [dict(zip(*ranking, strict=True)) for ranking in rankings]
        table = [[scores.get(row, 0.0) for scores in scores_by_row] for row in rows]
    else:
        terms = [term._replace(weight=GRAM_WEIGHT * term.weight) for term in gram_terms(analysis)]
        table = view.term_scores(terms, rows, k1=0.0, b=0.0)
    return {
        row: [
            TermScore(gram.spelling, "gram", score)
            for gram, score in zip(analysis.grams, scores, strict=True)
            if score > 0
        ]
        for row, scores in zip(rows, table, strict=True)
    }


# For each arm its score, the value that is weighted, and the weight.
_Parts = dict[str, tuple[float, float, float]]


def _build_parts(parts: _Parts, lexical: ArmScore | None, semantic: ArmScore | None) -> tuple[ScorePart, ...]:
    ranks = {"bm25": lexical.rank if lexical else None, "vector": semantic.rank if semantic else None}
    return tuple(
        ScorePart(arm, score, ranks.get(arm), value, weight, value * weight)
        for arm, (score, value, weight) in parts.items()
    )


def _fusion_parts(
    view: IndexView,
    analysis: QueryAnalysis,
    request: RankRequest,
    arms: Arms,
    scores: FusedScores,
    rows: Sequence[int],
) -> tuple[Callable[[int], _Parts], str]:
    """Return a function from a row to what each arm adds to its score, and the name of the fusion."""
    lexical, semantic = scores.lexical, scores.semantic
    if arms.nearest is None:
        return lambda row: {"bm25": (lexical[row], scores.final[row], 1.0)}, "bm25"
    if request.mode == "semantic":
        return partial(_semantic_parts, scores), "semantic"
    options = request.options
    if options.fusion == "rrf":
        by_meaning = sort_by_score(view, scores.by_meaning())
        ranks = [("bm25", lexical, _ranks(arms.lexical.rows)), ("vector", semantic, _ranks(by_meaning))]
        return partial(_reciprocal_parts, ranks, options.rrf_k), "rrf"
    if options.vector_weight is not None:
        normalised = fusion.normalise_scores(lexical), fusion.normalise_scores(scores.by_meaning())
        return partial(_weighted_parts, scores, normalised, options.vector_weight), "cc"
    weights = adaptive_weights(view, analysis, request, lexical, arms.nearest)
    assert weights is not None
    return partial(_adaptive_parts, scores, weights, arms.nearest.mean), "adaptive"


def _ranks(rows: Sequence[int]) -> dict[int, int]:
    return {row: rank for rank, row in enumerate(rows, 1)}


def _reciprocal_parts(arms: Sequence[tuple[str, Mapping[int, float], Mapping[int, int]]], k: float, row: int) -> _Parts:
    return {arm: (scores[row], 1 / (k + ranks[row]), 1.0) for arm, scores, ranks in arms if row in ranks}


def _weighted_parts(
    scores: FusedScores, normalised: tuple[Mapping[int, float], Mapping[int, float]], weight: float, row: int
) -> _Parts:
    lexical, semantic = normalised
    parts = {}
    if row in lexical:
        parts["bm25"] = scores.lexical[row], lexical[row], 1 - weight
    if row in semantic:
        parts["vector"] = scores.semantic[row], semantic[row], weight
    return parts


def _adaptive_parts(scores: FusedScores, weights: fusion.AdaptiveWeights, mean: float, row: int) -> _Parts:
    parts = {}
    if row in scores.lexical:
        score, lexical_weight = scores.lexical[row], 1 - weights.vector
        parts["bm25"] = score, weights.per_lexical_score * score / lexical_weight, lexical_weight
    cosine = scores.similar[row]
    parts["vector"] = cosine, weights.vector_points(cosine, mean) / weights.vector, weights.vector
    return _with_near_words(parts, scores, weights.vector, row)


def _semantic_parts(scores: FusedScores, row: int) -> _Parts:
    cosine = scores.semantic[row]
    return _with_near_words({"vector": (cosine, min(max(cosine, 0.0), 1.0), 1.0)}, scores, 1.0, row)


def _with_near_words(parts: _Parts, scores: FusedScores, weight: float, row: int) -> _Parts:
    """Return parts with what was taken away because words of the query have no near ones."""
    if not scores.lost.get(row):
        return parts
    points = scores.final[row] - sum(value * its_weight for _, value, its_weight in parts.values())
    match = scores.reading.matches.get(row)
    return parts | {"near_words": (match.nearness if match else 0.0, points / weight, weight)}


# A longer sentence is a table or a list of data, and its beginning says enough.
_MAX_SENTENCE_CHARS = 300
# Sentences of a hit that are compared with the query by their vectors.
_MAX_COMPARED = 40


def explain_texts(hits: Sequence[Hit], request: RankRequest, embedder: Embedder | None) -> list[Hit]:
    """Return hits whose explanations name the fields of their terms and their best sentence.

    Without a term, sentences are compared with the query by an embedder, unless that sends them to a server.
    """
    compares_words = request.mode != "bm25" and request.options.nearest_words > 0 and not request.wordings
    reader = embedder if compares_words and isinstance(embedder, SentenceReader) else None
    return [_explain(hit, request.query, embedder, reader) for hit in hits]


def _explain(hit: Hit, query: str, embedder: Embedder | None, reader: SentenceReader | None) -> Hit:
    if hit.explanation is None:
        return hit
    fields = [(name, _Words(text)) for name, text in _fields(hit)]
    terms = tuple(
        replace(term, fields=tuple(dict.fromkeys(name for name, words in fields if words.contain(term))))
        for term in hit.explanation.term_scores
    )
    sentences = _sentences(hit.chunk.text, hit.chunk.heading)
    best = _best_by_terms(sentences, terms)
    if not best and sentences and embedder is not None and not embedder.is_remote:
        best = _best_by_vectors(sentences[:_MAX_COMPARED], query, embedder)
    nearest = nearest_sentence(hit) or nearest_heading(hit)
    return replace(
        hit,
        explanation=replace(
            hit.explanation,
            term_scores=terms,
            best_sentence=best if len(best) <= _MAX_SENTENCE_CHARS else best[:_MAX_SENTENCE_CHARS].rstrip() + "…",
            nearest_sentence=nearest,
            sentence_score=hit.explanation.sentence_score if nearest else None,
            near_words=_near_words(hit, query, reader),
        ),
    )


def _near_words(hit: Hit, query: str, reader: SentenceReader | None) -> tuple[NearWord, ...]:
    try:
        return tuple(reader.near_words(query, hit.chunk.text_in_context(hit.title))) if reader else ()
    except EmbedderError:  # it can embed the query, but not split texts
        return ()


def _fields(hit: Hit) -> list[tuple[str, str]]:
    """Return the parts of a hit that are indexed; its text without its headings."""
    chunk = hit.chunk
    headings = set(chunk.heading_path)
    text = "\n".join(line for line in chunk.text.splitlines() if line.strip("# \t") not in headings)
    author, own_headings = split_author(hit)
    fields = [("title", hit.title), ("author", author), *(("heading", heading) for heading in own_headings)]
    return [*fields, ("text", text)]


class _Words:
    """The words of a text, to look terms up in."""

    def __init__(self, text: str) -> None:
        self._keys = frozenset(analyzer.term_keys(text))
        self._text = normalise(text).lower()

    def contain(self, term: TermScore) -> bool:
        if term.role == "gram":
            return term.term in self._text
        return not self._keys.isdisjoint((analyzer.term_key(term.term), analyzer.origin_key(term.term)))


def _sentences(text: str, heading: str) -> list[str]:
    body = text.removeprefix(heading) if heading and text != heading else text
    sentences = (body[start:end].strip() for start, end in sentence_ranges(body))
    return [sentence for sentence in sentences if any(char.isalnum() for char in sentence)]


def _best_by_terms(sentences: Sequence[str], terms: Sequence[TermScore]) -> str:
    """Return the first sentence whose terms add most to the score; empty if none has any."""
    best_sentence, best_score = "", 0.0
    for sentence in sentences:
        words = _Words(sentence)
        score = sum(term.score for term in terms if words.contain(term))
        if score > best_score:
            best_sentence, best_score = sentence, score
    return best_sentence


def _best_by_vectors(sentences: Sequence[str], query: str, embedder: Embedder) -> str:
    """Return the sentence that is nearest to the query."""
    try:
        similarities = embed_and_check(embedder, list(sentences)) @ embed_and_check(embedder, [query], query=True)[0]
    except EmbedderError:  # the search itself has told of it
        return ""
    return sentences[int(similarities.argmax())]
