"""A source and an embedder for tests on a Ray cluster, whose workers import this module."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from bunko import readers
from bunko.protocols import Scan
from bunko.types import Fingerprint, SourceEntry, Text

if TYPE_CHECKING:
    from bunko.types import Vectors


class DeadlyNotes:
    """Notes of which one kills the process that decodes it, unless that is the importing one."""

    def __init__(self, count: int, deadly: int) -> None:
        self._count, self._deadly, self._importer = count, deadly, os.getpid()

    def scan(self, fingerprints: Mapping[str, Fingerprint]) -> Scan:
        return Scan(added=[SourceEntry(f"{number}.md", 100, 1) for number in range(self._count)])

    def read(self, entry: SourceEntry) -> tuple[bytes, SourceEntry]:
        return f"# Note\n\nKyoto {entry.uri}".encode(), entry

    def text(self, data: bytes, entry: SourceEntry) -> Text:
        if entry.uri == f"{self._deadly}.md" and os.getpid() != self._importer:
            os.kill(os.getpid(), signal.SIGKILL)
        return readers.read(data, entry.uri)

    def has_vanished(self, known_uris: Iterable[str]) -> bool:
        return False


class LargeModel:
    """A model for a GPU: its vectors tell the process and the GPU that computed them."""

    name = "large:3"
    label = "large"
    size = 3
    batch_size = 10
    noise_floor = -1.0
    is_remote = False
    is_large = True

    def unavailable_reason(self) -> str:
        return ""

    def embed(self, texts: Sequence[str], *, query: bool = False) -> Vectors:
        import numpy as np

        gpu = os.environ.get("CUDA_VISIBLE_DEVICES", "")
        threads = int(os.environ.get("OMP_NUM_THREADS", "0"))
        return np.array([[os.getpid(), int(gpu) + 1 if gpu.isdigit() else 0, threads]] * len(texts), np.float32)
