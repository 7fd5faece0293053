"""Feed a cluster with documents in order, a few at a time, and collect what its workers return."""

from __future__ import annotations

import pickle
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bunko.embedders.names import display_name
from bunko.errors import EmbedderError
from bunko.ingest.chunker_settings import ChunkerSettings
from bunko.ingest.cluster.connection import WorkerLost
from bunko.ingest.cluster.tasks import EmbeddedTexts, EmbedTask, PreparedBatch, PrepareTask, read_contents
from bunko.ingest.prepare import EntryResult
from bunko.protocols import Embedder, EmbedderStats, PortableSource, SentenceEmbedder, Source
from bunko.types import ExcerptEntry, SourceEntry

if TYPE_CHECKING:
    from bunko.ingest.cluster.connection import Cluster, ModelProcesses
    from bunko.types import SentenceSubwords, Vectors


class ClusterEmbedder:
    """A local embedder on a cluster; like a service, it answers while the next documents are prepared."""

    is_remote = True

    def __init__(self, cluster: Cluster, embedder: Embedder, pickled: bytes) -> None:
        self._cluster, self._embedder, self._pickled = cluster, embedder, pickled
        self._models: ModelProcesses | None = None
        self._cancel_count = 0
        self.stats = EmbedderStats()
        self.label, self.noise_floor = embedder.label, embedder.noise_floor
        if isinstance(embedder, SentenceEmbedder):
            self.embed_sentences = self._embed

    @property
    def name(self) -> str:
        """Return the name of the embedder."""
        return self._embedder.name

    @property
    def size(self) -> int:
        """Return the dimension of the vectors."""
        return self._embedder.size

    @property
    def identity(self) -> str:
        """Return the name, because there is neither an address nor a key."""
        return self.name

    @property
    def is_size_known(self) -> bool:
        """Return true: a local model knows its size."""
        return True

    def setup_problem(self) -> str:
        """Return why the embedder cannot be used here, or an empty string."""
        return self._embedder.unavailable_reason()

    @property
    def request_size(self) -> int:
        """Return the number of texts for one worker."""
        return self._embedder.batch_size

    @property
    def batch_size(self) -> int:
        """Return how many texts occupy all workers."""
        return self.request_size * max(self._cluster.max_tasks() // 2, 1)

    def unavailable_reason(self) -> str:
        """Return the same: nobody else is needed."""
        return self.setup_problem()

    def restore_size(self, name: str) -> None:
        """Do nothing: a local model knows its size."""

    def with_retries(self, retries: int) -> ClusterEmbedder:
        """Return this embedder: the cluster retries what it lost."""
        return self

    def cancel(self) -> None:
        """Make pending requests return soon; later requests are not affected."""
        self._cancel_count += 1

    def embed(self, texts: Sequence[str], *, query: bool = False) -> Vectors:
        """Return one vector per text, in order."""
        return self._embed(texts)[0]

    def _embed(self, texts: Sequence[str]) -> tuple[Vectors, list[SentenceSubwords]]:
        """Return the vectors of texts, and the subwords of their sentences if the embedder splits them."""
        cancel_count = self._cancel_count
        parts = [texts[start : start + self.request_size] for start in range(0, len(texts), self.request_size)]
        references = [self._submit(EmbedTask(self._pickled, self.name, part)) for part in parts]
        try:
            answers = [self._take_answer(reference, cancel_count) for reference in references]
        except BaseException:
            self._cluster.cancel(references)
            raise
        self.stats.texts += len(texts)
        self.stats.calls += len(parts)
        vectors = [
            np.zeros((0, self.size), np.float32),
            *(answer.vectors for answer in answers if answer.vectors is not None),
        ]
        return np.concatenate(vectors), [sentences for answer in answers for sentences in answer.sentences]

    def _submit(self, task: EmbedTask) -> object:
        if not getattr(self._embedder, "is_large", False):
            return self._cluster.submit(task)
        self._models = self._models or self._cluster.start_models()
        return self._models.submit(task)

    def _take_answer(self, reference: object, cancel_count: int) -> EmbeddedTexts:
        if not self._cluster.wait(reference, lambda: self._cancel_count != cancel_count):
            raise EmbedderError("The import was stopped", hint="Run the command again.")
        try:
            answer = self._cluster.result(reference)
        except WorkerLost as error:
            raise EmbedderError(
                f"The workers that ran {display_name(self.label)} were killed",
                hint="Check that the machines of the cluster have enough memory, and import again.",
            ) from error
        assert isinstance(answer, EmbeddedTexts)
        if answer.error is not None:
            raise answer.error
        self.stats.too_long += answer.too_long
        return answer


# Large files reach this before the cluster has two tasks for each CPU; results take a few times as much.
_MAX_BYTES_IN_FLIGHT = 100_000_000


@dataclass(slots=True)
class _PendingBatch:
    entries: list[SourceEntry]
    reference: Any  # to the result of its task
    is_shipped: bool  # whether its files were sent with it

    @property
    def size(self) -> int:
        return sum(entry.work_size for entry in self.entries)


class ClusterPreparer:
    """Prepares documents on the workers of a cluster, and runs local models there."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._notices: list[str] = []
        self._embedders: dict[int, ClusterEmbedder] = {}

    def place_embedder(self, embedder: Embedder | None) -> Embedder | None:
        """Return an embedder that computes vectors on the cluster, unless a service or only this process can."""
        if embedder is None or embedder.is_remote:  # the limits of a service hold for all requests together
            return embedder
        if id(embedder) not in self._embedders:
            try:
                pickled = pickle.dumps(embedder)
            except Exception:  # an embedder of another package may raise anything
                return embedder
            self._embedders[id(embedder)] = ClusterEmbedder(self._cluster, embedder, pickled)
        return self._embedders[id(embedder)]

    def take_notices(self) -> list[str]:
        """Return what the user should know about the work since the last call."""
        notices, self._notices = self._notices, []
        return notices

    def prepare(
        self,
        source: Source,
        chunker_settings: ChunkerSettings,
        embedder: Embedder | None,
        batches: Iterator[list[SourceEntry]],
        total_bytes: int,
        is_cancelled: Callable[[], bool],
    ) -> Generator[list[EntryResult], None, None]:
        """Read, chunk and tokenize batches of entries, and yield their results in the same order."""
        queue = _BatchQueue(self._cluster, source, chunker_settings)
        try:
            for batch in batches:
                queue.add(batch)
                while queue.is_full():
                    yield queue.take(is_cancelled)
            while queue.pending:
                yield queue.take(is_cancelled)
        finally:
            queue.cancel()
            if queue.has_unseen_files:
                self._notices.append(
                    "The workers do not see the files of this machine, so it sent them. A shared file system would save"
                    " that."
                )


class _BatchQueue:
    """The batches of one source that are on the cluster, in order."""

    def __init__(self, cluster: Cluster, source: Source, chunker_settings: ChunkerSettings) -> None:
        self._cluster, self._source, self._chunker_settings = cluster, source, chunker_settings
        self._ships_files = isinstance(source, PortableSource) and source.is_local_only
        self.has_unseen_files = False
        self.pending: deque[_PendingBatch] = deque()

    def is_full(self) -> bool:
        """Return whether the first results should be taken before the next batch is added."""
        return (
            len(self.pending) > self._cluster.max_tasks()
            or sum(batch.size for batch in self.pending) > _MAX_BYTES_IN_FLIGHT
        )

    def add(self, entries: list[SourceEntry]) -> None:
        """Send a batch to the cluster."""
        self.pending.append(self._submit(entries, ships_files=self._ships_files))

    def take(self, is_cancelled: Callable[[], bool]) -> list[EntryResult]:
        """Return the results of the first batch; if it is cancelled meanwhile, drop all batches."""
        while self.pending:
            first = self.pending[0]
            if not self._cluster.wait(first.reference, is_cancelled):
                self.cancel()
                break
            self.pending.popleft()
            try:
                prepared = self._cluster.result(first.reference)
            except WorkerLost:
                if len(first.entries) == 1:
                    problem = "its worker process was killed twice while it was prepared"
                    return [EntryResult(first.entries[0], first.entries[0].work_size, problem=problem)]
                # Ray has tried it twice: each document alone shows which one it is.
                alone = [self._submit([entry], ships_files=first.is_shipped) for entry in first.entries]
                self.pending.extendleft(reversed(alone))
                continue
            assert isinstance(prepared, PreparedBatch)
            if not prepared.unread_uris:
                return prepared.results
            self._ship_files(first, prepared.unread_uris)
        return []

    def cancel(self) -> None:
        """Stop the tasks of all batches, and drop them."""
        self._cluster.cancel([batch.reference for batch in self.pending])
        self.pending.clear()

    def _ship_files(self, first: _PendingBatch, unread_uris: set[str]) -> None:
        """Send the files of the first batch with it, and those of all batches if the worker saw none of them."""
        repeated = [first]
        files = [entry for entry in first.entries if not isinstance(entry, ExcerptEntry)]
        if len(unread_uris) == len(files) and not self._ships_files:
            self._ships_files = self.has_unseen_files = True
            repeated += self.pending
            self.cancel()
        self.pending.extendleft(self._submit(batch.entries, ships_files=True) for batch in reversed(repeated))

    def _submit(self, entries: list[SourceEntry], *, ships_files: bool) -> _PendingBatch:
        seen_ns, source = time.time_ns(), self._source
        contents = read_contents(source, entries) if ships_files else {}
        if isinstance(source, PortableSource):
            source = source.portable_copy(entries)
        task = PrepareTask(source, self._chunker_settings, entries, seen_ns, contents)
        return _PendingBatch(entries, self._cluster.submit(task), ships_files)
