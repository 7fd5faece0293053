"""Compute the vectors of a local model on a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bunko.embedders.names import display_name
from bunko.errors import EmbedderError
from bunko.ingest.cluster.tasks import EmbeddedTexts, EmbedTask
from bunko.protocols import Embedder, EmbedderStats, SentenceEmbedder

if TYPE_CHECKING:
    from bunko.ingest.cluster.connection import Cluster, ModelProcesses
    from bunko.types import SentenceVectors, Vectors


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

    def _embed(self, texts: Sequence[str]) -> tuple[Vectors, list[SentenceVectors]]:
        """Return the vectors of texts, and those of their sentences if the embedder computes them."""
        import numpy as np

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
        from bunko.ingest.cluster.connection import WorkerLost

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
