"""Load a model with transformers and embed texts; the only module that uses torch."""

from __future__ import annotations

import ctypes
import gc
import inspect
import json
import logging
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from bunko.embedders.checkpoint import Checkpoint
from bunko.errors import EmbedderError
from bunko.local_models.pooling import unit_vectors

if TYPE_CHECKING:
    from bunko.types import Vectors

_log = logging.getLogger("bunko.embedders")

Device = Literal["auto", "cpu", "cuda", "mps"]

# Texts per batch. On Apple GPUs a batch is slower than single texts; a CPU gains little from larger batches.
BATCH_SIZES = {"cuda": 64, "mps": 1, "cpu": 16}
_PROMPT_TOKENS = 32  # tokens that a model with its own encode methods may put before a text
_LONGEST_MESSAGE = 300
_OUT_OF_MEMORY_PHRASES = ("out of memory", "allocate memory")


class LoadedModel:
    """A model with its weights in memory."""

    def __init__(
        self, checkpoint: Checkpoint, *, device: Device, batch_size: int | None, trust_remote_code: bool
    ) -> None:
        try:
            import torch
            from transformers import AutoModel, AutoTokenizer
        except (ImportError, OSError) as error:
            raise EmbedderError(
                f"torch and transformers cannot be used: {_error_text(error)}",
                hint='Install them again with: pip install --force-reinstall "bunko[transformers]"',
            ) from error
        self._torch, self._checkpoint = torch, checkpoint
        self.device = _choose_device(torch, device)
        self.batch_size = batch_size or BATCH_SIZES[self.device]
        with _translate_load_errors(checkpoint), _mute_loading_logs():
            self._tokenizer = AutoTokenizer.from_pretrained(
                checkpoint.folder, trust_remote_code=trust_remote_code, local_files_only=True
            )
            # float32 on every device: vectors computed on one are searched on another.
            model, loading_info = AutoModel.from_pretrained(
                checkpoint.folder,
                trust_remote_code=trust_remote_code,
                local_files_only=True,
                dtype=torch.float32,
                output_loading_info=True,
            )
            self._layers = [_DenseLayer(torch, checkpoint, path, self.device) for path in checkpoint.dense_layers]
        # Missing weights would be initialised at random, differently each time. The pooler is not used here.
        if missing_weights := sorted(key for key in loading_info["missing_keys"] if not key.startswith("pooler.")):
            raise EmbedderError(
                f"{checkpoint.label} lacks weights: {', '.join(missing_weights[:3])}",
                hint=f"Download the model again; it is in {checkpoint.folder}.",
            )
        self._encoders = {False: getattr(model, "encode_document", None), True: getattr(model, "encode_query", None)}
        if not all(self._encoders.values()):
            self._encoders.clear()
            if getattr(model.config, "is_encoder_decoder", False):
                model = model.get_encoder()
            # Padding before a text changes the vector in some models, padding after it in none.
            self._tokenizer.padding_side = "right"
            if self._tokenizer.pad_token is None:
                self._tokenizer.pad_token = self._tokenizer.eos_token or self._tokenizer.unk_token
        self._model = model.to(self.device).eval()
        self._forward_params = set(inspect.signature(self._model.forward).parameters)
        _log.debug("%s is loaded on %s", checkpoint.label, self.device)

    def token_counts(self, texts: Sequence[str], *, query: bool) -> list[int]:
        """Return the number of tokens of each text, with its prompt."""
        prompt_tokens = _PROMPT_TOKENS if self._encoders else 0
        tokens = self._tokenizer([self._add_prompt(text, query) for text in texts], truncation=False, verbose=False)
        return [len(ids) + prompt_tokens for ids in tokens["input_ids"]]

    def vectors(
        self, texts: Sequence[str], *, query: bool, max_tokens: int | None, on_call: Callable[[], None]
    ) -> Vectors:
        """Return one unit row per text; texts are cut after `max_tokens`."""
        rows: list[Any] = [None] * len(texts)
        # Texts of similar length share a batch, which keeps padding small.
        order = sorted(range(len(texts)), key=lambda index: len(texts[index]))
        start = 0
        while start < len(order):
            indexes = order[start : start + self.batch_size]
            batch_rows = self._embed_batch([texts[index] for index in indexes], query, max_tokens, on_call)
            if batch_rows is None:
                self.batch_size = len(indexes) // 2
                release_memory()
                _log.warning(
                    "Out of memory for a batch of %d texts; using %d from now on.", len(indexes), self.batch_size
                )
                continue
            for index, row in zip(indexes, batch_rows, strict=True):
                rows[index] = row
            start += len(indexes)
        return unit_vectors(np.stack(rows))

    def _embed_batch(
        self, texts: list[str], query: bool, max_tokens: int | None, on_call: Callable[[], None]
    ) -> list[Any] | None:
        """Return the rows of one batch, or None if there is not enough memory for several texts at once."""
        on_call()
        try:
            with self._torch.inference_mode():
                vectors = self._encode(texts, query) if self._encoders else self._pool(texts, query, max_tokens)
                rows = self._torch.as_tensor(vectors).float().cpu().numpy()
        except Exception as error:  # a model's own code may raise anything
            out_of_memory = any(phrase in str(error).lower() for phrase in _OUT_OF_MEMORY_PHRASES)
            if out_of_memory and len(texts) > 1:
                return None
            hint = "Check that it is an embedding model, and that the installed transformers supports it."
            if out_of_memory:
                hint = "Set embedding.device to cpu, or lower embedding.max_tokens."
            raise EmbedderError(f"{self._checkpoint.label} failed: {_error_text(error)}", hint=hint) from error
        if rows.ndim != 2 or len(rows) != len(texts):
            raise EmbedderError(
                f"{self._checkpoint.label} returned {rows.shape} for {len(texts)} texts",
                hint="Nothing was stored. Choose a model that returns one vector per text.",
            )
        return list(rows)

    def _encode(self, texts: list[str], query: bool) -> Any:
        """Return the vectors of a model with its own encode methods for queries and documents."""
        encode: Any = self._encoders[query]
        return encode(texts, self._tokenizer)

    def _pool(self, texts: list[str], query: bool, max_tokens: int | None) -> Any:
        """Pool the token states of each text to one vector, as the model was trained."""
        prompted = [self._add_prompt(text, query) for text in texts]
        inputs = self._tokenizer(
            prompted,
            padding=True,
            truncation=max_tokens is not None,
            max_length=max_tokens,
            return_tensors="pt",
            verbose=False,
        ).to(self.device)
        mask = inputs["attention_mask"]
        states = self._model(
            **{name: value for name, value in inputs.items() if name in self._forward_params}
        ).last_hidden_state
        weights = mask.unsqueeze(-1).to(states.dtype)
        if self._checkpoint.pooling == "cls":
            rows = states[:, 0]
        elif self._checkpoint.pooling == "lasttoken":
            rows = states[self._torch.arange(len(texts), device=self.device), mask.sum(dim=1).clamp(min=1) - 1]
        elif self._checkpoint.pooling == "max":
            rows = states.masked_fill(weights == 0, -float("inf")).amax(dim=1)
        else:
            rows = (states * weights).sum(dim=1) / weights.sum(dim=1).clamp(min=1)
        for layer in self._layers:
            rows = layer(rows)
        return rows

    def _add_prompt(self, text: str, query: bool) -> str:
        if self._encoders:
            return text
        text = self._checkpoint.prompts[query] + text
        return text.lower() if self._checkpoint.lowercase else text


