"""Run PLaMo or another embedding model on this machine, through transformers and torch.

The model is loaded at first use, and unloaded when it is idle or memory is low.
"""

from __future__ import annotations

import atexit
import threading
import weakref
from collections.abc import Sequence
from functools import partial
from threading import Event, Thread
from time import monotonic
from typing import TYPE_CHECKING, Any, Literal

from bunko.embedders.checkpoint import ModelLocation, has_weights
from bunko.embedders.model_embedder import ModelEmbedder
from bunko.embedders.names import display_name
from bunko.embedders.provider import (
    LOCAL_MODEL_ARGUMENTS,
    Provider,
    ProviderAlias,
    ProviderOption,
    missing_package_error,
)
from bunko.errors import EmbedderError
from bunko.runtime.installation import missing_package_message

if TYPE_CHECKING:
    from logging import Logger

    from bunko.embedders.checkpoint import Checkpoint
    from bunko.embedders.long_texts import LongTextPolicy
    from bunko.embedders.torch_model import Device, LoadedModel
    from bunko.types import Vectors

PLAMO = "pfnet/plamo-embedding-1b"
_PACKAGES = ("torch", "transformers", "psutil")
# When memory is low, a model is unloaded this many seconds after its last use. Not at once: an import pauses between
# two batches, and loading takes longer than this.
_LOW_MEMORY_IDLE_SECONDS = 5.0
MEMORY_CHECK_SECONDS = 30.0  # seconds between two memory checks while a model is idle
_LONGEST_END_SECONDS = 10.0


class Transformers(ModelEmbedder):
    """One model, loaded or not."""

    def __init__(
        self,
        model: str,
        *,
        device: Device,
        device_batch: int | None,
        max_tokens: int | None,
        too_long: LongTextPolicy,
        trust_remote_code: bool,
        idle_seconds: float,
        memory_threshold: float,
        low_memory_idle: float,
    ) -> None:
        super().__init__(max_tokens=max_tokens, too_long=too_long)
        self._location = ModelLocation(model)
        self._device, self._device_batch, self._trust_remote_code = device, device_batch, trust_remote_code
        self._idle_seconds, self._low_memory_idle = idle_seconds, low_memory_idle
        self._memory_threshold = memory_threshold
        self._loaded_model: LoadedModel | None = None
        self._load_count = 0
        self._last_used = 0.0
        self._idle_watch: _IdleWatch | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        # Another process loads the model anew.
        options = {
            "device": self._device,
            "device_batch": self._device_batch,
            "max_tokens": self._max_tokens,
            "too_long": self._too_long,
            "trust": self._trust_remote_code,
            "idle": self._idle_seconds,
            "threshold": self._memory_threshold,
            "pause": self._low_memory_idle,
        }
        return _rebuild, (self._location.model, options)

    @property
    def label(self) -> str:
        """Return the provider and the model."""
        return f"transformers:{self._location.label}"

    @property
    def is_loaded(self) -> bool:
        """Return whether the model is in memory."""
        return self._loaded_model is not None

    def unavailable_reason(self) -> str:
        """Return what is missing and how to get it, or an empty string if the model can be used; loads nothing."""
        from bunko.embedders.torch_model import TRUST_HINT, untrusted_code_message

        for package in _PACKAGES:
            if message := missing_package_message(package, package, "transformers"):
                return message
        if reason := self._location.missing_reason():
            return reason
        try:
            checkpoint = self._cached_checkpoint or self._location.read_checkpoint(fetch=False)
        except EmbedderError as error:
            return f"{error.message}. {error.hint}"
        if checkpoint.has_code and not self._trust_remote_code:
            from transformers import CONFIG_MAPPING

            if checkpoint.model_type not in CONFIG_MAPPING:
                return f"{untrusted_code_message(checkpoint.label)}. {TRUST_HINT}"
        return ""

    def unload(self) -> None:
        """Free the memory of the model; the next text loads it again."""
        from bunko.embedders.torch_model import release_memory

        with self._lock:
            if self._loaded_model is None:
                return
            self._loaded_model = None
            self._wake_watch()
            release_memory()
        _log().debug("Unloaded %s", self.label)

    def _name_suffix(self) -> str:
        return ":code" if self._checkpoint().has_code and self._trust_remote_code else ""

    def _embed(self, texts: Sequence[str], *, query: bool) -> Vectors:
        from bunko.text.subwords import replace_surrogates

        model, known_long = self._load_model(fetch=not query), self.stats.too_long
        try:
            return self._embed_in_parts(
                [replace_surrogates(text) or " " for text in texts],
                partial(model.token_counts, query=query),
                partial(model.vectors, query=query, max_tokens=self._token_limit(), on_call=self._count_call),
            )
        finally:
            self._last_used = monotonic()
            self._wake_watch()
            self._report_long(self.stats.too_long - known_long)

    def _report_long(self, count: int) -> None:
        if count:
            action = "cut" if self._too_long == "cut" else "embedded in parts"
            subject = "1 text was" if count == 1 else f"{count} texts were"
            _log().warning("%s too long for %s, and %s.", subject, display_name(self.label), action)

    def _load_model(self, *, fetch: bool) -> LoadedModel:
        from bunko.embedders.torch_model import LoadedModel

        if self._loaded_model is None:
            for package in _PACKAGES:
                if missing_package_message(package, package, "transformers"):
                    raise missing_package_error(package, "transformers")
            checkpoint = self._checkpoint()
            if not has_weights(checkpoint.folder):
                if not fetch:
                    raise EmbedderError(
                        f"{display_name(self.label)} cannot embed queries yet", hint=self._location.missing_reason()
                    )
                _log().warning("Downloading %s. This happens once and may take a while.", checkpoint.label)
                self._location.fetch_weights(checkpoint.folder)
            if self._location.is_stale(checkpoint):
                raise EmbedderError(
                    f"The files of {checkpoint.label} have changed since they were read", hint="Run the command again."
                )
            self._loaded_model = LoadedModel(
                checkpoint,
                device=self._device,
                batch_size=self._device_batch,
                trust_remote_code=self._trust_remote_code,
            )
            self._last_used = monotonic()
            self._load_count += 1
            self._idle_watch = _IdleWatch(self, self._load_count)
            self._idle_watch.start()
        return self._loaded_model

    def _read_checkpoint(self) -> Checkpoint:
        return self._location.read_checkpoint()

    def _count_call(self) -> None:
        self.stats.calls += 1

    def _wake_watch(self) -> None:
        if self._idle_watch is not None:
            self._idle_watch.wake.set()

    def _unload_if_idle(self, load_number: int) -> float | None:
        """Unload the model if it is idle; return the seconds until the next check, None if it is unloaded."""
        with self._lock:
            if self._loaded_model is None or load_number != self._load_count:
                return None
            idle_limit = self._idle_seconds
            if _memory_in_use() > self._memory_threshold:
                idle_limit = min(self._low_memory_idle, idle_limit)
            remaining = idle_limit - (monotonic() - self._last_used)
            if remaining <= 0:
                self.unload()
                return None
            return min(remaining, MEMORY_CHECK_SECONDS)


