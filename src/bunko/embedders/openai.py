"""Asks OpenAI, or any server that speaks as it does, for vectors: LM Studio, OpenRouter, Ollama, vLLM."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bunko.embedders.long_texts import LongTextPolicy
from bunko.embedders.remote import Remote, RequestLimits, missing_package_error, missing_package_message
from bunko.remote import (
    RemoteFailure,
    credentials_in,
    key_problem,
    openai_client,
    strip_credentials,
    translate_openai_errors,
)

if TYPE_CHECKING:
    from openai import OpenAI

_PROBE_TIMEOUT = 2.0  # seconds in which a server that is up lists its models
DOCUMENT_PREFIX, QUERY_PREFIX = "search_document: ", "search_query: "


class EmbeddingPreset(NamedTuple):
    """A server that is known by name."""

    address: str
    model: str
    key_variable: str  # the name of its key in the environment; a server on this machine needs none
    description: str


PRESETS = {
    "openai": EmbeddingPreset(
        "https://api.openai.com/v1", "text-embedding-3-small", "OPENAI_API_KEY",
        "Asks OpenAI for vectors, or any server that speaks as it does.",
    ),
    "lmstudio": EmbeddingPreset(
        "http://localhost:1234/v1", "nomic-embed-text", "", "Asks LM Studio, usually on this machine, for vectors.",
    ),
    "openrouter": EmbeddingPreset(
        "https://openrouter.ai/api/v1", "mixedbread-ai/mxbai-embed-large-v1", "OPENROUTER_API_KEY",
        "Asks OpenRouter, which passes texts on to models of many makers, for vectors.",
    ),
    "ollama": EmbeddingPreset(
        "http://localhost:11434/v1", "nomic-embed-text", "", "Asks Ollama, usually on this machine, for vectors.",
    ),
}  # fmt: skip


class _KnownModel(NamedTuple):
    name_part: str  # of the model's name
    size: int
    max_tokens: int


# The first that fits: servers add owners, versions and endings to these names.
_KNOWN_MODELS = (
    _KnownModel("text-embedding-3-small", 1536, 8191),
    _KnownModel("text-embedding-3-large", 3072, 8191),
    _KnownModel("text-embedding-ada-002", 1536, 8191),
    _KnownModel("mxbai-embed-large", 1024, 512),
    _KnownModel("nomic-embed-text", 768, 2048),
)


class Server:
    """One model on one server."""

    def __init__(
        self,
        preset: str,
        *,
        model: str,
        address: str,
        secret: str,
        dimensions: int | None,
        use_prefix: bool,
        timeout: float,
    ) -> None:
        known = _find_known_model(model)
        self.label = f"{preset}:{model}" + (":prefixed" if use_prefix else "")
        self.size = dimensions or (known.size if known else None)
        self.address, self.secret = address, secret
        own = PRESETS[preset].key_variable
        self.fix = (
            f"Set {own} to a key that is valid there." if own else f"Check what {strip_credentials(address)} wants."
        )
        # A key may be left out only where somebody else's address was given.
        self._needs_key = bool(own) and address == PRESETS[preset].address
        self._model, self._dimensions, self._use_prefix, self._timeout = model, dimensions, use_prefix, timeout
        self._cached_client: OpenAI | None = None
        self._lock = Lock()

    def unavailable_reason(self) -> str:
        """Return what is missing: the SDK, the key, or a server that answers."""
        if told := missing_package_message("openai", "openai", "openai"):
            return told
        if wrong := key_problem(self.secret):
            return f"{wrong.capitalize()}. {self.fix}"
        if self._needs_key:
            return "" if self.secret else f"There is no key. {self.fix}"
        return _unreachable_reason(self.address, self.secret)

    def request_vectors(self, texts: Sequence[str], *, query: bool) -> list[Sequence[float]]:
        """Return a vector for each text, in their order."""
        client = self._client()
        before = (QUERY_PREFIX if query else DOCUMENT_PREFIX) if self._use_prefix else ""
        more: dict[str, Any] = {"dimensions": self._dimensions} if self._dimensions else {}
        with translate_openai_errors():
            # A third of the bytes that numbers take when they are written out, and every bit of them.
            answer = client.embeddings.with_raw_response.create(
                model=self._model, input=[before + text for text in texts], encoding_format="base64", **more
            )
            # Read here: as objects of the SDK a hundred vectors take twice as long.
            found = json.loads(answer.content)
        if not isinstance(found, dict):
            raise RemoteFailure("the answer holds no vectors")
        if isinstance(error := found.get("error"), dict) and "data" not in found:
            # OpenRouter begins to answer before it knows whether it can.
            code = error.get("code")
            raise RemoteFailure(str(error.get("message")), status=code if isinstance(code, int) else 0)
        return _parse_vectors(found.get("data"), len(texts))

    def _client(self) -> OpenAI:
        with self._lock:
            if self._cached_client is None:
                if not self.secret and self._needs_key:
                    raise RemoteFailure("there is no key", status=401)
                if wrong := key_problem(self.secret):
                    raise RemoteFailure(wrong, status=401)
                try:
                    self._cached_client = openai_client(self.address, self.secret, self._timeout)
                except ImportError as error:
                    raise missing_package_error("openai", "openai") from error
            return self._cached_client


def _unreachable_reason(address: str, secret: str) -> str:
    """Return why a server cannot be asked, if it does not list its models in a moment."""
    # Without the SDK, which takes longer to load than a server on this machine to answer.
    from http.client import HTTPException
    from urllib.error import HTTPError
    from urllib.request import Request, urlopen

    # What urlopen would take for a part of the host; the SDK sends it so.
    user, shown = credentials_in(address), strip_credentials(address)
    sent = f"Basic {base64.b64encode(user.encode()).decode()}" if user else f"Bearer {secret}"
    try:
        request = Request(f"{shown}/models", headers={"Authorization": sent} if user or secret else {})
        with urlopen(request, timeout=_PROBE_TIMEOUT):
            return ""
    except HTTPError as error:
        with error:
            if error.code in (401, 403):
                return f"{shown} wants a key that it knows ({error.code}); set the one for it."
            return ""  # it is there, and not every server lists its models
    except (OSError, HTTPException, ValueError) as error:
        why = getattr(error, "reason", error)
        return f"{shown} does not answer ({why}); start the server, or set its address."


def _parse_vectors(data: object, expected: int) -> list[Sequence[float]]:
    if not isinstance(data, list) or not all(isinstance(one, dict) for one in data):
        raise RemoteFailure("the answer holds no vectors")
    # The format allows any order; `index` says which text a vector belongs to.
    places = [one.get("index") for one in data]
    if sorted(place for place in places if isinstance(place, int)) == list(range(len(data))):
        data = sorted(data, key=lambda one: one["index"])
    elif len(data) == expected and any(places):  # some servers number nothing, or every vector 0
        raise RemoteFailure("the answer numbers its vectors wrongly")
    return [_parse_vector(one.get("embedding")) for one in data]


def _parse_vector(value: object) -> Sequence[float]:
    """Return the numbers of a vector; a server that does not know base64 writes them out."""
    if isinstance(value, list):
        return value
    if isinstance(value, str):
        try:
            return np.frombuffer(base64.b64decode(value, validate=True), "<f4")  # type: ignore[return-value]
        except (binascii.Error, ValueError):
            pass
    raise RemoteFailure("the answer holds a vector that cannot be read")


def _find_known_model(model: str) -> _KnownModel | None:
    return next((one for one in _KNOWN_MODELS if one.name_part in model.lower()), None)


def build(
    preset: str = "openai",
    *,
    model: str | None = None,
    base_url: str | None = None,
    api_key: str = "",
    dimensions: int | None = None,
    prefix: bool | None = None,
    max_tokens: int | None = None,
    too_long: LongTextPolicy = "average",
    batch: int = 100,
    parallel: int = 4,
    timeout: float = 60.0,
    retries: int = 3,
    delay: float = 1.0,
    backoff: float = 2.0,
    sleep: Callable[[float], object] | None = None,
) -> Remote:
    """Return the embedder; prefixes are put before texts if a model of nomic's is asked, unless said otherwise."""
    known = PRESETS[preset]
    model = model or known.model
    found = _find_known_model(model)
    server = Server(
        preset,
        model=model,
        address=(base_url or known.address).rstrip("/"),
        secret=api_key,
        dimensions=dimensions,
        use_prefix="nomic" in model.lower() if prefix is None else prefix,
        timeout=timeout,
    )
    tokens = max_tokens or (found.max_tokens if found else None)
    return Remote(server, RequestLimits(batch, parallel, tokens, too_long, retries, delay, backoff), sleep=sleep)
