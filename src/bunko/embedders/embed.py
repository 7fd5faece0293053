"""Embed texts, check the vectors, and say why an embedder cannot."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, TypeVar, cast

from bunko.embedders.names import display_name
from bunko.errors import BunkoError, EmbedderError
from bunko.runtime.plugins import describe_exception

if TYPE_CHECKING:
    from bunko.protocols import Embedder, RemoteEmbedder
    from bunko.types import SentenceSubwords, Vectors


T = TypeVar("T")


def as_remote(embedder: Embedder | None) -> RemoteEmbedder | None:
    """Return the embedder if it is remote, else None."""
    return cast("RemoteEmbedder", embedder) if embedder is not None and embedder.is_remote else None


def unavailable_reason(embedder: Embedder) -> str:
    """Return why an embedder cannot be used now and what helps; empty if it can."""
    try:
        return _call(embedder, embedder.unavailable_reason)
    except EmbedderError as error:
        return f"{error.message}. {error.hint}"


def vector_keys(embedder: Embedder, texts: Sequence[str], *, query: bool = False) -> list[bytes]:
    """Return the keys under which vectors are stored, so that the same text is embedded only once."""
    role = "query" if query else "document"
    prefix = blake2b(f"{embedder.name}\0{role}\0".encode(), digest_size=16)
    keys = []
    for text in texts:
        digest = prefix.copy()
        digest.update(text.encode("utf-8", "surrogatepass"))
        keys.append(digest.digest())
    return keys


def embed_texts(embedder: Embedder, texts: Sequence[str]) -> tuple[Vectors, list[SentenceSubwords]]:
    """Return the vectors of texts, and the subwords of the sentences of each if the embedder splits them, else none."""
    # Imported late: whoever only reads the options of providers needs none of it.
    from bunko.protocols import SentenceEmbedder

    if isinstance(embedder, SentenceEmbedder):
        vectors, sentences = _call(embedder, lambda: embedder.embed_sentences(texts))
        # Until subwords were kept, an embedder of another package returned vectors here.
        return vectors, sentences if all(one.ndim == 1 and one.dtype == "uint16" for one in sentences) else []
    return embed_and_check(embedder, texts), []


def embed_and_check(embedder: Embedder, texts: Sequence[str], *, query: bool = False) -> Vectors:
    """Embed texts; raise an error on a wrong count, a wrong size, NaN or infinity before anything is stored."""
    vectors = _call(embedder, lambda: embedder.embed(texts, query=query))
    if not hasattr(vectors, "shape"):
        raise EmbedderError(
            f"{display_name(embedder.name)} returned {type(vectors).__name__} instead of vectors",
            hint="Nothing was stored. An embedder returns a numpy array of float32 with a row for each text.",
        )
    if vectors.shape != (len(texts), embedder.size):
        raise EmbedderError(
            f"{display_name(embedder.name)} returned {vectors.shape} for {len(texts)} texts of size {embedder.size}",
            hint="Nothing was stored. Check that the settings name the right model.",
        )
    import numpy as np

    with np.errstate(all="ignore"):  # a larger number than they are stored as becomes infinite
        vectors = vectors.astype(np.float32, copy=False)
        is_finite = math.isfinite(float(vectors.sum()))
    if not is_finite:
        raise EmbedderError(
            f"{display_name(embedder.name)} returned NaN or infinity", hint="Nothing was stored. Try again."
        )
    return vectors


def _call(embedder: Embedder, embed: Callable[[], T]) -> T:
    """Return what an embedder computes; whatever it raises is an outage."""
    try:
        return embed()
    except BunkoError:
        raise
    except Exception as error:
        raise EmbedderError(
            f"{display_name(embedder.label)} raised {describe_exception(error)}",
            hint="Nothing was stored. Report it to those who wrote the embedder, or choose another one.",
        ) from error