class _IdleWatch(Thread):
    """Waits until a loaded model is idle and unloads it; while it waits, it does not keep the embedder alive."""

    def __init__(self, embedder: Transformers, load_number: int) -> None:
        super().__init__(name="bunko-unload", daemon=True)
        self._embedder, self._load_number = weakref.ref(embedder), load_number
        self.wake = Event()
        self._is_ending = False

    def run(self) -> None:
        while not self._is_ending and (embedder := self._embedder()) is not None:
            seconds = embedder._unload_if_idle(self._load_number)
            del embedder
            if seconds is None:
                return
            self.wake.wait(seconds)
            self.wake.clear()

    def end(self) -> None:
        """End the thread, and wait for it, but not for ever: others may hold its embedder."""
        self._is_ending = True
        self.wake.set()
        self.join(_LONGEST_END_SECONDS)


@atexit.register
def _end_watches() -> None:
    """End the threads with the program: Python aborts if one is still freeing a model."""
    for thread in threading.enumerate():
        if isinstance(thread, _IdleWatch):
            thread.end()


def _log() -> Logger:
    import logging

    return logging.getLogger("bunko.embedders")


def _memory_in_use() -> float:
    """Return the share of the system memory that is in use."""
    import psutil

    return float(psutil.virtual_memory().percent) / 100


def build(
    *,
    model: str = PLAMO,
    device: Device = "auto",
    device_batch: int | None = None,
    max_tokens: int | None = None,
    too_long: LongTextPolicy = "average",
    trust: bool = False,
    idle: float = 600.0,
    threshold: float = 0.8,
    pause: float = _LOW_MEMORY_IDLE_SECONDS,
) -> Transformers:
    """Return the embedder; it unloads after `idle` seconds, or `pause` if memory use is above `threshold`."""
    return Transformers(
        model,
        device=device,
        device_batch=device_batch,
        max_tokens=max_tokens,
        too_long=too_long,
        trust_remote_code=trust,
        idle_seconds=idle,
        memory_threshold=threshold,
        low_memory_idle=pause,
    )


def _rebuild(model: str, options: dict[str, Any]) -> Transformers:
    return build(model=model, **options)


PROVIDER = Provider(
    build,
    extra="transformers",
    shared=LOCAL_MODEL_ARGUMENTS,
    options=(
        ProviderOption(
            "model_transformers",
            "model",
            PLAMO,
            "Model of transformers: a name on the Hugging Face Hub, or a folder",
        ),
        ProviderOption(
            "trust_remote_code",
            "trust",
            False,
            "Allow a transformers model to run the code that comes with it",
            bool,
        ),
        ProviderOption(
            "device", "device", "auto", "Device for transformers models", Literal["auto", "cpu", "cuda", "mps"]
        ),
        ProviderOption(
            "device_batch_size",
            "device_batch",
            None,
            "Texts per batch on the device. Not set: 64 on cuda, 16 on cpu, 1 on mps",
            int | None,
            low=1,
        ),
    ),
    aliases={"plamo": ProviderAlias({"model": PLAMO}, "transformers with the PLaMo model")},
)
