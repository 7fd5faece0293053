"""Embeddings from OpenAI or any server with an OpenAI-compatible API: LM Studio, OpenRouter, Ollama, vLLM."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

from bunko.embedders.provider import (
    REQUEST_ARGUMENTS,
    Provider,
    ProviderAlias,
    ProviderOption,
    missing_package_error,
)
from bunko.runtime.installation import missing_package_message
from bunko.runtime.remote import (
    RemoteFailure,
    credentials_in,
    key_problem,
    openai_client,
    strip_credentials,
    translate_openai_errors,
)

if TYPE_CHECKING:
    from openai import OpenAI

    from bunko.embedders.long_texts import LongTextPolicy
    from bunko.embedders.remote import Remote

_PROBE_TIMEOUT = 2.0  # seconds; a server that is up lists its models within them
DOCUMENT_PREFIX, QUERY_PREFIX = "search_document: ", "search_query: "


class EmbeddingPreset(NamedTuple):
    """The defaults of a server that can be chosen by name."""

    address: str
    model: str
    key_variable: str  # environment variable of the API key; empty for a local server, which needs none
    description: str


PRESETS = {
    "openai": EmbeddingPreset(
        "https://api.openai.com/v1", "text-embedding-3-small", "OPENAI_API_KEY",
        "Embeddings from OpenAI, or any server with an OpenAI-compatible API.",
    ),
    "lmstudio": EmbeddingPreset(
        "http://localhost:1234/v1", "nomic-embed-text", "", "Embeddings from LM Studio, usually on this machine.",
    ),
    "openrouter": EmbeddingPreset(
        "https://openrouter.ai/api/v1", "mixedbread-ai/mxbai-embed-large-v1", "OPENROUTER_API_KEY",
        "Embeddings from OpenRouter, which forwards texts to models of many providers.",
    ),
    "ollama": EmbeddingPreset(
        "http://localhost:11434/v1", "nomic-embed-text", "", "Embeddings from Ollama, usually on this machine.",
    ),
}  # fmt: skip


class _KnownModel(NamedTuple):
    name_part: str  # of the model's name
    size: int
    max_tokens: int


# The first match counts: servers add owners, versions and suffixes to these names.
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
        known_model = _find_known_model(model)
        self.label = f"{preset}:{model}" + (":prefixed" if use_prefix else "")
        self.size = dimensions or (known_model.size if known_model else None)
        self.address, self.secret = address, secret
        key_variable = PRESETS[preset].key_variable
        self.fix = (
            f"Set {key_variable} to a valid key."
            if key_variable
            else f"Check which key {strip_credentials(address)} requires."
        )
        # The key is optional only if the address is not the preset's own.
        self._needs_key = bool(key_variable) and address == PRESETS[preset].address
        self._model, self._dimensions, self._use_prefix, self._timeout = model, dimensions, use_prefix, timeout
        self._cached_client: OpenAI | None = None
        self._lock = Lock()

    def setup_problem(self) -> str:
        """Return what is missing here (the SDK or the key), or an empty string."""
        if message := missing_package_message("openai", "openai", "openai"):
            return message
        if problem := key_problem(self.secret):
            return f"{problem.capitalize()}. {self.fix}"
        return f"No API key is set. {self.fix}" if self._needs_key and not self.secret else ""

    def unavailable_reason(self) -> str:
        """Return what is missing (the SDK, the key or a server that answers), or an empty string."""
        if (problem := self.setup_problem()) or self._needs_key:
            return problem
        return _unreachable_reason(self.address, self.secret)

    def request_vectors(self, texts: Sequence[str], *, query: bool) -> list[Sequence[float]]:
        """Return one vector per text, in the order of the texts."""
        client = self._client()
        prefix = (QUERY_PREFIX if query else DOCUMENT_PREFIX) if self._use_prefix else ""
        extra: dict[str, Any] = {"dimensions": self._dimensions} if self._dimensions else {}
        with translate_openai_errors():
            # base64 takes a third of the bytes of decimal numbers, without loss.
            response = client.embeddings.with_raw_response.create(
                model=self._model, input=[prefix + text for text in texts], encoding_format="base64", **extra
            )
            # Parsed here: parsing a hundred vectors into objects of the SDK takes twice as long.
            payload = json.loads(response.content)
        if not isinstance(payload, dict):
            raise RemoteFailure("the response contains no vectors")
        if isinstance(error := payload.get("error"), dict) and "data" not in payload:
            # OpenRouter sends status 200 before it knows whether the request succeeds.
            code = error.get("code")
            raise RemoteFailure(str(error.get("message")), status=code if isinstance(code, int) else 0)
        data = payload.get("data")
        if not isinstance(data, list) or not all(isinstance(item, dict) for item in data):
            raise RemoteFailure("the response contains no vectors")
        # The API allows any order; `index` says which text a vector belongs to.
        indexes = [item.get("index") for item in data]
        if sorted(index for index in indexes if isinstance(index, int)) == list(range(len(data))):
            data = sorted(data, key=lambda item: item["index"])
        elif len(data) == len(texts) and any(indexes):  # some servers send no index, or 0 for every vector
            raise RemoteFailure("the response has invalid vector indexes")
        return [_parse_vector(item.get("embedding")) for item in data]

    def _client(self) -> OpenAI:
        with self._lock:
            if self._cached_client is None:
                if not self.secret and self._needs_key:
                    raise RemoteFailure("no API key is set", status=401)
                if problem := key_problem(self.secret):
                    raise RemoteFailure(problem, status=401)
                try:
                    self._cached_client = openai_client(self.address, self.secret, self._timeout)
                except ImportError as error:
                    raise missing_package_error("openai", "openai") from error
            return self._cached_client


def _unreachable_reason(address: str, secret: str) -> str:
    """Return why a server cannot be used, or an empty string if it lists its models in time."""
    # Without the SDK, which takes longer to import than a local server to answer.
    from http.client import HTTPException
    from urllib.error import HTTPError
    from urllib.request import Request, urlopen

    # urlopen would take credentials for a part of the host; the SDK sends them as Basic authentication.
    credentials, public_address = credentials_in(address), strip_credentials(address)
    authorization = f"Basic {base64.b64encode(credentials.encode()).decode()}" if credentials else f"Bearer {secret}"
    try:
        request = Request(
            f"{public_address}/models", headers={"Authorization": authorization} if credentials or secret else {}
        )
        with urlopen(request, timeout=_PROBE_TIMEOUT):
            return ""
    except HTTPError as error:
        with error:
            if error.code in (401, 403):
                return f"{public_address} rejects the key ({error.code}); set the key of this server."
            return ""  # it is up; not every server lists its models
    except (OSError, HTTPException, ValueError) as error:
        reason = getattr(error, "reason", error)
        reason = getattr(reason, "strerror", None) or reason  # without its number
        return f"{public_address} does not answer ({reason}); start the server, or set its address."


def _parse_vector(value: object) -> Sequence[float]:
    """Return the values of a vector: base64, or a list from a server that does not support base64."""
    if isinstance(value, list):
        return value
    if isinstance(value, str):
        import numpy as np

        try:
            return np.frombuffer(base64.b64decode(value, validate=True), "<f4")  # type: ignore[return-value]
        except (binascii.Error, ValueError):
            pass
    raise RemoteFailure("the response contains a vector that cannot be decoded")


def _find_known_model(model: str) -> _KnownModel | None:
    return next((entry for entry in _KNOWN_MODELS if entry.name_part in model.lower()), None)


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
    query_timeout: float = 3.0,
    retries: int = 3,
    delay: float = 1.0,
    backoff: float = 2.0,
    sleep: Callable[[float], object] | None = None,
) -> Remote:
    """Return the embedder; texts get a prefix if `prefix` is true, or by default if it is a nomic model."""
    from bunko.embedders.remote import Remote, RequestLimits

    defaults = PRESETS[preset]
    model = model or defaults.model
    known_model = _find_known_model(model)
    server = Server(
        preset,
        model=model,
        address=(base_url or defaults.address).rstrip("/"),
        secret=api_key,
        dimensions=dimensions,
        use_prefix="nomic" in model.lower() if prefix is None else prefix,
        timeout=timeout,
    )
    tokens = max_tokens or (known_model.max_tokens if known_model else None)
    return Remote(
        server, RequestLimits(batch, parallel, tokens, too_long, retries, delay, backoff, query_timeout), sleep=sleep
    )


def _declare(preset: str, service: str, model: ProviderOption, *, alias: str = "") -> Provider:
    """Return the declaration of a server: its model, URL and key, and the options that all of these servers have."""
    address, _, key_variable, description = PRESETS[preset]
    url_names = f"{preset.upper()}_BASE_URL"
    key_option = ProviderOption(
        f"{preset}_api_key", "api_key", "", f"API key for {service}", env=key_variable, secret=True
    )
    url_meaning = "URL of OpenAI or of an OpenAI-compatible server" if preset == "openai" else f"URL of {service}"
    return Provider(
        build,
        extra="openai",
        description=description,
        arguments={"preset": preset},
        shared=REQUEST_ARGUMENTS,
        options=(
            model,
            ProviderOption(f"{preset}_base_url", "base_url", address, url_meaning, env=url_names),
            *((key_option,) if key_variable else ()),
            *_SERVER_OPTIONS,
        ),
        aliases={alias: ProviderAlias()} if alias else {},
    )


_SERVER_OPTIONS = (
    ProviderOption(
        "dimensions",
        "dimensions",
        None,
        "Vector size to request from an OpenAI-compatible server. Not set: the default of the model",
        int | None,
        low=1,
    ),
    ProviderOption(
        "prefix_enabled",
        "prefix",
        None,
        "Prefix texts with search_document: and search_query:. Not set: only for models that expect it",
        bool | None,
        env="EMBEDDING_PREFIX_ENABLED",
    ),
)


def _model(key: str, preset: str, meaning: str, env: str = "") -> ProviderOption:
    return ProviderOption(key, "model", PRESETS[preset].model, meaning, env=env)


PROVIDERS = {
    "openai": _declare(
        "openai", "OpenAI", alias="online",
        model=_model("model_online", "openai", "Model of openai (online)", "EMBEDDING_MODEL_ONLINE"),
    ),
    "lmstudio": _declare(
        "lmstudio", "LM Studio", alias="local",
        model=_model("model_local", "lmstudio", "Model of lmstudio (local)", "EMBEDDING_MODEL_LOCAL"),
    ),
    "openrouter": _declare(
        "openrouter", "OpenRouter", _model("model_openrouter", "openrouter", "Model of openrouter")
    ),
    "ollama": _declare("ollama", "Ollama", _model("model_ollama", "ollama", "Model of ollama")),
}  # fmt: skip
