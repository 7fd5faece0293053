"""Find the files of a local model: in a folder, or in the cache of the Hugging Face Hub; nothing is downloaded."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from bunko.local_models.catalogue import KnownModel, find_model, onnx_files

TOKENIZER = "tokenizer.json"
_SAMPLE_BLOCKS, _SAMPLE_BYTES = 32, 4096  # samples of a large file for its digest: training again changes all of them


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """The files of a model that are needed to run it."""

    label: str
    onnx: Path
    tokenizer: Path
    configuration: Path  # the folder of config.json and of the files of sentence-transformers

    def digest(self) -> str:
        """Return a digest of the weights and the tokenizer, the same wherever they are."""
        digest = blake2b(digest_size=8)
        for path in (self.onnx, self.tokenizer):
            _add_samples(digest, path)
        return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class LocalModel:
    """A model by its name in the catalogue, its repository on the hub with an optional @revision, or its folder."""

    name: str
    onnx_file: str | None = None  # None: the best of those that are known

    @property
    def known(self) -> KnownModel | None:
        """Return the entry of the catalogue, None if the model is not listed."""
        return None if self.is_folder else find_model(self.name)

    @property
    def label(self) -> str:
        """Return the name as people know it; of a folder, its last component."""
        if self.is_folder:
            return self._folder.resolve().name
        return self.known.name if self.known else self.name

    @property
    def is_folder(self) -> bool:
        """Return whether the name is the path of a folder."""
        # The name of a model never means a folder in the working directory, which may belong to somebody else.
        return self.name.startswith((".", "/", "~")) or "\\" in self.name or self.name.count("/") > 1

    @property
    def repository(self) -> tuple[str, str | None]:
        """Return the repository of a model that is not listed, and its revision."""
        name, _, revision = self.name.partition("@")
        return name, revision or None

    @property
    def onnx_names(self) -> tuple[str, ...]:
        """Return the ONNX files to look for, by preference."""
        return (self.onnx_file,) if self.onnx_file else onnx_files(self.known)

    def find(self) -> ModelFiles | None:
        """Return the files of the model, None if they are not all on this machine."""
        weights, configuration = self._roots()
        onnx = _first_file(weights, self.onnx_names)
        tokenizer = _first_file((*weights, *configuration), (TOKENIZER, f"onnx/{TOKENIZER}"))
        if onnx is None or tokenizer is None:
            return None
        config = _first_file((*configuration, *weights), ("config.json",))
        return ModelFiles(self.label, onnx, tokenizer, config.parent if config else tokenizer.parent)

    def missing_reason(self) -> str:
        """Return what is missing and how to get it, or an empty string if the model is on this machine."""
        if self.known is not None and not self.known.onnx_repo:
            return f"There is no ONNX file of {self.label}. {self.known.summary}"
        if self.find() is not None:
            return ""
        if self.is_folder:
            return f"{self._folder} does not contain {TOKENIZER} and one of: {', '.join(self.onnx_names)}."
        return f"The model {self.label} is not on this machine. Get it with: {self.get_command()}"

    def get_command(self) -> str:
        """Return the command that downloads the model."""
        return f"bunko models get {self.label}"

    @property
    def _folder(self) -> Path:
        return Path(self.name).expanduser()

    def _roots(self) -> tuple[list[Path], list[Path]]:
        """Return the folders to search for weights and for the configuration."""
        if self.is_folder:
            return [self._folder], [self._folder]
        if (known := self.known) is not None:
            return snapshots(known.onnx_repo), snapshots(known.repo)
        folders = snapshots(*self.repository)
        return folders, folders


def hub_cache() -> Path:
    """Return the folder in which programs keep what they downloaded from the hub."""
    environ = os.environ
    if cache := environ.get("HF_HUB_CACHE") or environ.get("HUGGINGFACE_HUB_CACHE"):
        return Path(os.path.expandvars(cache)).expanduser()
    home = environ.get("HF_HOME") or str(Path(environ.get("XDG_CACHE_HOME") or "~/.cache") / "huggingface")
    return Path(os.path.expandvars(home)).expanduser() / "hub"


def repository_folder(repo: str, cache: Path | None = None) -> Path:
    """Return the folder of a repository in the cache."""
    return (cache or hub_cache()) / f"models--{repo.replace('/', '--')}"


def is_within(path: Path, folder: Path) -> bool:
    """Return whether a path, or what it links to, is below a folder."""
    return path.resolve().is_relative_to(folder.resolve())


def unlink_in_folder(path: Path, folder: Path) -> int:
    """Delete a file, and the files that its links lead to, where they are below a folder; return the bytes."""
    files = [path]
    while files[-1].is_symlink() and path.exists():  # links that lead in a circle do not exist
        files.append(files[-1].parent / files[-1].readlink())
    size = 0
    for file in files:
        if is_within(file.parent, folder):
            size += file.lstat().st_size if file.is_file() and not file.is_symlink() else 0
            file.unlink(missing_ok=True)
    return size


def snapshots(repo: str, revision: str | None = None, cache: Path | None = None) -> list[Path]:
    """Return the folder of a revision that was downloaded; without one, of the main branch. Empty if it was not."""
    if not repo:
        return []
    folder = repository_folder(repo, cache)
    reference = folder / "refs" / (revision or "main")
    try:
        commit = reference.read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        commit = revision or ""
    snapshot = folder / "snapshots" / commit
    return [snapshot] if commit and snapshot.is_dir() else []


def _first_file(folders: Iterable[Path], names: Iterable[str]) -> Path | None:
    names = tuple(names)
    return next((folder / name for folder in folders for name in names if (folder / name).is_file()), None)


def _add_samples(digest: blake2b, path: Path) -> None:
    size = path.stat().st_size
    digest.update(f"{size}\0".encode())
    with path.open("rb") as file:
        if size <= _SAMPLE_BLOCKS * _SAMPLE_BYTES:
            digest.update(file.read())
            return
        for block in range(_SAMPLE_BLOCKS):
            file.seek((size - _SAMPLE_BYTES) * block // (_SAMPLE_BLOCKS - 1))
            digest.update(file.read(_SAMPLE_BYTES))
