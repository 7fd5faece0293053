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
BATCHES = {"cuda": 64, "mps": 1, "cpu": 16}
_OWN_WORDS = 32  # tokens that a model with calls of its own may put before a text
_LONGEST_MESSAGE = 300
_CROWDED = ("out of memory", "allocate memory")


class Network:
    """A model with its weights in memory."""

    def __init__(self, about: Checkpoint, *, device: Device, batch: int | None, trust: bool) -> None:
        try:
            import torch
            from transformers import AutoModel, AutoTokenizer
        except (ImportError, OSError) as error:
            raise EmbedderError(
                f"torch and transformers cannot be used: {_said(error)}",
                hint='Install them again with: pip install --force-reinstall "bunko[transformers]"',
            ) from error
        self._torch, self._about = torch, about
        self.device = _device(torch, device)
        self.batch = batch or BATCHES[self.device]
        with _understood(about), _quiet():
            self._tokenizer = AutoTokenizer.from_pretrained(
                about.folder, trust_remote_code=trust, local_files_only=True
            )
            # In whole floats on every device: vectors made on one are searched on another.
            model, found = AutoModel.from_pretrained(
                about.folder,
                trust_remote_code=trust,
                local_files_only=True,
                dtype=torch.float32,
                output_loading_info=True,
            )
            self._layers = [_Layer(torch, about, path, self.device) for path in about.layers]
        # Weights that are not there would be made up, and other ones each time. Only the last layer's states are read.
        if lost := sorted(key for key in found["missing_keys"] if not key.startswith("pooler.")):
            raise EmbedderError(
                f"{about.label} lacks weights: {', '.join(lost[:3])}",
                hint=f"Fetch the model again; it is in {about.folder}.",
            )
        self._own = {False: getattr(model, "encode_document", None), True: getattr(model, "encode_query", None)}
        if not all(self._own.values()):
            self._own.clear()
            if getattr(model.config, "is_encoder_decoder", False):
                model = model.get_encoder()
            # What stands before a text changes it in some models, what stands after it in none.
            self._tokenizer.padding_side = "right"
            if self._tokenizer.pad_token is None:
                self._tokenizer.pad_token = self._tokenizer.eos_token or self._tokenizer.unk_token
        self._model = model.to(self.device).eval()
        self._takes = set(inspect.signature(self._model.forward).parameters)
        _log.debug("%s is loaded on %s", about.label, self.device)

    def counts(self, texts: Sequence[str], *, query: bool) -> list[int]:
        """Return how many tokens the model would read for each text."""
        more = _OWN_WORDS if self._own else 0
        found = self._tokenizer([self._spoken(text, query) for text in texts], truncation=False, verbose=False)
        return [len(ids) + more for ids in found["input_ids"]]

    def vectors(self, texts: Sequence[str], *, query: bool, most: int | None, called: Callable[[], None]) -> Vectors:
        """Return a unit row for each text; a text of more tokens than `most` is cut."""
        rows: list[Any] = [None] * len(texts)
        # Texts of about one length share a batch, so that little of it is padding.
        order = sorted(range(len(texts)), key=lambda at: len(texts[at]))
        at = 0
        while at < len(order):
            some = order[at : at + self.batch]
            found = self._batch([texts[place] for place in some], query, most, called)
            if found is None:
                self.batch = len(some) // 2
                give_back()
                _log.warning("No memory for %d texts at once; from now on %d are embedded.", len(some), self.batch)
                continue
            for place, row in zip(some, found, strict=True):
                rows[place] = row
            at += len(some)
        return _unit(np.stack(rows))

    def _batch(self, texts: list[str], query: bool, most: int | None, called: Callable[[], None]) -> list[Any] | None:
        """Return the rows of texts that are embedded at once; None where memory is lacking for so many."""
        called()
        try:
            with self._torch.inference_mode():
                found = self._ask(texts, query) if self._own else self._pooled(texts, query, most)
                rows = self._torch.as_tensor(found).float().cpu().numpy()
        except Exception as error:  # a model's own code may raise anything
            is_crowded = any(words in str(error).lower() for words in _CROWDED)
            if is_crowded and len(texts) > 1:
                return None
            hint = "Check that the model makes vectors of texts, and that the installed transformers suits it."
            if is_crowded:
                hint = "Set embedding.device to cpu, or embedding.max_tokens to less."
            raise EmbedderError(f"{self._about.label} failed: {_said(error)}", hint=hint) from error
        if rows.ndim != 2 or len(rows) != len(texts):
            raise EmbedderError(
                f"{self._about.label} returned {rows.shape} for {len(texts)} texts",
                hint="Nothing was stored. Choose a model that makes one vector of each text.",
            )
        return list(rows)

    def _ask(self, texts: list[str], query: bool) -> Any:
        """Return the vectors of a model that has calls of its own for queries and documents."""
        call: Any = self._own[query]
        return call(texts, self._tokenizer)

    def _pooled(self, texts: list[str], query: bool, most: int | None) -> Any:
        """Return the states of a text's tokens as one vector, in the way the model was trained for."""
        spoken = [self._spoken(text, query) for text in texts]
        given = self._tokenizer(
            spoken, padding=True, truncation=most is not None, max_length=most, return_tensors="pt", verbose=False
        ).to(self.device)
        mask = given["attention_mask"]
        states = self._model(**{name: value for name, value in given.items() if name in self._takes}).last_hidden_state
        weights = mask.unsqueeze(-1).to(states.dtype)
        if self._about.pooling == "cls":
            rows = states[:, 0]
        elif self._about.pooling == "lasttoken":
            rows = states[self._torch.arange(len(texts), device=self.device), mask.sum(dim=1).clamp(min=1) - 1]
        elif self._about.pooling == "max":
            rows = states.masked_fill(weights == 0, -float("inf")).amax(dim=1)
        else:
            rows = (states * weights).sum(dim=1) / weights.sum(dim=1).clamp(min=1)
        for layer in self._layers:
            rows = layer(rows)
        return rows

    def _spoken(self, text: str, query: bool) -> str:
        if self._own:
            return text
        text = self._about.prompts[query] + text
        return text.lower() if self._about.lower else text


