"""Declare each option of ranking once: its type, values, default, labels, and what it changes."""

# No `from __future__ import annotations` here: the types of options are read from the real annotations.
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, TypeVar, get_args

from bunko.types import Fusion
from bunko.types.records import GRAM_WEIGHT

_T = TypeVar("_T")
OptionValue = float | int | str | bool | None
# The first part of a ranking that an option changes: the terms of a query, the rows with these words, or what follows.
Stage = Literal["analysis", "words", "fusion"]
# Searches by words, by vectors, or by both with one of the fusions.
Search = Literal["bm25", "semantic", "cc", "rrf"]
_WITH_WORDS: tuple[Search, ...] = ("bm25", "cc", "rrf")


def option(
    default: _T,
    meaning: str,
    *,
    labels: tuple[str, str],
    stage: Stage,
    searches: tuple[Search, ...] = _WITH_WORDS,
    low: float = 0,
    high: float = 1,
    step: float = 0.05,
    memos: OptionValue = None,
    web: OptionValue = None,
    env: str = "",
) -> _T:
    """Declare an option: its help, its English and Japanese labels, and the searches that it has an effect on.

    `memos` is the default for memos, `web` that for web pages with the embedders of `local` and `online`, if they have
    one of their own; `env` is a further environment name.
    """
    return field(
        default=default,
        metadata={
            "meaning": meaning, "labels": labels, "stage": stage, "searches": searches, "low": low, "high": high,
            "step": step, "memos": memos, "web": web, "env": env,
        },
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class RankingOptions:
    """How the results of a search are ranked; the settings, a tool and a search may each choose any of these."""

    fusion: Fusion = option(
        "cc",
        "How hybrid fuses the rankings: convex combination or reciprocal rank fusion",
        labels=("Combination", "組み合わせ方"),
        stage="fusion",
        searches=("cc", "rrf"),
        memos="cc",
    )
    vector_weight: float | None = option(
        None,
        "Weight of the vector score in cc; words get the rest. Not set: chosen per query by how well words cover it",
        labels=("Weight of the meaning", "意味の重み"),
        stage="fusion",
        searches=("cc",),
        web=0.9,
        env="RAG_VECTOR_WEIGHT",
    )
    k1: float = option(
        1.2,
        "BM25 term frequency saturation",
        labels=("Repeated words", "語の繰り返し"),
        stage="words",
        high=10,
        step=0.1,
        memos=1.5,
        web=2.5,
        env="RAG_BM25_K1",
    )
    b: float = option(
        0.75,
        "BM25 length normalization",
        labels=("Length of texts", "文書の長さ"),
        stage="words",
        memos=0.75,
        web=0.5,
        env="RAG_BM25_B",
    )
    rrf_k: int = option(
        60,
        "Rank constant of reciprocal rank fusion",
        labels=("Constant of ranks", "順位の定数"),
        stage="fusion",
        searches=("rrf",),
        low=1,
        high=1000,
        step=1,
    )
    similarity_threshold: float | None = option(
        None,
        "Maximum cosine distance of a vector hit",
        labels=("Largest distance", "距離の上限"),
        stage="fusion",
        searches=("semantic", "cc", "rrf"),
        high=2,
        env="RAG_SIMILARITY_THRESHOLD",
    )
    min_combined_score: float | None = option(
        None,
        "Minimum combined score of a cc hit; one that contains every word of the query is kept, see keep_full_matches",
        labels=("Lowest score", "点数の下限"),
        stage="fusion",
        searches=("cc",),
        web=0.75,
        env="RAG_MIN_COMBINED_SCORE",
    )
    keep_full_matches: bool = option(
        True,
        "Keep hits that contain every word of the query, even below min_combined_score. false: drop them too",
        labels=("Keep texts with all words", "全語を含む文書を残す"),
        stage="fusion",
        searches=("cc",),
    )
    loanwords: bool = option(
        True,
        "Match loanwords across scripts: サーバー also finds server, and vice versa",
        labels=("Loanwords", "外来語"),
        stage="analysis",
    )
    bridge: bool = option(
        True,
        "Match translations: 検証 also finds validation, and vice versa",
        labels=("Translations", "訳語"),
        stage="analysis",
    )
    # 0.7 won on judged sets, see docs/quality.md.
    bridge_weight: float = option(
        0.7,
        "Weight of a reliable translation relative to the word itself",
        labels=("Weight of translations", "訳語の重み"),
        stage="analysis",
    )

    light_words: float = option(
        1.0,
        "How far words that say little count less: 0 not at all, more than 1 even less",
        labels=("Words that say little", "意味の薄い語"),
        stage="analysis",
        high=2,
        step=0.1,
    )
    character_pairs: float = option(
        GRAM_WEIGHT,
        "Weight of pairs of characters beside words: they add to Japanese texts that words found",
        labels=("Weight of character pairs", "文字の並びの重み"),
        stage="analysis",
    )

    meaning: float = option(
        1.0,
        "How much vectors count where vector_weight is not set: a factor of the weight chosen per query",
        labels=("How much the meaning counts", "意味の効き方"),
        stage="fusion",
        searches=("cc",),
        high=2,
        step=0.1,
    )
    nearest_sentence: float = option(
        0.5,
        "Share of the sentence nearest to the query in the similarity of a text; the whole text has the rest",
        labels=("Weight of the nearest sentence", "最も近い文の重み"),
        stage="fusion",
        searches=("semantic", "cc", "rrf"),
    )
    # 0.8 won on judged sets, see docs/quality.md.
    nearest_words: float = option(
        0.8,
        "How much it counts that the words of the query have near ones in one sentence: 搬入 for 運び入れる",
        labels=("Weight of near words", "近い語の重み"),
        stage="fusion",
        searches=("semantic", "cc", "rrf"),
        high=3,
        step=0.1,
    )

    # These won on judged sets, see docs/quality.md.
    also_weight: float = option(
        0.25,
        "Weight of each other wording of the query, which itself has the weight 1",
        labels=("Weight of other wordings", "言い換えの重み"),
        stage="fusion",
        searches=("bm25", "semantic", "cc", "rrf"),
    )
    passage_weight: float = option(
        0.5,
        "Weight of a passage as it might stand in the answer; the query has the weight 1",
        labels=("Weight of the passage", "想定回答の重み"),
        stage="fusion",
        searches=("bm25", "semantic", "cc", "rrf"),
    )

    def values_of(self, *stages: Stage) -> tuple[OptionValue, ...]:
        """Return the values that the results of some stages depend on, as the key of a cache of them."""
        return tuple(getattr(self, name) for name, option in OPTIONS.items() if option.stage in stages)


DEFAULT_RANKING = RankingOptions()


@dataclass(frozen=True, slots=True)
class RankingOption:
    """The declaration of an option."""

    name: str
    annotation: Any
    kind: type
    optional: bool  # whether None is a value: there is no limit, or it is chosen for each query
    choices: tuple[str, ...]
    default: OptionValue
    meaning: str
    labels: tuple[str, str]
    stage: Stage
    searches: tuple[Search, ...]
    low: float
    high: float
    step: float
    memos: OptionValue
    web: OptionValue
    env: str

    def accepts(self, value: object) -> bool:
        """Return whether a value is allowed; None stands for what is chosen elsewhere, so it is none."""
        if self.choices:
            return isinstance(value, str) and value in self.choices
        if self.kind is bool:
            return isinstance(value, bool)
        is_number = type(value) is int or (type(value) is float and self.kind is float)
        return is_number and self.low <= value <= self.high  # type: ignore[operator]


def _declaration(name: str, annotation: Any, default: Any, metadata: Mapping[str, Any]) -> RankingOption:
    arguments = get_args(annotation)
    optional = type(None) in arguments
    choices = arguments if arguments and not optional else ()
    kind = str if choices else arguments[0] if optional else annotation
    return RankingOption(name, annotation, kind, optional, choices, default, **metadata)


OPTIONS: dict[str, RankingOption] = {
    attribute.name: _declaration(attribute.name, attribute.type, attribute.default, attribute.metadata)
    for attribute in fields(RankingOptions)
}
