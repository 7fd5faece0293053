"""Run a model on onnxruntime: turn texts into tokens, pad them to batches, and return what the model computes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from bunko.errors import ModelError
from bunko.local_models import missing_package_error
from bunko.local_models.files import ModelFiles

if TYPE_CHECKING:
    from numpy.typing import NDArray

_T = TypeVar("_T")

# A CPU gains little from larger batches, and a long text next to short ones wastes the time of its padding.
_BATCH_TEXTS, _BATCH_TOKENS = 16, 8192
_LONGEST_MESSAGE = 300
_ERRORS_ONLY = 3  # of the log levels of onnxruntime


class OnnxModel:
    """A model with its weights in memory."""

    def __init__(self, files: ModelFiles) -> None:
        try:
            import onnxruntime
            from tokenizers import Tokenizer
        except ImportError as error:
            raise missing_package_error(error.name or "onnxruntime") from error
        self._label = files.label
        hint = f"Check its files in {files.onnx.parent}."
        with _translate_errors(lambda reason: ModelError(f"{files.label} cannot be loaded: {reason}", hint=hint)):
            self._tokenizer = Tokenizer.from_file(str(files.tokenizer))
            self._pad_id = _pad_id(self._tokenizer, files.configuration)
            self._tokenizer.no_padding()
            self._tokenizer.no_truncation()
            onnxruntime.set_default_logger_severity(_ERRORS_ONLY)
            options = onnxruntime.SessionOptions()
            options.log_severity_level = _ERRORS_ONLY
            self._session = onnxruntime.InferenceSession(
                str(files.onnx), sess_options=options, providers=["CPUExecutionProvider"]
            )
        self._inputs = [value.name for value in self._session.get_inputs()]
        self.outputs = {value.name: len(value.shape or ()) for value in self._session.get_outputs()}
        if unknown := set(self._inputs) - {"input_ids", "attention_mask", "token_type_ids", "position_ids"}:
            raise ModelError(
                f"{files.label} needs an input that is not known: {', '.join(sorted(unknown))}",
                hint="Choose an encoder: a model of embeddings or a cross-encoder.",
            )

    def token_counts(self, texts: Sequence[str]) -> list[int]:
        """Return the number of tokens of each text."""
        return [len(encoding.ids) for encoding in self._encode(list(texts), None)]

    def run(
        self,
        inputs: Sequence[str] | Sequence[tuple[str, str]],
        output: str,
        *,
        max_tokens: int | None,
        reduce: Callable[[NDArray[Any], NDArray[Any]], Sequence[_T]],
        is_cancelled: Callable[[], bool] = lambda: False,
    ) -> list[_T] | None:
        """Return what `reduce` makes of an output and its attention mask, one per text or pair; None if cancelled.

        Longer texts are cut, of a pair the longer one.
        """
        encodings = self._encode(list(inputs), max_tokens)
        results: list[Any] = [None] * len(encodings)
        hint = "Check that it is a model for this purpose, or lower embedding.max_tokens if memory is short."
        for batch in _batches([len(encoding.ids) for encoding in encodings]):
            if is_cancelled():
                return None
            feeds = self._feeds([encodings[index] for index in batch])
            with _translate_errors(lambda reason: ModelError(f"{self._label} failed: {reason}", hint=hint)):
                values = self._session.run([output], {name: feeds[name] for name in self._inputs})[0]
            rows = reduce(np.asarray(values), feeds["attention_mask"])
            if len(rows) != len(batch):
                raise ModelError(
                    f"{self._label} returned {len(rows)} results for {len(batch)} texts",
                    hint="Choose a model that takes several texts at once.",
                )
            for index, row in zip(batch, rows, strict=True):
                results[index] = row
        return results

    def _encode(self, inputs: list[Any], max_tokens: int | None) -> list[Any]:
        hint = "Choose another model."
        with _translate_errors(
            lambda reason: ModelError(f"The tokenizer of {self._label} failed: {reason}", hint=hint)
        ):
            encodings = self._tokenizer.encode_batch(inputs)
            if max_tokens is not None and any(len(encoding.ids) > max_tokens for encoding in encodings):
                self._tokenizer.enable_truncation(max_tokens, strategy="longest_first")
                try:
                    encodings = self._tokenizer.encode_batch(inputs)
                finally:
                    self._tokenizer.no_truncation()
        return list(encodings)

    def _feeds(self, encodings: Sequence[Any]) -> dict[str, NDArray[Any]]:
        """Return the inputs of a batch; padding follows the text, which changes no vector of an encoder."""
        width = max(len(encoding.ids) for encoding in encodings)
        ids = np.full((len(encodings), width), self._pad_id, np.int64)
        mask, types = np.zeros_like(ids), np.zeros_like(ids)
        for row, encoding in enumerate(encodings):
            length = len(encoding.ids)
            ids[row, :length], types[row, :length], mask[row, :length] = encoding.ids, encoding.type_ids, 1
        positions = np.broadcast_to(np.arange(width, dtype=np.int64), ids.shape).copy()
        return {"input_ids": ids, "attention_mask": mask, "token_type_ids": types, "position_ids": positions}


def _batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Yield positions of texts of similar length, as many as fit."""
    batch: list[int] = []
    for index in sorted(range(len(lengths)), key=lengths.__getitem__):
        if batch and (len(batch) >= _BATCH_TEXTS or (len(batch) + 1) * lengths[index] > _BATCH_TOKENS):
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch


def _pad_id(tokenizer: Any, folder: Path) -> int:
    if tokenizer.padding:
        return int(tokenizer.padding["pad_id"])
    try:
        pad_id = json.loads((folder / "config.json").read_text(encoding="utf-8")).get("pad_token_id")
    except (OSError, ValueError, AttributeError):
        pad_id = None
    return pad_id if isinstance(pad_id, int) else 0


@contextmanager
def _translate_errors(translate: Callable[[str], ModelError]) -> Iterator[None]:
    try:
        yield
    except ModelError:
        raise
    except Exception as error:  # both packages raise plain exceptions of their own
        raise translate(" ".join(str(error).split())[:_LONGEST_MESSAGE] or type(error).__name__) from error
