"""Build an embedder from the name of its provider; each provider is one module of that name."""

from __future__ import annotations

import math
from collections.abc import Sequence
from hashlib import blake2b
from importlib import import_module
from typing import TYPE_CHECKING, Any

from bunko.errors import EmbedderError, UnknownName
from bunko.protocols import Embedder

if TYPE_CHECKING:
    from bunko.types import Vectors

PROVIDERS = ("static", "hashing", "gemini", "openai", "lmstudio", "openrouter", "ollama", "transformers")
ALIASES = {"local": "lmstudio", "online": "openai", "plamo": "transformers"}
# Servers with an OpenAI-compatible API share one module, which gets the name of the server as `preset`.
_OPENAI_COMPATIBLE = ("openai", "lmstudio", "openrouter", "ollama")


def build(provider: str, **options: Any) -> Embedder | None:
    """Return the embedder of a provider, None for `none`; options are passed to the `build` of its module."""
    if provider == "none":
        return None
    provider = ALIASES.get(provider, provider)
    if provider not in PROVIDERS:
        raise UnknownName(
            f"There is no embedder called {provider!r}",
            hint=f"Set embedding.provider to one of: {', '.join((*PROVIDERS, *ALIASES, 'none'))}.",
        )
    if provider in _OPENAI_COMPATIBLE:
        provider, options = "openai", {"preset": provider, **options}
    embedder: Embedder = import_module(f"bunko.embedders.{provider}").build(**options)
    return embedder


def vector_key(embedder: Embedder, text: str, *, query: bool = False) -> bytes:
    """Return the key under which a vector is stored, so that the same text is embedded only once."""
    return vector_keys(embedder, [text], query=query)[0]


def vector_keys(embedder: Embedder, texts: Sequence[str], *, query: bool = False) -> list[bytes]:
    """Return the storage keys of the vectors of these texts."""
    role = "query" if query else "document"
    prefix = blake2b(f"{embedder.name}\0{role}\0".encode(), digest_size=16)
    keys = []
    for text in texts:
        digest = prefix.copy()
        digest.update(text.encode("utf-8", "surrogatepass"))
        keys.append(digest.digest())
    return keys


def embed_and_check(embedder: Embedder, texts: Sequence[str], *, query: bool = False) -> Vectors:
    """Embed texts; raise an error on a wrong count, a wrong size, NaN or infinity before anything is stored."""
    vectors = embedder.embed(texts, query=query)
    if vectors.shape != (len(texts), embedder.size):
        raise EmbedderError(
            f"{embedder.name} returned {vectors.shape} for {len(texts)} texts of size {embedder.size}",
            hint="Nothing was stored. Check that the settings name the right model.",
        )
    if not math.isfinite(float(vectors.sum())):
        raise EmbedderError(f"{embedder.name} returned NaN or infinity", hint="Nothing was stored. Try again.")
    return vectors