class _DenseLayer:
    """A dense layer after the pooling."""

    def __init__(self, torch: Any, checkpoint: Checkpoint, path: str, device: str) -> None:
        folder = checkpoint.folder / path
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        name = str(config.get("activation_function", "torch.nn.modules.linear.Identity")).rpartition(".")[2]
        if name not in ("Identity", "Tanh", "ReLU", "GELU"):
            raise EmbedderError(
                f"{checkpoint.label} has a dense layer with an unsupported activation: {name}",
                hint="Choose another model in embedding.model_transformers.",
            )
        if (folder / "model.safetensors").is_file():
            from safetensors.torch import load_file

            weights = load_file(folder / "model.safetensors")
        else:
            weights = torch.load(folder / "pytorch_model.bin", map_location="cpu", weights_only=True)
        bias = weights.get("linear.bias")
        self._weight = weights["linear.weight"].float().to(device)
        self._bias = None if bias is None else bias.float().to(device)
        self._linear, self._activation = torch.nn.functional.linear, getattr(torch.nn, name)()

    def __call__(self, rows: Any) -> Any:
        return self._activation(self._linear(rows, self._weight, self._bias))


def release_memory() -> None:
    """Return unused memory to the system: Python, torch and the C library each keep some."""
    gc.collect()
    torch = sys.modules.get("torch")
    if torch is not None:
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        if torch.backends.mps.is_available():
            torch.mps.empty_cache()
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc has it
        if trim is not None:
            trim(0)


def _choose_device(torch: Any, requested: Device) -> str:
    availability = {"cuda": torch.cuda.is_available, "mps": torch.backends.mps.is_available, "cpu": lambda: True}
    if requested == "auto":
        return next(name for name, is_available in availability.items() if is_available())
    if not availability[requested]():
        raise EmbedderError(f"torch finds no {requested} device", hint="Set embedding.device to auto or cpu.")
    return requested


@contextmanager
def _translate_load_errors(checkpoint: Checkpoint) -> Iterator[None]:
    """Translate errors during loading to EmbedderError."""
    try:
        yield
    except EmbedderError:
        raise
    except Exception as error:  # a model's own code may raise anything
        if "trust_remote_code" in str(error):
            raise EmbedderError(untrusted_code_message(checkpoint.label), hint=TRUST_HINT) from error
        raise EmbedderError(
            f"{checkpoint.label} cannot be loaded: {_error_text(error)}",
            hint=f"Check its files in {checkpoint.folder}, and that the installed transformers supports it.",
        ) from error


TRUST_HINT = "If you trust its authors, set embedding.trust_remote_code to true in your own settings."


def untrusted_code_message(label: str) -> str:
    """Return the message for a model that needs to run its own code."""
    return f"{label} needs to run its own code, which is not allowed"


@contextmanager
def _mute_loading_logs() -> Iterator[None]:
    """Keep log lines and progress bars of the loading off the terminal; errors are still raised."""
    from transformers.utils import logging as transformers_logging

    verbosity, has_progress_bar = transformers_logging.get_verbosity(), transformers_logging.is_progress_bar_enabled()
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    try:
        yield
    finally:
        transformers_logging.set_verbosity(verbosity)
        if has_progress_bar:
            transformers_logging.enable_progress_bar()


def _error_text(error: BaseException) -> str:
    return " ".join(str(error).split())[:_LONGEST_MESSAGE] or type(error).__name__
