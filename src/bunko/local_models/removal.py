"""Remove the files of a model from the cache, and leave what other programs downloaded there."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path

from bunko.errors import ModelError
from bunko.local_models.files import LocalModel, hub_cache, repository_folder

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
    size = 0
    for path in weights:
        blob = Path(os.path.realpath(path))
        path.unlink()
        if blob != path:
            size += blob.stat().st_size if blob.is_file() else 0
            with suppress(OSError):
                blob.unlink()
    return size


def _holds_other_weights(files: list[Path]) -> bool:
    return any(path.suffix in (".safetensors", ".bin", ".gguf", ".pt", ".h5", ".msgpack") for path in files)
