"""Rerank with a cross-encoder on this machine, through onnxruntime and without torch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any

from bunko.errors import ModelError
from bunko.local_models import RUN_PACKAGES, missing_package
from bunko.local_models.files import LocalModel
from bunko.rerankers import RerankerProvider

if TYPE_CHECKING:
    from bunko.local_models.onnx_model import OnnxModel

DEFAULT_MODEL = "japanese-reranker-xsmall-v2"
# Rerankers were trained on passages, most of them of at most 512 tokens; a longer one costs time and gains little.
_MAX_TOKENS = 512
_OUTPUTS = ("logits", "scores")


class OnnxReranker:
    """One cross-encoder, loaded at first use."""

    def __init__(self, model: str) -> None:
        self._local_model = LocalModel(model)
        self._lock = Lock()  # held while the model is loaded and while it runs
        self._loaded_model: OnnxModel | None = None

    @property
    def label(self) -> str:
        """Return the name of the model."""
        return self._local_model.label

    def unavailable_reason(self) -> str:
        """Return what is missing and how to get it, or an empty string; loads nothing."""
        return missing_package(*RUN_PACKAGES) or self._local_model.missing_reason()

    def scores(
        self, query: str, texts: Sequence[str], *, is_cancelled: Callable[[], bool] = lambda: False
    ) -> list[float] | None:
        """Return how well each text answers the query, from 0 to 1; None if it was cancelled."""
        from bunko.text.subwords import replace_surrogates

        pairs = [(replace_surrogates(query), replace_surrogates(text)) for text in texts]
        with self._lock:
            model = self._load_model()
            output = next((name for name in _OUTPUTS if name in model.outputs), next(iter(model.outputs)))
            return model.run(pairs, output, max_tokens=_MAX_TOKENS, reduce=self._reduce, is_cancelled=is_cancelled)

    def _load_model(self) -> OnnxModel:
        if self._loaded_model is None:
            from bunko.local_models.onnx_model import OnnxModel

            files = self._local_model.find()
            if files is None:
                raise ModelError(f"The model {self.label} is not on this machine", hint=self.unavailable_reason())
            self._loaded_model = OnnxModel(files)
        return self._loaded_model

    def _reduce(self, logits: Any, _mask: Any) -> list[float]:
        import numpy as np

        if logits.ndim == 1:
            logits = logits[:, None]
        if logits.ndim != 2 or logits.shape[1] > 2:
            raise ModelError(
                f"{self.label} is not a reranker: it returned {logits.shape}",
                hint="Set search.reranker to a reranker of: bunko models",
            )
        # With two classes, the second one is "relevant".
        values = logits[:, 0] if logits.shape[1] == 1 else logits[:, 1] - logits[:, 0]
        return [float(value) for value in 1 / (1 + np.exp(-values.astype(np.float64)))]


def build(model: str = "") -> OnnxReranker:
    """Return the reranker of a model."""
    return OnnxReranker(model or DEFAULT_MODEL)


PROVIDER = RerankerProvider(build, extra="onnx")
