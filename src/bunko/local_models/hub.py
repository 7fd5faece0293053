"""Download the files of a model from the Hugging Face Hub, check that they arrived as there, and remove them."""

from __future__ import annotations

import json
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha1, sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from bunko.errors import ModelError
from bunko.local_models import missing_package_error
from bunko.local_models.files import TOKENIZER, LocalModel, hub_cache, is_within, repository_folder, unlink_in_folder
from bunko.runtime.temporary_files import write_text_file

if TYPE_CHECKING:
    from huggingface_hub import HfFileMetadata

# Bytes of a file that are on this machine, and its size if the hub named it.
Progress = Callable[[str, int, int], None]

_CONFIGURATION = ("config.json", "tokenizer_config.json")
_SENTENCE_CONFIGURATION = ("modules.json", "sentence_bert_config.json", "config_sentence_transformers.json")
_POOLING = "1_Pooling/config.json"
_DATA_SUFFIXES = ("_data", ".data")  # weights beside the graph, of a model over 2 GB
_LONGEST_MESSAGE = 300
_BLOCK_BYTES = 1 << 20
_SHA256_DIGITS = 64
_DIGEST = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")  # SHA-1 or SHA-256; all that may become the name of a file
_MAX_FAILURES = 5  # in a row without a byte


@dataclass(frozen=True, slots=True)
class FetchedFile:
    """A file of a model on this machine, with the digest that the hub names."""

    repo: str
    name: str
    path: Path
    bytes: int
    digest: str


