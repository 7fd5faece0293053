"""List the models for Japanese and English that are known to be good, and where their ONNX files are."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from typing import Literal

Purpose = Literal["embedder", "reranker"]

_INT8 = ("onnx/model_int8.onnx", "onnx/model_quantized.onnx", "onnx/model.onnx")
_QUANTIZED = ("onnx/model_quantized.onnx", "onnx/model_int8.onnx", "onnx/model.onnx")
# Signed weights for AVX2 and for ARM; what is right for one processor may be wrong for the other.
_AVX2, _ARM64 = "onnx/model_qint8_avx2.onnx", "onnx/model_qint8_arm64.onnx"
_ARM_MACHINES = ("arm64", "aarch64")
# Of a model that is not listed: in full precision first, because nobody has looked at what its int8 loses.
_UNLISTED_FILES = ("onnx/model.onnx", "model.onnx", "onnx/model_quantized.onnx", "model_quantized.onnx")


@dataclass(frozen=True, slots=True)
class KnownModel:
    """A model, its licence, and its files on the hub."""

    name: str
    purpose: Purpose
    summary: str
    languages: tuple[str, ...]  # ISO 639, or "100+"
    licence: str  # SPDX
    repo: str  # of its makers: the configuration is read from there
    onnx_repo: str = ""  # the repository with the ONNX file; empty: there is none
    files: tuple[str, ...] = ()  # ONNX files by preference
    megabytes: int | None = None  # of its weights, about; None: not known
    size: int | None = None  # of a vector
    # If the configuration does not say.
    pooling: str = "mean"
    prompts: tuple[str, str] = ("", "")  # before documents and before queries


def _ruri(name: str, size: int, megabytes: int, summary: str) -> KnownModel:
    return KnownModel(
        name=f"ruri-v3-{name}",
        purpose="embedder",
        summary=summary,
        languages=("ja",),
        licence="Apache-2.0",
        repo=f"cl-nagoya/ruri-v3-{name}",
        onnx_repo=f"sirasagi62/ruri-v3-{name}-ONNX",
        files=_INT8,
        megabytes=megabytes,
        size=size,
        prompts=("検索文書: ", "検索クエリ: "),
    )


def _japanese_reranker(name: str, megabytes: int, summary: str) -> KnownModel:
    repo = f"hotchpotch/japanese-reranker-{name}-v2"
    int8 = (_ARM64, _AVX2) if platform.machine().lower() in _ARM_MACHINES else (_AVX2, _ARM64)
    return KnownModel(
        name=f"japanese-reranker-{name}-v2",
        purpose="reranker",
        summary=summary,
        languages=("ja",),
        licence="MIT",
        repo=repo,
        onnx_repo=repo,
        files=(int8[0], "onnx/model.onnx", int8[1]),
        megabytes=megabytes,  # one byte for each of its parameters
    )


KNOWN_MODELS: tuple[KnownModel, ...] = (
    _ruri("30m", 256, 37, "Japanese, small and fast: the one to begin with."),
    _ruri("70m", 384, 71, "Japanese, between the small and the large one."),
    _ruri("310m", 768, 317, "Japanese, the best of its family, and the slowest."),
    KnownModel(
        name="multilingual-e5-small",
        purpose="embedder",
        summary="Many languages, and questions in one about texts in another.",
        languages=("100+",),
        licence="MIT",
        repo="intfloat/multilingual-e5-small",
        onnx_repo="Xenova/multilingual-e5-small",
        files=_QUANTIZED,
        megabytes=118,
        size=384,
        prompts=("passage: ", "query: "),
    ),
    KnownModel(
        name="bge-m3",
        purpose="embedder",
        summary="Many languages and long texts; large and slow.",
        languages=("100+",),
        licence="MIT",
        repo="BAAI/bge-m3",
        onnx_repo="Xenova/bge-m3",
        files=_QUANTIZED,
        megabytes=570,
        size=1024,
        pooling="cls",
    ),
    KnownModel(
        name="plamo-embedding-1b",
        purpose="embedder",
        summary="Japanese, very large; needs torch: set embedding.provider to plamo.",
        languages=("ja",),
        licence="Apache-2.0",
        repo="pfnet/plamo-embedding-1b",
        megabytes=2000,
    ),
    _japanese_reranker("xsmall", 37, "Reranks Japanese, small and fast: the one to begin with."),
    _japanese_reranker("small", 70, "Reranks Japanese, larger and slower than xsmall."),
    _japanese_reranker("base", 130, "Reranks Japanese, the largest and slowest of its family."),
    KnownModel(
        name="bge-reranker-v2-m3",
        purpose="reranker",
        summary="Reranks many languages; large and slow.",
        languages=("100+",),
        licence="Apache-2.0",
        repo="BAAI/bge-reranker-v2-m3",
        onnx_repo="onnx-community/bge-reranker-v2-m3-ONNX",
        files=_INT8,
        megabytes=571,
    ),
)


def find_model(name: str) -> KnownModel | None:
    """Return the listed model of a name or of a repository, None if there is none."""
    wanted = name.lower()
    return next((model for model in KNOWN_MODELS if wanted in _names(model)), None)


def _names(model: KnownModel) -> tuple[str, ...]:
    return tuple(name.lower() for name in (model.name, model.repo, model.onnx_repo) if name)


def onnx_files(model: KnownModel | None) -> tuple[str, ...]:
    """Return the ONNX files to look for, by preference."""
    return model.files if model else _UNLISTED_FILES
