"""Define how a provider of rerankers declares what it needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bunko.protocols import Reranker


@dataclass(frozen=True, slots=True)
class RerankerProvider:
    """A provider of rerankers; each module of `rerankers` that declares one as `PROVIDER` is found by its name."""

    build: Callable[[str], Reranker]  # from the name of a model; an empty one means its default
    extra: str = ""  # of bunko, with the packages it needs; empty if there is none
    description: str = ""  # one line; empty: the first line of the module's docstring
