"""A model's files in, its vectors for texts out: the only place that touches torch and transformers."""

from __future__ import annotations

import gc
import inspect
import json
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from bunko.embedders.checkpoint import Checkpoint
from bunko.errors import EmbedderError

if TYPE_CHECKING:
    from bunko.types import Vectors

_log = logging.getLogger("bunko.embedders")

Device = Literal["auto", "cpu", "cuda", "mps"]

# Texts at once. On Apple's GPUs a batch is slower than its texts one by one; a processor gains little from more.
BATCH_SIZES = {"cuda": 64, "mps": 1, "cpu": 16}
_PROMPT_TOKENS = 32  # tokens that a model with calls of its own may put before a text
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
            # In whole floats on every device: vectors made on one are searched on another.
            model, found = AutoModel.from_pretrained(
                checkpoint.folder,
                trust_remote_code=trust_remote_code,
                local_files_only=True,
                dtype=torch.float32,
                output_loading_info=True,
            )
            self._layers = [_DenseLayer(torch, checkpoint, path, self.device) for path in checkpoint.dense_layers]
        # Weights that are not there would be made up, and other ones each time. Only the last layer's states are read.
        if lost := sorted(key for key in found["missing_keys"] if not key.startswith("pooler.")):
            raise EmbedderError(
                f"{checkpoint.label} lacks weights: {', '.join(lost[:3])}",
                hint=f"Fetch the model again; it is in {checkpoint.folder}.",
            )
        self._encoders = {False: getattr(model, "encode_document", None), True: getattr(model, "encode_query", None)}
        if not all(self._encoders.values()):
            self._encoders.clear()
            if getattr(model.config, "is_encoder_decoder", False):
                model = model.get_encoder()
            # What stands before a text changes it in some models, what stands after it in none.
            self._tokenizer.padding_side = "right"
            if self._tokenizer.pad_token is None:
                self._tokenizer.pad_token = self._tokenizer.eos_token or self._tokenizer.unk_token
        self._model = model.to(self.device).eval()
        self._forward_params = set(inspect.signature(self._model.forward).parameters)
        _log.debug("%s is loaded on %s", checkpoint.label, self.device)

    def token_counts(self, texts: Sequence[str], *, query: bool) -> list[int]:
        """Return how many tokens the model would read for each text."""
        more = _PROMPT_TOKENS if self._encoders else 0
        found = self._tokenizer([self._add_prompt(text, query) for text in texts], truncation=False, verbose=False)
        return [len(ids) + more for ids in found["input_ids"]]

    def vectors(
        self, texts: Sequence[str], *, query: bool, max_tokens: int | None, on_call: Callable[[], None]
    ) -> Vectors:
        """Return a unit row for each text; a text of more tokens than `most` is cut."""
        rows: list[Any] = [None] * len(texts)
        # Texts of about one length share a batch, so that little of it is padding.
        order = sorted(range(len(texts)), key=lambda at: len(texts[at]))
        at = 0
        while at < len(order):
            some = order[at : at + self.batch_size]
            found = self._embed_batch([texts[place] for place in some], query, max_tokens, on_call)
            if found is None:
                self.batch_size = len(some) // 2
                release_memory()
                _log.warning("No memory for %d texts at once; from now on %d are embedded.", len(some), self.batch_size)
                continue
            for place, row in zip(some, found, strict=True):
                rows[place] = row
            at += len(some)
        return _unit_vectors(np.stack(rows))

    def _embed_batch(
        self, texts: list[str], query: bool, max_tokens: int | None, on_call: Callable[[], None]
    ) -> list[Any] | None:
        """Return the rows of texts that are embedded at once; None where memory is lacking for so many."""
        on_call()
        try:
            with self._torch.inference_mode():
                found = self._encode(texts, query) if self._encoders else self._pool(texts, query, max_tokens)
                rows = self._torch.as_tensor(found).float().cpu().numpy()
        except Exception as error:  # a model's own code may raise anything
            is_crowded = any(words in str(error).lower() for words in _OUT_OF_MEMORY_PHRASES)
            if is_crowded and len(texts) > 1:
                return None
            hint = "Check that the model makes vectors of texts, and that the installed transformers suits it."
            if is_crowded:
                hint = "Set embedding.device to cpu, or embedding.max_tokens to less."
            raise EmbedderError(f"{self._checkpoint.label} failed: {_error_text(error)}", hint=hint) from error
        if rows.ndim != 2 or len(rows) != len(texts):
            raise EmbedderError(
                f"{self._checkpoint.label} returned {rows.shape} for {len(texts)} texts",
                hint="Nothing was stored. Choose a model that makes one vector of each text.",
            )
        return list(rows)

    def _encode(self, texts: list[str], query: bool) -> Any:
        """Return the vectors of a model that has calls of its own for queries and documents."""
        call: Any = self._encoders[query]
        return call(texts, self._tokenizer)

    def _pool(self, texts: list[str], query: bool, max_tokens: int | None) -> Any:
        """Return the states of a text's tokens as one vector, in the way the model was trained for."""
        spoken = [self._add_prompt(text, query) for text in texts]
        given = self._tokenizer(
            spoken,
            padding=True,
            truncation=max_tokens is not None,
            max_length=max_tokens,
            return_tensors="pt",
            verbose=False,
        ).to(self.device)
        mask = given["attention_mask"]
        states = self._model(
            **{name: value for name, value in given.items() if name in self._forward_params}
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
                f"{checkpoint.label} has a layer that is not known here: {name}",
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
    """Return memory that nobody uses to the system: Python, torch and the C library each keep some for later."""
    import sys

    gc.collect()
    torch = sys.modules.get("torch")
    if torch is not None:
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        if torch.backends.mps.is_available():
            torch.mps.empty_cache()
    if sys.platform == "linux":
        import ctypes

        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc has it
        if trim is not None:
            trim(0)


def _choose_device(torch: Any, requested: Device) -> str:
    there = {"cuda": torch.cuda.is_available, "mps": torch.backends.mps.is_available, "cpu": lambda: True}
    if requested == "auto":
        return next(name for name, is_there in there.items() if is_there())
    if not there[requested]():
        raise EmbedderError(f"torch finds no {requested} here", hint="Set embedding.device to auto or cpu.")
    return requested


def _unit_vectors(rows: Vectors) -> Vectors:
    lengths = np.linalg.norm(rows.astype(np.float64), axis=1, keepdims=True)
    # A text of which nothing is known still has to point somewhere.
    rows[lengths[:, 0] == 0, 0] = lengths[lengths == 0] = 1.0
    unit: Vectors = (rows / lengths).astype(np.float32)
    return unit


@contextmanager
def _translate_load_errors(checkpoint: Checkpoint) -> Iterator[None]:
    """Say in our words why a model cannot be loaded."""
    try:
        yield
    except EmbedderError:
        raise
    except Exception as error:  # a model's own code may raise anything
        if "trust_remote_code" in str(error):
            raise EmbedderError(untrusted_code_message(checkpoint.label), hint=TRUST_HINT) from error
        raise EmbedderError(
            f"{checkpoint.label} cannot be loaded: {_error_text(error)}",
            hint=f"Check its files in {checkpoint.folder}, and that the installed transformers suits it.",
        ) from error


TRUST_HINT = "If you trust its makers, set embedding.trust_remote_code to true in your own settings."


def untrusted_code_message(label: str) -> str:
    """Return the sentence about a model that brings code to be run."""
    return f"{label} runs program code of its own, which is not allowed"


@contextmanager
def _mute_loading_logs() -> Iterator[None]:
    """Keep reports and bars about the loading off the terminal; what is wrong is raised."""
    from transformers.utils import logging as told

    before, bars = told.get_verbosity(), told.is_progress_bar_enabled()
    told.set_verbosity_error()
    told.disable_progress_bar()
    try:
        yield
    finally:
        told.set_verbosity(before)
        if bars:
            told.enable_progress_bar()


def _error_text(error: BaseException) -> str:
    return " ".join(str(error).split())[:_LONGEST_MESSAGE] or type(error).__name__
