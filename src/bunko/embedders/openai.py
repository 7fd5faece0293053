"""Asks OpenAI, or any server that speaks as it does, for vectors: LM Studio, OpenRouter, Ollama, vLLM."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bunko.embedders.long_texts import TooLong
from bunko.embedders.remote import Limits, Remote, lacking, missing
from bunko.remote import Failure, key_problem, openai_client, openai_failures, user_in, without_user

if TYPE_CHECKING:
    from openai import OpenAI

_MOMENT = 2.0  # seconds in which a server that is up lists its models
DOCUMENT, QUERY = "search_document: ", "search_query: "


class Preset(NamedTuple):
    """A server that is known by name."""

    address: str
    model: str
    key: str  # the name of its key in the environment; a server on this machine needs none
    about: str


PRESETS = {
    "openai": Preset(
        "https://api.openai.com/v1", "text-embedding-3-small", "OPENAI_API_KEY",
        "Asks OpenAI for vectors, or any server that speaks as it does.",
    ),
    "lmstudio": Preset(
        "http://localhost:1234/v1", "nomic-embed-text", "", "Asks LM Studio, usually on this machine, for vectors.",
    ),
    "openrouter": Preset(
        "https://openrouter.ai/api/v1", "mixedbread-ai/mxbai-embed-large-v1", "OPENROUTER_API_KEY",
        "Asks OpenRouter, which passes texts on to models of many makers, for vectors.",
    ),
    "ollama": Preset(
        "http://localhost:11434/v1", "nomic-embed-text", "", "Asks Ollama, usually on this machine, for vectors.",
    ),
}  # fmt: skip


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
        self.fix = f"Set {own} to a key that is valid there." if own else f"Check what {without_user(address)} wants."
        # A key may be left out only where somebody else's address was given.
        self._needs_key = bool(own) and address == PRESETS[preset].address
        self._model, self._dimensions, self._prefix, self._timeout = model, dimensions, prefix, timeout
        self._made: OpenAI | None = None
        self._lock = Lock()

    def available(self) -> str:
        """Return what is missing: the SDK, the key, or a server that answers."""
        if told := lacking("openai", "openai", "openai"):
            return told
        if wrong := key_problem(self.secret):
            return f"{wrong.capitalize()}. {self.fix}"
        if self._needs_key:
            return "" if self.secret else f"There is no key. {self.fix}"
        return _unreachable(self.address, self.secret)

    def ask(self, texts: Sequence[str], *, query: bool) -> list[Sequence[float]]:
        """Return a vector for each text, in their order."""
        client = self._client()
        before = (QUERY if query else DOCUMENT) if self._prefix else ""
        more: dict[str, Any] = {"dimensions": self._dimensions} if self._dimensions else {}
        with openai_failures():
            # A third of the bytes that numbers take when they are written out, and every bit of them.
            answer = client.embeddings.with_raw_response.create(
                model=self._model, input=[before + text for text in texts], encoding_format="base64", **more
            )
            # Read here: as objects of the SDK a hundred vectors take twice as long.
            found = json.loads(answer.content)
        if not isinstance(found, dict):
            raise Failure("the answer holds no vectors")
        if isinstance(error := found.get("error"), dict) and "data" not in found:
            # OpenRouter begins to answer before it knows whether it can.
            code = error.get("code")
            raise Failure(str(error.get("message")), status=code if isinstance(code, int) else 0)
        return _vectors(found.get("data"), len(texts))

    def _client(self) -> OpenAI:
        with self._lock:
            if self._made is None:
                if not self.secret and self._needs_key:
                    raise Failure("there is no key", status=401)
                if wrong := key_problem(self.secret):
                    raise Failure(wrong, status=401)
                try:
                    self._made = openai_client(self.address, self.secret, self._timeout)
                except ImportError as error:
                    raise missing("openai", "openai") from error
            return self._made


def _unreachable(address: str, secret: str) -> str:
    """Return why a server cannot be asked, if it does not list its models in a moment."""
    # Without the SDK, which takes longer to load than a server on this machine to answer.
    from http.client import HTTPException
    from urllib.error import HTTPError
    from urllib.request import Request, urlopen

    # What urlopen would take for a part of the host; the SDK sends it so.
    user, shown = user_in(address), without_user(address)
    sent = f"Basic {base64.b64encode(user.encode()).decode()}" if user else f"Bearer {secret}"
    try:
        request = Request(f"{shown}/models", headers={"Authorization": sent} if user or secret else {})
        with urlopen(request, timeout=_MOMENT):
            return ""
    except HTTPError as error:
        with error:
            if error.code in (401, 403):
                return f"{shown} wants a key that it knows ({error.code}); set the one for it."
            return ""  # it is there, and not every server lists its models
    except (OSError, HTTPException, ValueError) as error:
        why = getattr(error, "reason", error)
        return f"{shown} does not answer ({why}); start the server, or set its address."


def _vectors(data: object, wanted: int) -> list[Sequence[float]]:
    if not isinstance(data, list) or not all(isinstance(one, dict) for one in data):
        raise Failure("the answer holds no vectors")
    # The format allows any order; `index` says which text a vector belongs to.
    places = [one.get("index") for one in data]
    if sorted(place for place in places if isinstance(place, int)) == list(range(len(data))):
        data = sorted(data, key=lambda one: one["index"])
    elif len(data) == wanted and any(places):  # some servers number nothing, or every vector 0
        raise Failure("the answer numbers its vectors wrongly")
    return [_numbers(one.get("embedding")) for one in data]


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
