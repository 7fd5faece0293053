"""Count what a server does, and publish it in the text format of Prometheus, for all workers together."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bunko.interfaces.http.parts import part_of
from bunko.runtime.activity import ImportResult, SearchResult
from bunko.version import __version__

if TYPE_CHECKING:
    from prometheus_client import Metric

# In seconds: from a search by words in a small library to an import that a search waits for.
_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
# Requests for other paths are counted together: a label for each would let anybody fill the memory.
PATHS = ("/mcp", "/healthz", "/readyz", "/metrics")


@dataclass(frozen=True, slots=True)
class LibraryState:
    """What is asked of the library itself when somebody reads the metrics."""

    is_ready: bool
    store: str = ""
    index: str = ""
    generation: int | None = None
    index_lag: int | None = None  # generations that the index of some tool is behind the store
    pending_documents: int | None = None


class ServerMetrics:
    """The metrics of one server process; with a shared folder, those of all processes that share it.

    The labels are modes, stages, outcomes, paths and status codes: no query, no token, and no name that somebody chose.
    """

    def __init__(self, shared_folder: Path | None = None) -> None:
        # The package reads this variable once, when it is imported.
        if shared_folder is None:
            os.environ.pop("PROMETHEUS_MULTIPROC_DIR", None)
        else:
            os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(shared_folder)
        from prometheus_client import CollectorRegistry, Counter, Histogram

        self._shared_folder, self._registry = shared_folder, CollectorRegistry()
        registry = self._registry
        self._searches = Counter("bunko_searches", "Searches by mode and result", ["mode", "result"], registry=registry)
        self._stages = Histogram(
            "bunko_stage_seconds", "Time of each stage of a search or import", ["stage"],
            registry=registry, buckets=_BUCKETS,
        )  # fmt: skip
        self._imports = Counter("bunko_imports", "Imports of a tool by this server", ["result"], registry=registry)
        self._imported = Counter(
            "bunko_imported_documents", "Documents that imports of this server wrote or removed", registry=registry
        )
        self._lookups = Counter(
            "bunko_cache_lookups", "Lookups in a cache by result", ["cache", "result"], registry=registry
        )
        self._requests = Counter(
            "bunko_http_requests", "HTTP requests by path and status", ["path", "status"], registry=registry
        )
        Counter("bunko_worker_starts", "Server processes that were started", registry=registry).inc()

    def on_search(self, mode: str, result: SearchResult, seconds: float) -> None:
        """Count a search."""
        self._searches.labels(mode or "unknown", result).inc()
        self._stages.labels("answer").observe(seconds)

    def on_import(self, result: ImportResult, documents: int) -> None:
        """Count an import."""
        self._imports.labels(result).inc()
        self._imported.inc(documents)

    def on_cache(self, cache: str, *, is_hit: bool) -> None:
        """Count a lookup."""
        self._lookups.labels(cache, "hit" if is_hit else "miss").inc()

    def on_stage(self, stage: str, seconds: float) -> None:
        """Add the time of a step."""
        self._stages.labels(stage).observe(seconds)

    def count_request(self, path: str, status: int) -> None:
        """Count an HTTP request."""
        label = "/api" if part_of(path) == "api" else path if path in PATHS else "other"
        self._requests.labels(label, str(status)).inc()

    def render(self, state: LibraryState) -> tuple[bytes, str]:
        """Return the metrics as text, and its media type."""
        from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
        from prometheus_client.multiprocess import MultiProcessCollector

        registry = self._registry
        if self._shared_folder is not None:
            registry = CollectorRegistry()
            MultiProcessCollector(registry, path=str(self._shared_folder))  # type: ignore[no-untyped-call]
        gauges = CollectorRegistry()
        gauges.register(_LibraryCollector(state))
        return generate_latest(registry) + generate_latest(gauges), CONTENT_TYPE_LATEST


class _LibraryCollector:
    """Describes the library; every worker would say the same."""

    def __init__(self, state: LibraryState) -> None:
        self._state = state

    def collect(self) -> Iterable[Metric]:
        """Return the metrics of the library."""
        from prometheus_client.core import GaugeMetricFamily

        state = self._state
        labels = {
            "version": __version__, "python": platform.python_version(), "store": state.store, "index": state.index,
        }  # fmt: skip
        info = GaugeMetricFamily("bunko_build_info", "What serves, with the value 1", labels=list(labels))
        info.add_metric(list(labels.values()), 1)
        yield info
        numbers = {
            "bunko_ready": ("1 if searches can be answered, as /readyz says", int(state.is_ready)),
            "bunko_library_generation": ("Grows with every change of the library", state.generation),
            "bunko_index_lag_generations": ("Generations that the index is behind the library", state.index_lag),
            "bunko_index_pending_documents": ("Documents that the index lacks", state.pending_documents),
        }
        for name, (text, value) in numbers.items():
            if value is not None:
                yield GaugeMetricFamily(name, text, value=value)
