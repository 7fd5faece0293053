"""Small models built for a test, and what their vectors must be."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bunko.embedders import transformers

if TYPE_CHECKING:
    from bunko.types import Vectors


TEXTS = ["cat", "a long text about rain in tokyo.", "東京の天気は雨", "dog", "祭の海岸 and more words", "x"]


def build_model(folder: object, **options: Any) -> transformers.Transformers:
    return transformers.build(**{"model": str(folder), "device": "cpu", "threshold": 1.0, **options})


def token_states(folder: Path, text: str) -> Vectors:
    """Return the model's state of each token of one text, by itself and without padding."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    with torch.inference_mode():
        inputs = AutoTokenizer.from_pretrained(folder)(text, return_tensors="pt")
        inputs.pop("token_type_ids", None)
        states: Vectors = AutoModel.from_pretrained(folder)(**inputs).last_hidden_state[0].numpy()
    return states


def unit(row: Vectors) -> Vectors:
    scaled: Vectors = row / np.linalg.norm(row)
    return scaled


def unload_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "bunko-unload"]


def wait_until_unloaded(embedder: transformers.Transformers) -> None:
    """Wait until the model is unloaded and the threads that watch it have ended."""
    for thread in unload_threads():
        thread.join(timeout=60)
    assert not unload_threads()
    assert not embedder.is_loaded