class Hub:
    """The hub that HF_ENDPOINT names, and the cache that HF_HOME or HF_HUB_CACHE names."""

    def __init__(self, *, endpoint: str | None = None, cache: Path | None = None) -> None:
        self._endpoint, self._cache = endpoint, cache or hub_cache()

    def fetch(self, model: LocalModel, progress: Progress = lambda *_: None) -> list[FetchedFile]:
        """Download what a model lacks, continuing what was interrupted, and check every file."""
        known, (repo, revision) = model.known, model.repository
        if model.is_folder:
            raise ModelError(
                f"{model.name} is a folder, which cannot be downloaded", hint="Name a model of: bunko models"
            )
        if known is not None and not known.onnx_repo:
            raise ModelError(f"There is no ONNX file of {model.label}", hint=known.summary)
        weights, configuration = (known.onnx_repo, known.repo) if known else (repo, repo)
        self._prepare()
        with _translate_errors(model.label):
            onnx = self._first(weights, revision, model.onnx_names, progress)
            if onnx is None and _is_offline():
                raise ModelError(
                    f"{model.label} is not on this machine, and HF_HUB_OFFLINE is set",
                    hint="Unset HF_HUB_OFFLINE to download it, or name a folder with the model instead.",
                )
            if onnx is None:
                raise ModelError(
                    f"{weights} contains none of: {', '.join(model.onnx_names)}",
                    hint="Choose a model with an ONNX file: bunko models lists some.",
                )
            files = [onnx]
            files += self._optional(weights, revision, [onnx.name + suffix for suffix in _DATA_SUFFIXES], progress)
            tokenizer = self._first(weights, revision, (TOKENIZER, f"onnx/{TOKENIZER}"), progress)
            if tokenizer is None and configuration != weights:
                tokenizer = self._first(configuration, revision, (TOKENIZER,), progress)
            if tokenizer is None:
                raise ModelError(f"{weights} contains no {TOKENIZER}", hint="Choose another model: bunko models")
            files.append(tokenizer)
            names = [*_CONFIGURATION, *_SENTENCE_CONFIGURATION, _POOLING]
            files += self._optional(configuration, revision, names, progress)
            modules = next((file.path for file in files if file.name == "modules.json"), None)
            return files + self._optional(configuration, revision, _further_modules(modules), progress)

    def _prepare(self) -> None:
        try:
            from huggingface_hub import logging
            from huggingface_hub.utils import disable_progress_bars
        except ImportError as error:
            raise missing_package_error("huggingface_hub") from error
        disable_progress_bars()  # the caller shows its own
        logging.set_verbosity_error()

    def _first(self, repo: str, revision: str | None, names: tuple[str, ...], progress: Progress) -> FetchedFile | None:
        for name in names:
            if file := self._fetch_file(repo, revision, name, progress):
                return file
        return None

    def _optional(self, repo: str, revision: str | None, names: list[str], progress: Progress) -> list[FetchedFile]:
        return [file for name in names if (file := self._fetch_file(repo, revision, name, progress))]

    def _fetch_file(self, repo: str, revision: str | None, name: str, progress: Progress) -> FetchedFile | None:
        """Return a file that is complete and correct, downloading what is missing; None if there is no such file."""
        from huggingface_hub import get_hf_file_metadata, hf_hub_url
        from huggingface_hub.errors import EntryNotFoundError, RepositoryNotFoundError, RevisionNotFoundError

        if (offline := self._offline_file(repo, revision, name)) is not None:
            return offline[0]
        url = hf_hub_url(repo, name, revision=revision, endpoint=self._endpoint)
        try:
            metadata = get_hf_file_metadata(url, endpoint=self._endpoint)
        except (RepositoryNotFoundError, RevisionNotFoundError):
            raise
        except EntryNotFoundError:
            return None
        etag, commit = metadata.etag, metadata.commit_hash
        if not etag or not commit:
            raise OSError(f"{url} is not a file of a hub")
        for value, meaning in ((etag, "checksum"), (commit, "commit")):
            if not _DIGEST.fullmatch(value):
                raise OSError(f"the hub names {value!r} for {name}, which is not a {meaning}")
        folder = repository_folder(repo, self._cache)
        blob, path = folder / "blobs" / etag, folder / "snapshots" / commit / name
        if not blob.is_file():
            pinned_url = hf_hub_url(repo, name, revision=commit, endpoint=self._endpoint)
            self._download(pinned_url, blob, metadata, lambda done: progress(name, done, metadata.size or done))
        # The links that all programs expect in this cache. hf_hub_download would ask again, and may get another answer.
        self._link(path, blob)
        self._set_revision(folder / "refs" / (revision or "main"), commit)
        size = path.stat().st_size
        progress(name, size, size)
        self._check_digest(path, etag)
        return FetchedFile(repo, name, path, size, etag)

    def _download(self, url: str, blob: Path, metadata: HfFileMetadata, report: Callable[[int], None]) -> None:
        """Download a file, continuing where an earlier download stopped; only one with its digest gets its name."""
        from filelock import FileLock

        part = blob.with_name(f"{blob.name}.bunko-part")
        lock = Path(f"{part}.lock")
        self._check_place(part)
        self._check_place(lock)
        part.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(lock):
            if not blob.is_file():
                with part.open("ab") as file:
                    if metadata.size is not None and file.tell() > metadata.size:
                        _empty(file)
                    _receive(url, file, metadata.size, report)
                self._check_digest(part, blob.name)
                part.replace(blob)
        with suppress(OSError):
            lock.unlink()

    def _link(self, path: Path, blob: Path) -> None:
        """Make a name of a file in a commit lead to its content."""
        self._check_place(path.parent)
        if path.is_file():
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        try:
            path.symlink_to(os.path.relpath(blob, path.parent))
        except FileExistsError:  # another process was faster
            return
        except OSError:  # Windows lets only some users make links
            shutil.copyfile(blob, path)

    def _set_revision(self, reference: Path, commit: str) -> None:
        """Record the commit of a branch."""
        self._check_place(reference)
        if reference.name != commit:
            reference.parent.mkdir(parents=True, exist_ok=True)
            write_text_file(reference, commit)

    def _check_place(self, path: Path) -> None:
        """Raise an error if a path, or what it links to, is not in the cache."""
        if not is_within(path, self._cache):
            raise OSError(f"{path} leads outside the cache {self._cache}")

    def _check_digest(self, path: Path, etag: str) -> None:
        """Raise an error, and delete the file, if it does not have the digest that the hub names."""
        size = path.stat().st_size
        # The hub names the SHA-256 of a large file, and git's own digest of a small one.
        digest: Any = sha256() if len(etag) == _SHA256_DIGITS else sha1(b"blob %d\0" % size, usedforsecurity=False)
        with path.open("rb") as file:
            while block := file.read(_BLOCK_BYTES):
                digest.update(block)
        if digest.hexdigest() == etag:
            return
        unlink_in_folder(path, self._cache)
        raise ModelError(
            f"A downloaded file does not have the checksum {etag} that the hub names, and was deleted",
            hint="Run the command again. If it fails again, something between the hub and this machine changes files.",
        )

    def _offline_file(self, repo: str, revision: str | None, name: str) -> tuple[FetchedFile | None] | None:
        """Return what the cache has if HF_HUB_OFFLINE is set, else None."""
        from huggingface_hub import try_to_load_from_cache

        if not _is_offline():
            return None
        path = try_to_load_from_cache(repo, name, cache_dir=self._cache, revision=revision)
        if not isinstance(path, str):
            return (None,)
        digest = Path(os.path.realpath(path)).name
        return (FetchedFile(repo, name, Path(path), Path(path).stat().st_size, digest),)


