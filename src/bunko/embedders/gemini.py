"""Embeddings from the Gemini API, through Google's SDK."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any

from bunko.embedders.provider import (
    GEMINI_MODEL,
    MODEL_OPTION,
    REQUEST_ARGUMENTS,
    Provider,
    ProviderOption,
    missing_package_error,
)
from bunko.runtime.installation import missing_package_message
from bunko.runtime.remote import RemoteFailure, key_problem, parse_retry_after, system_message

if TYPE_CHECKING:
    from google.genai import Client

    from bunko.embedders.long_texts import LongTextPolicy
    from bunko.embedders.remote import Remote

ADDRESS = "https://generativelanguage.googleapis.com"
MODEL = GEMINI_MODEL
_MAX_TEXTS = 100  # in one request
_MAX_TOKENS = 2048  # of a text; the API silently drops the rest
_SECONDS_PATTERN = re.compile(r"(\d+(?:\.\d+)?)s")


class Gemini:
    """One model of the Gemini API."""

    fix = "Set GEMINI_API_KEY (or GOOGLE_API_KEY) to a valid key."

    def __init__(
        self,
        *,
        model: str,
        size: int,
        document_task: str,
        query_task: str,
        secret: str,
        address: str | None,
        timeout: float,
    ) -> None:
        self.label = f"gemini:{model}:{document_task}:{query_task}"
        self.size: int | None = size
        self.address = address or ADDRESS
        self.secret = secret
        self._model, self._dimensions, self._timeout = model, size, timeout
        self._tasks = {False: document_task, True: query_task}
        self._cached_client: Client | None = None
        self._lock = Lock()

    def setup_problem(self) -> str:
        """Return what is missing (the SDK or the key), or an empty string."""
        if message := missing_package_message("google.genai", "google-genai", "gemini"):
            return message
        if problem := key_problem(self.secret):
            return f"{problem.capitalize()}. {self.fix}"
        return "" if self.secret else f"No API key is set. {self.fix}"

    def unavailable_reason(self) -> str:
        """Return the same: the service is taken to be up."""
        return self.setup_problem()

    def request_vectors(self, texts: Sequence[str], *, query: bool) -> list[Sequence[float]]:
        """Return one vector per text, in the order of the texts; vectors of reduced size are not of unit length."""
        client = self._client()
        import httpx2
        from google.genai.errors import APIError
        from google.genai.types import EmbedContentConfig

        contents: Any = list(texts)
        config = EmbedContentConfig(task_type=self._tasks[query], output_dimensionality=self._dimensions)
        try:
            response = client.models.embed_content(model=self._model, contents=contents, config=config)
        except APIError as error:
            status = error.code if isinstance(error.code, int) else 0
            if status == 400 and "API_KEY_INVALID" in str(error.details):
                status = 401
            raise RemoteFailure(
                error.message or str(error.status), status=status, retry_after=_retry_delay(error)
            ) from error
        except (httpx2.HTTPError, ValueError) as error:
            raise RemoteFailure(system_message(error) or str(error) or type(error).__name__) from error
        return [embedding.values or [] for embedding in response.embeddings or []]

    def _client(self) -> Client:
        with self._lock:
            if self._cached_client is None:
                try:
                    from google.genai import Client
                    from google.genai.types import HttpOptions, HttpRetryOptions
                except ImportError as error:
                    raise missing_package_error("google-genai", "gemini") from error
                if not self.secret:
                    raise RemoteFailure("no API key is set", status=401)
                if problem := key_problem(self.secret):
                    raise RemoteFailure(problem, status=401)
                # If both variables are set, the SDK warns that it uses GOOGLE_API_KEY; but it uses the key passed here.
                import logging

                logging.getLogger("google_genai._api_client").setLevel(logging.ERROR)
                options = HttpOptions(
                    base_url=self.address,
                    timeout=max(int(self._timeout * 1000), 1),
                    retry_options=HttpRetryOptions(attempts=1),
                )
                self._cached_client = Client(api_key=self.secret, vertexai=False, http_options=options)
            return self._cached_client


def _retry_delay(error: Any) -> float | None:
    """Return how long Gemini asks to wait: in the Retry-After header, or in the error details as `"30s"`."""
    seconds = parse_retry_after(getattr(error.response, "headers", {}).get("retry-after"))
    details = error.details.get("error", {}).get("details", ()) if isinstance(error.details, dict) else ()
    for detail in details if seconds is None and isinstance(details, list) else ():
        match = _SECONDS_PATTERN.fullmatch(str(detail.get("retryDelay", ""))) if isinstance(detail, dict) else None
        if match:
            return float(match[1])
    return seconds


def build(
    *,
    model: str = MODEL,
    size: int = 768,
    document: str = "RETRIEVAL_DOCUMENT",
    query: str = "RETRIEVAL_QUERY",
    api_key: str = "",
    base_url: str | None = None,
    max_tokens: int | None = None,
    too_long: LongTextPolicy = "average",
    batch: int = _MAX_TEXTS,
    parallel: int = 4,
    timeout: float = 60.0,
    query_timeout: float = 3.0,
    retries: int = 3,
    delay: float = 1.0,
    backoff: float = 2.0,
    sleep: Callable[[float], object] | None = None,
) -> Remote:
    """Return the embedder; Google recommends the sizes 768, 1536 and 3072."""
    from bunko.embedders.remote import Remote, RequestLimits

    service = Gemini(
        model=model,
        size=size,
        document_task=document,
        query_task=query,
        secret=api_key,
        address=base_url,
        timeout=timeout,
    )
    tokens = max_tokens or _MAX_TOKENS
    limits = RequestLimits(min(batch, _MAX_TEXTS), parallel, tokens, too_long, retries, delay, backoff, query_timeout)
    return Remote(service, limits, sleep=sleep)


PROVIDER = Provider(
    build,
    extra="gemini",
    shared=REQUEST_ARGUMENTS,
    options=(
        MODEL_OPTION,
        ProviderOption("output_dimensionality", "size", 768, "Vector size of gemini", int, low=1),
        ProviderOption("task_type_document", "document", "RETRIEVAL_DOCUMENT", "Task type of gemini for documents"),
        ProviderOption("task_type_query", "query", "RETRIEVAL_QUERY", "Task type of gemini for queries"),
        ProviderOption("gemini_base_url", "base_url", ADDRESS, "URL of Gemini", env="GEMINI_BASE_URL"),
        ProviderOption(
            "gemini_api_key", "api_key", "", "API key for Gemini", env="GEMINI_API_KEY GOOGLE_API_KEY", secret=True
        ),
    ),
)
