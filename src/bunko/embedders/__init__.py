"""A provider's name in, an embedder out: each provider is one file, and its name is the registration."""

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
# Servers that speak as OpenAI does share one file, which is told whose they are.
_OPENAI_COMPATIBLE = ("openai", "lmstudio", "openrouter", "ollama")


def build(provider: str, **options: Any) -> Embedder | None:
    """Return the embedder of a name, None for `none`; options are the arguments of its own `build`."""
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
    """Return the name a vector is stored under: the same text never has to be embedded twice."""
    return vector_keys(embedder, [text], query=query)[0]


def vector_keys(embedder: Embedder, texts: Sequence[str], *, query: bool = False) -> list[bytes]:
    """Return the names of the vectors of some texts."""
    role = "query" if query else "document"
    begun = blake2b(f"{embedder.name}\0{role}\0".encode(), digest_size=16)
    found = []
    for text in texts:
        content = begun.copy()
        content.update(text.encode("utf-8", "surrogatepass"))
        found.append(content.digest())
    return found


def embed_and_check(embedder: Embedder, texts: Sequence[str], *, query: bool = False) -> Vectors:
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