def _is_offline() -> bool:
    from huggingface_hub import constants

    return bool(constants.HF_HUB_OFFLINE)


def _receive(url: str, file: BinaryIO, size: int | None, report: Callable[[int], None]) -> None:
    """Append what a file lacks; a connection that breaks is opened again, unless nothing arrives any more."""
    from huggingface_hub.errors import HfHubHTTPError

    failures = 0
    while (position := file.tell()) != size:
        try:
            _receive_once(url, file, position, report)
            if size is None or file.tell() == size:
                return
            raise OSError(f"{file.tell()} of {size} bytes arrived")
        except HfHubHTTPError:
            raise
        except Exception:  # of the HTTP client, whose errors have no common base
            failures = failures + 1 if file.tell() <= position else 0
            if failures == _MAX_FAILURES:
                raise
            time.sleep(failures)


def _receive_once(url: str, file: BinaryIO, position: int, report: Callable[[int], None]) -> None:
    from huggingface_hub import constants, get_session
    from huggingface_hub.utils import build_hf_headers, hf_raise_for_status

    headers = {**build_hf_headers(), "Accept-Encoding": "identity"}
    if position:
        headers["Range"] = f"bytes={position}-"
    timeout = constants.HF_HUB_DOWNLOAD_TIMEOUT
    with get_session().stream("GET", url, headers=headers, timeout=timeout, follow_redirects=True) as response:
        hf_raise_for_status(response)
        if position and response.status_code == 200:  # the server ignores ranges
            _empty(file)
        for block in response.iter_raw():
            file.write(block)
            report(file.tell())


def _empty(file: BinaryIO) -> None:
    file.seek(0)
    file.truncate()


def _further_modules(modules: Path | None) -> list[str]:
    """Return the configurations of the modules of a sentence-transformers model, except the usual one."""
    if modules is None:
        return []
    try:
        paths = [str(module["path"]).strip("/") for module in json.loads(modules.read_text(encoding="utf-8"))]
    except (OSError, ValueError, TypeError, KeyError):
        return []
    return [name for path in paths if path and ".." not in path and (name := f"{path}/config.json") != _POOLING]


@contextmanager
def _translate_errors(label: str) -> Iterator[None]:
    """Translate errors of the hub and of the network to ModelError."""
    from huggingface_hub.errors import GatedRepoError, HFValidationError, RepositoryNotFoundError, RevisionNotFoundError

    try:
        yield
    except ModelError:
        raise
    except GatedRepoError as error:
        raise ModelError(
            f"{label} is a gated model", hint="Request access on its page, then run: hf auth login"
        ) from error
    except (RepositoryNotFoundError, RevisionNotFoundError, HFValidationError) as error:
        raise ModelError(
            f"The hub has no model called {label}, or it is private",
            hint="Name one of bunko models, or OWNER/NAME; for a private one, run: hf auth login",
        ) from error
    except Exception as error:  # anything a network, a proxy or a disk can raise
        reason = " ".join(str(error).split())[:_LONGEST_MESSAGE] or type(error).__name__
        raise ModelError(
            f"{label} cannot be downloaded: {reason}",
            hint="Run the command again: it continues where it stopped. Without a network, copy the folder of the model"
            " from another machine and name that folder instead.",
        ) from error


_WEIGHTS = (".onnx", ".onnx_data", ".data")


def remove_model(model: LocalModel, cache: Path | None = None) -> int:
    """Delete the ONNX files of a model, and the rest of its repositories if nothing else is there; return the bytes."""
    if model.is_folder:
        raise ModelError(f"{model.name} is a folder of yours", hint="Delete it yourself.")
    known = model.known
    repos = dict.fromkeys((known.onnx_repo, known.repo) if known else (model.repository[0],))
    return sum(_remove_weights(repository_folder(repo, cache or hub_cache())) for repo in repos if repo)


def _remove_weights(repository: Path) -> int:
    """Delete the ONNX files of a repository, and all of it if no other weights are there; return the bytes."""
    files = [path for path in repository.glob("snapshots/**/*") if path.is_file()]
    weights = [path for path in files if path.name.endswith(_WEIGHTS)]
    if not _holds_other_weights([path for path in files if path not in weights]):
        size = sum(path.stat().st_size for path in repository.glob("**/*") if path.is_file() and not path.is_symlink())
        shutil.rmtree(repository, ignore_errors=True)
        return size
    return sum(unlink_in_folder(path, repository) for path in weights)


def _holds_other_weights(files: list[Path]) -> bool:
    return any(path.suffix in (".safetensors", ".bin", ".gguf", ".pt", ".h5", ".msgpack") for path in files)
