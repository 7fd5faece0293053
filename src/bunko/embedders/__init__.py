"""A provider's name in, an embedder out: each provider is one file, and its name is the registration."""

from __future__ import annotations

import math
from collections.abc import Sequence
from hashlib import blake2b
from importlib import import_module
from typing import TYPE_CHECKING

from bunko.errors import EmbedderError, UnknownName
from bunko.protocols import Embedder

if TYPE_CHECKING:
    from bunko.types import Vectors

PROVIDERS = ("static", "hashing")


def build(provider: str) -> Embedder | None:
    """Return the embedder of a name, None for `none`."""
    if provider == "none":
        return None
    if provider not in PROVIDERS:
        raise UnknownName(
            f"There is no embedder called {provider!r}",
            hint=f"Set embedding.provider to one of: {', '.join((*PROVIDERS, 'none'))}.",
        )
    embedder: Embedder = import_module(f"bunko.embedders.{provider}").build()
    return embedder


def vector_key(embedder: Embedder, text: str, *, query: bool = False) -> bytes:
    """Return the name a vector is stored under: the same text never has to be embedded twice."""
    role = "query" if query else "document"
    content = f"{embedder.name}\0{role}\0{text}".encode("utf-8", "surrogatepass")
    return blake2b(content, digest_size=16).digest()


def checked(embedder: Embedder, texts: Sequence[str], *, query: bool = False) -> Vectors:
    """Embed, and refuse a wrong count, a wrong size or a number that is none before anything is stored."""
    vectors = embedder.embed(texts, query=query)
    if vectors.shape != (len(texts), embedder.size):
        raise EmbedderError(
            f"{embedder.name} returned {vectors.shape} for {len(texts)} texts of size {embedder.size}",
            hint="Nothing was stored. Check that the model is the one the settings name.",
        )
    if not math.isfinite(float(vectors.sum())):
        raise EmbedderError(f"{embedder.name} returned a number that is none", hint="Nothing was stored. Try again.")
    return vectors
