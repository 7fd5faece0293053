"""Embedders are shown to people by provider and model, never by the key of their vectors."""

from __future__ import annotations

import pytest

from bunko import embedders
from bunko.embedders.names import display_name
from bunko.errors import EmbedderError
from tests.loopback import KEY, Loopback, openai_error


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("static:1:256", "static"),
        ("static:1", "static"),
        ("hashing:256:1", "hashing"),
        ("none", "none"),
        (
            "gemini:gemini-embedding-001:RETRIEVAL_DOCUMENT:RETRIEVAL_QUERY:768:average-2048",
            "gemini gemini-embedding-001",
        ),
        ("gemini:gemini-embedding-001:RETRIEVAL_DOCUMENT:RETRIEVAL_QUERY", "gemini gemini-embedding-001"),
        ("openai:text-embedding-3-small:1536:average-8191", "openai text-embedding-3-small"),
        ("ollama:nomic-embed-text:v1.5:prefixed:768", "ollama nomic-embed-text:v1.5"),
        (
            "transformers:pfnet/plamo-embedding-1b:2048:cut-4096:code:0123456789ab",
            "transformers pfnet/plamo-embedding-1b",
        ),
        ("acme:great-model:512", "acme great-model"),
    ],
)
def test_a_name_is_shown_as_its_provider_and_model(name: str, shown: str) -> None:
    assert display_name(name) == shown


def test_errors_name_the_model_and_not_the_key_of_its_vectors() -> None:
    service = Loopback(8)
    service.always = lambda _: openai_error(401, "no")
    try:
        embedder = embedders.build("gemini", api_key=KEY, base_url=service.address, retries=0)
        assert embedder is not None
        with pytest.raises(EmbedderError) as caught:
            embedder.embed(["text"])
    finally:
        service.close()
    assert caught.value.message.startswith("gemini gemini-embedding-001 rejected the credentials (401)")