class _Layer:
    """A dense layer after the pooling."""

    def __init__(self, torch: Any, about: Checkpoint, path: str, device: str) -> None:
        folder = about.folder / path
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        name = str(config.get("activation_function", "torch.nn.modules.linear.Identity")).rpartition(".")[2]
        if name not in ("Identity", "Tanh", "ReLU", "GELU"):
            raise EmbedderError(
                f"{about.label} has a layer that is not known here: {name}",
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
        self._linear, self._then = torch.nn.functional.linear, getattr(torch.nn, name)()

    def __call__(self, rows: Any) -> Any:
        return self._then(self._linear(rows, self._weight, self._bias))


def give_back() -> None:
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


def _device(torch: Any, wanted: Device) -> str:
    there = {"cuda": torch.cuda.is_available, "mps": torch.backends.mps.is_available, "cpu": lambda: True}
    if wanted == "auto":
        return next(name for name, is_there in there.items() if is_there())
    if not there[wanted]():
        raise EmbedderError(f"torch finds no {wanted} here", hint="Set embedding.device to auto or cpu.")
    return wanted


def _unit(rows: Vectors) -> Vectors:
    lengths = np.linalg.norm(rows.astype(np.float64), axis=1, keepdims=True)
    # A text of which nothing is known still has to point somewhere.
    rows[lengths[:, 0] == 0, 0] = lengths[lengths == 0] = 1.0
    unit: Vectors = (rows / lengths).astype(np.float32)
    return unit


@contextmanager
def _understood(about: Checkpoint) -> Iterator[None]:
    """Say in our words why a model cannot be loaded."""
    try:
        yield
    except EmbedderError:
        raise
    except Exception as error:  # a model's own code may raise anything
        if "trust_remote_code" in str(error):
            raise EmbedderError(needs_trust(about.label), hint=TRUST) from error
        raise EmbedderError(
            f"{about.label} cannot be loaded: {_said(error)}",
            hint=f"Check its files in {about.folder}, and that the installed transformers suits it.",
        ) from error


TRUST = "If you trust its makers, set embedding.trust_remote_code to true in your own settings."


def needs_trust(label: str) -> str:
    """Return the sentence about a model that brings code to be run."""
    return f"{label} runs program code of its own, which is not allowed"


@contextmanager
def _quiet() -> Iterator[None]:
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


def _said(error: BaseException) -> str:
    return " ".join(str(error).split())[:_LONGEST_MESSAGE] or type(error).__name__
