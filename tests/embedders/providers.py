"""Remote embedders that talk to a server on loopback."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bunko.embedders import gemini, openai
from bunko.embedders.remote import Remote
from tests.loopback import KEY, Loopback, Reply, gemini_error, openai_error


class Provider:
    """An embedder of each kind, and how long it waited."""

    def __init__(self, kind: str, service: Loopback) -> None:
        self.kind, self.service = kind, service
        self.waits: list[float] = []

    def build(self, **options: Any) -> Remote:
        options = {"sleep": self.waits.append, "api_key": KEY, "timeout": 10.0, **options}
        if self.kind == "gemini":
            return gemini.build(base_url=self.service.address, **options)
        if "dimensions" not in options:
            options = {"model": "text-embedding-3-small", "dimensions": 8, **options}
        return openai.build(base_url=f"{self.service.address}/v1", **options)

    def error(self, status: int, message: str, **headers: str) -> Reply:
        if self.kind == "gemini":
            return gemini_error(status, "UNAVAILABLE", message, **headers)
        return openai_error(status, message, **headers)


def unit(numbers: Sequence[float]) -> np.ndarray:
    row = np.asarray(numbers, np.float32)
    return row / np.linalg.norm(row)
