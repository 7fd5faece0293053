"""Asks OpenAI, or any server that speaks as it does, for vectors: LM Studio, OpenRouter, Ollama, vLLM."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bunko.embedders.remote import Failure, Limits, Remote, TooLong, missing, retry_after

if TYPE_CHECKING:
    from openai import OpenAI

DOCUMENT, QUERY = "search_document: ", "search_query: "


class Preset(NamedTuple):
    """A server that is known by name."""

    address: str
    model: str
    key: str = ""  # the name of its key in the environment; a server on this machine needs none


PRESETS = {
    "openai": Preset("https://api.openai.com/v1", "text-embedding-3-small", "OPENAI_API_KEY"),
    "lmstudio": Preset("http://localhost:1234/v1", "nomic-embed-text"),
    "openrouter": Preset("https://openrouter.ai/api/v1", "mixedbread-ai/mxbai-embed-large-v1", "OPENROUTER_API_KEY"),
    "ollama": Preset("http://localhost:11434/v1", "nomic-embed-text"),
}


class _Known(NamedTuple):
    part: str  # of the model's name
    size: int
    tokens: int


# The first that fits: servers add owners, versions and endings to these names.
_KNOWN = (
    _Known("text-embedding-3-small", 1536, 8191),
    _Known("text-embedding-3-large", 3072, 8191),
    _Known("text-embedding-ada-002", 1536, 8191),
    _Known("mxbai-embed-large", 1024, 512),
    _Known("nomic-embed-text", 768, 2048),
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
        prefix: bool,
        timeout: float,
    ) -> None:
        known = _known(model)
        self.label = f"{preset}:{model}" + (":prefixed" if prefix else "")
        self.size = dimensions or (known.size if known else None)
        self.address, self.secret = address, secret
        own = PRESETS[preset].key
        self.fix = f"Set {own} to a key that is valid there." if own else f"Check what {address} wants."
        # A key may be left out only where somebody else's address was given.
        self._needs_key = bool(own) and address == PRESETS[preset].address
        self._model, self._dimensions, self._prefix, self._timeout = model, dimensions, prefix, timeout
        self._made: OpenAI | None = None
        self._lock = Lock()

    def ask(self, texts: Sequence[str], *, query: bool) -> list[Sequence[float]]:
        """Return a vector for each text, in their order."""
        client = self._client()
        from openai import APIStatusError, OpenAIError

        before = (QUERY if query else DOCUMENT) if self._prefix else ""
        more: dict[str, Any] = {"dimensions": self._dimensions} if self._dimensions else {}
        try:
            # A third of the bytes that numbers take when they are written out, and every bit of them.
            answer = client.embeddings.create(
                model=self._model, input=[before + text for text in texts], encoding_format="base64", **more
            )
        except APIStatusError as error:
            headers = error.response.headers
            wait = retry_after(headers.get("retry-after"))
            raise Failure(_said(error.body, error.message), status=error.status_code, wait=wait) from error
        except (OpenAIError, ValueError) as error:
            raise Failure(str(error) or type(error).__name__) from error
        return _vectors(getattr(answer, "data", None), len(texts))

    def _client(self) -> OpenAI:
        with self._lock:
            if self._made is None:
                try:
                    from openai import OpenAI
                except ImportError as error:
                    raise missing("openai", "openai") from error
                if not self.secret and self._needs_key:
                    raise Failure("there is no key", status=401)
                # Given none, the SDK would send OPENAI_API_KEY, whoever listens at the address.
                self._made = OpenAI(
                    api_key=self.secret or "none", base_url=self.address, timeout=self._timeout, max_retries=0
                )
            return self._made


def _vectors(data: object, wanted: int) -> list[Sequence[float]]:
    if not isinstance(data, list):
        raise Failure("the answer holds no vectors")
    # The format allows any order; `index` says which text a vector belongs to.
    places = [getattr(one, "index", None) for one in data]
    if sorted(place for place in places if isinstance(place, int)) == list(range(len(data))):
        data = sorted(data, key=lambda one: one.index)
    elif len(data) == wanted and any(places):  # some servers number nothing, or every vector 0
        raise Failure("the answer numbers its vectors wrongly")
    return [_numbers(getattr(one, "embedding", None)) for one in data]


def _numbers(value: object) -> Sequence[float]:
    """Return the numbers of a vector; a server that does not know base64 writes them out."""
    if isinstance(value, list):
        return value
    if isinstance(value, str):
        try:
            return np.frombuffer(base64.b64decode(value, validate=True), "<f4")  # type: ignore[return-value]
        except (binascii.Error, ValueError):
            pass
    raise Failure("the answer holds a vector that cannot be read")


def _said(body: object, otherwise: str) -> str:
    """Return what a server says went wrong, of the shapes that servers use."""
    if isinstance(body, dict):
        for name in ("message", "error", "detail"):
            if isinstance(body.get(name), str):
                return str(body[name])
    return otherwise


def _known(model: str) -> _Known | None:
    return next((one for one in _KNOWN if one.part in model.lower()), None)


def build(
    preset: str = "openai",
    *,
    model: str | None = None,
    base_url: str | None = None,
    api_key: str = "",
    dimensions: int | None = None,
    prefix: bool | None = None,
    max_tokens: int | None = None,
    too_long: TooLong = "average",
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
    found = _known(model)
    server = Server(
        preset,
        model=model,
        address=(base_url or known.address).rstrip("/"),
        secret=api_key,
        dimensions=dimensions,
        prefix="nomic" in model.lower() if prefix is None else prefix,
        timeout=timeout,
    )
    tokens = max_tokens or (found.tokens if found else None)
    return Remote(server, Limits(batch, parallel, tokens, too_long, retries, delay, backoff), sleep=sleep)
