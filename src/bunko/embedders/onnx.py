"""Run a small embedding model on this machine, through onnxruntime and without torch.

The model is loaded at first use, and unloaded when it is idle. Nothing is downloaded: `bunko models get` does that.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from threading import Timer
from typing import TYPE_CHECKING, Any

from bunko.embedders.checkpoint import known_prompts, read_configuration, read_optional_file
from bunko.embedders.model_embedder import ModelEmbedder
from bunko.embedders.provider import GEMINI_MODEL, MODEL_OPTION, Provider, ProviderOption
from bunko.errors import EmbedderError, ModelError
from bunko.local_models import RUN_PACKAGES, missing_package
from bunko.local_models.files import LocalModel

if TYPE_CHECKING:
    from bunko.embedders.checkpoint import Checkpoint
    from bunko.embedders.long_texts import LongTextPolicy
    from bunko.local_models.files import ModelFiles
    from bunko.local_models.onnx_model import OnnxModel
    from bunko.types import Vectors

DEFAULT_MODEL = "ruri-v3-30m"
_TOKEN_OUTPUTS = ("last_hidden_state", "token_embeddings")  # one vector per token
_SENTENCE_OUTPUTS = ("sentence_embedding", "sentence_embeddings", "text_embeds")  # one vector per text


class Onnx(ModelEmbedder):
    """One model, loaded or not."""

    def __init__(
        self,
        model: str,
        *,
        onnx_file: str | None,
        max_tokens: int | None,
        too_long: LongTextPolicy,
        idle_seconds: float,
    ) -> None:
        super().__init__(max_tokens=max_tokens, too_long=too_long)
        self._local_model, self._idle_seconds = LocalModel(model, onnx_file), idle_seconds
        self._loaded_model: OnnxModel | None = None
        self._unload_timer: Timer | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        # Another process loads the model anew.
        options = {
            "onnx_file": self._local_model.onnx_file,
            "max_tokens": self._max_tokens,
            "too_long": self._too_long,
            "idle": self._idle_seconds,
        }
        return _rebuild, (self._local_model.name, options)

    @property
    def label(self) -> str:
        """Return the provider and the model."""
        return f"onnx:{self._local_model.label}"

    @property
    def is_loaded(self) -> bool:
        """Return whether the model is in memory."""
        return self._loaded_model is not None

    def unavailable_reason(self) -> str:
        """Return what is missing and how to get it, or an empty string if the model can be used; loads nothing."""
        return missing_package(*RUN_PACKAGES) or self._local_model.missing_reason()

    def unload(self) -> None:
        """Free the memory of the model; the next text loads it again."""
        with self._lock:
            self._loaded_model = None

    def _embed(self, texts: Sequence[str], *, query: bool) -> Vectors:
        from bunko.text.subwords import replace_surrogates

        with _as_embedder_errors():
            model, checkpoint = self._load_model(), self._checkpoint()
            prompt = checkpoint.prompts[query]
            clean = [replace_surrogates(text) or " " for text in texts]
            if checkpoint.lowercase:
                prompt, clean = prompt.lower(), [text.lower() for text in clean]
            vectors = self._embed_in_parts(
                clean,
                lambda parts: model.token_counts([prompt + part for part in parts]),
                lambda parts: self._vectors(model, [prompt + part for part in parts]),
            )
            self._unload_later()
        return vectors

    def _vectors(self, model: OnnxModel, texts: list[str]) -> Vectors:
        """Return one unit row per text: of its tokens, pooled as the model was trained."""
        import numpy as np

        from bunko.local_models.pooling import pool_tokens, unit_vectors

        checkpoint, (output, has_tokens) = self._checkpoint(), self._choose_output(model)

        def reduce(values: Any, mask: Any) -> Any:
            return pool_tokens(values, mask, checkpoint.pooling) if has_tokens else values

        self.stats.calls += 1
        rows = model.run(texts, output, max_tokens=self._token_limit(), reduce=reduce)
        return unit_vectors(np.stack(rows or []).astype(np.float32))

    def _choose_output(self, model: OnnxModel) -> tuple[str, bool]:
        """Return the output to use, and whether it has a vector for each token."""
        tokens = [name for name, rank in model.outputs.items() if rank == 3]
        sentences = [name for name, rank in model.outputs.items() if rank == 2]
        has_layers = bool(self._checkpoint().dense_layers)  # after the pooling, and only in the whole model
        for names, known, has_tokens in ((tokens, _TOKEN_OUTPUTS, True), (sentences, _SENTENCE_OUTPUTS, False)):
            chosen = next((name for name in known if name in names), names[0] if names else "")
            if chosen and not (has_tokens and has_layers):
                return chosen, has_tokens
        raise EmbedderError(
            f"{self._local_model.label} returns no vectors that can be used: {', '.join(model.outputs)}",
            hint="Choose another model in embedding.model: bunko models lists some.",
        )

    def _load_model(self) -> OnnxModel:
        from bunko.local_models.onnx_model import OnnxModel

        if self._loaded_model is None:
            self._loaded_model = OnnxModel(self._files())
        return self._loaded_model

    def _files(self) -> ModelFiles:
        files = self._local_model.find()
        if files is None:
            raise EmbedderError(
                f"The model {self._local_model.label} is not on this machine", hint=self._local_model.missing_reason()
            )
        return files

    def _read_checkpoint(self) -> Checkpoint:
        """Read the configuration of the model; what its files do not say comes from the catalogue."""
        files, known = self._files(), self._local_model.known
        return read_configuration(
            files.configuration,
            files.label,
            files.digest(),
            partial(read_optional_file, files.configuration),
            known.prompts if known else known_prompts(files.label),
            default_pooling=known.pooling if known else "mean",
            setting="embedding.model",
        )

    def _unload_later(self) -> None:
        if self._unload_timer is not None:
            self._unload_timer.cancel()
        if self._idle_seconds != float("inf"):
            self._unload_timer = Timer(self._idle_seconds, _unload, [weakref.ref(self)])
            self._unload_timer.daemon = True
            self._unload_timer.start()


def _unload(ref: weakref.ref[Onnx]) -> None:
    """Unload a model; holds no reference that keeps its embedder alive until then."""
    if (embedder := ref()) is not None:
        embedder.unload()


@contextmanager
def _as_embedder_errors() -> Iterator[None]:
    try:
        yield
    except ModelError as error:
        raise EmbedderError(error.message, hint=error.hint) from error


def resolve_model(model: str) -> str:
    """Return the model that a setting means: the default if nobody has set another."""
    return DEFAULT_MODEL if model == GEMINI_MODEL else model


def build(
    *,
    model: str = DEFAULT_MODEL,
    onnx_file: str | None = None,
    max_tokens: int | None = None,
    too_long: LongTextPolicy = "average",
    idle: float = 600.0,
) -> Onnx:
    """Return the embedder; it unloads after `idle` seconds."""
    return Onnx(resolve_model(model), onnx_file=onnx_file, max_tokens=max_tokens, too_long=too_long, idle_seconds=idle)


def _rebuild(model: str, options: dict[str, Any]) -> Onnx:
    return build(model=model, **options)


PROVIDER = Provider(
    build,
    extra="onnx",
    shared=("max_tokens", "too_long", "idle"),
    options=(
        MODEL_OPTION,
        ProviderOption(
            "onnx_file",
            "onnx_file",
            None,
            "ONNX file of an onnx model, such as onnx/model_int8.onnx. Not set: the one that bunko models names",
            str | None,
        ),
    ),
)
