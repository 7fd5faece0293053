"""Read the configuration of a local or Hugging Face model: size, pooling, prompts and token limit, but no weights."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

from bunko.embedders.provider import missing_package_error
from bunko.errors import EmbedderError

_POOLINGS = {
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_lasttoken": "lasttoken",
}
_DOCUMENT_PROMPTS = ("document", "passage", "corpus", "検索文書")
_QUERY_PROMPTS = ("query", "検索クエリ")
# Prompts (for documents, for queries) of models that document them in their manuals only, not in their files.
_MODEL_PROMPTS = (
    (re.compile(r"(?:^|[/-])e5-(?:small|base|large)(?:-v2)?$"), ("passage: ", "query: ")),
    (re.compile(r"(?:^|/)ruri-v3-\w+$"), ("検索文書: ", "検索クエリ: ")),
    (re.compile(r"(?:^|/)ruri-(?:small|base|large)(?:-v2)?$"), ("文章: ", "クエリ: ")),
    (re.compile(r"(?:^|/)nomic-embed-text-v[\d.]+$"), ("search_document: ", "search_query: ")),
)
_DEFAULT_MODULES = ({"type": "Pooling", "path": "1_Pooling"},)
_WEIGHT_FILES = ("model.safetensors", "pytorch_model.bin")
_CONFIG_PATTERNS = ("*.json", "*.txt", "*.model", "*.py")
_DIGEST_SUFFIXES = (".json", ".txt", ".model", ".py", ".safetensors", ".bin")
_LONGEST_MESSAGE = 300
_NO_TOKEN_LIMIT = 1_000_000  # tokenizers without a limit write a larger number than this
_SAMPLE_BLOCKS, _SAMPLE_BYTES = 32, 4096  # samples of a large file for its digest: training again changes all of them


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The configuration of a model, read from its files."""

    label: str
    folder: Path
    version: str  # a revision, or a digest of the files: tells models of one name apart
    size: int | None  # None: the files do not say
    pooling: str  # mean, cls, max or lasttoken
    dense_layers: tuple[str, ...]  # folders of the layers after the pooling
    prompts: tuple[str, str]  # put before documents and before queries
    max_tokens: int | None  # of the longest text
    lowercase: bool
    model_type: str
    has_code: bool

    def digest(self) -> str:
        """Return a short digest of everything that changes the vectors."""
        facts = (self.version, self.pooling, self.dense_layers, self.prompts, self.lowercase)
        return blake2b(repr(facts).encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()


@dataclass(frozen=True, slots=True)
class ModelLocation:
    """The location of a model: a folder, or a name on the Hugging Face Hub with an optional revision after an @."""

    model: str

    @property
    def label(self) -> str:
        """Return the name of the model; for a folder its last component."""
        return self._folder_path().resolve().name if self._is_folder() else self.model

    def local_folder(self) -> Path | None:
        """Return the local folder of the model, or None; downloads nothing."""
        if self._is_folder():
            return self._folder_path() if (self._folder_path() / "config.json").is_file() else None
        config = self._cached_file("config.json")
        return config.parent if config else None

    def missing_reason(self) -> str:
        """Return what is missing and how to get it, or an empty string if the whole model is on this machine."""
        folder = self.local_folder()
        if folder is not None and has_weights(folder):
            return ""
        if self._is_folder():
            missing = "weights" if folder else "config.json"
            return f"No {missing} in {self._folder_path()}: set embedding.model_transformers to the folder of a model."
        return f"The model {self.model} is not on this machine: download it with: {self.download_command()}"

    def read_checkpoint(self, *, fetch: bool = True) -> Checkpoint:
        """Return the configuration of the model; with `fetch`, missing configuration files are downloaded."""
        folder = self.local_folder() or self._fetch_file("config.json")

        def read_optional(file: str) -> dict[str, Any]:
            return self._read_optional(folder, file, fetch)

        version = _folder_digest(folder) if self._is_folder() else folder.name
        return read_configuration(folder, self.label, version, read_optional, self._prompts())

    def is_stale(self, checkpoint: Checkpoint) -> bool:
        """Return whether the files of a local folder have changed since they were read."""
        return self._is_folder() and _folder_digest(checkpoint.folder) != checkpoint.version

    def fetch_weights(self, folder: Path) -> None:
        """Download the weights and all other files of the model, into the folder of its configuration."""
        if self._is_folder():
            raise EmbedderError(f"{self.label} cannot be loaded", hint=self.missing_reason())
        from huggingface_hub import snapshot_download

        with _translate_hub_errors(self):
            # Older models have only the second kind of weights.
            for patterns in ((*_CONFIG_PATTERNS, "*.safetensors"), ("*.bin", "*.bin.index.json")):
                snapshot_download(self._name_and_revision()[0], revision=folder.name, allow_patterns=list(patterns))
                if has_weights(folder):
                    return
            raise FileNotFoundError("it has no weights")

    def _folder_path(self) -> Path:
        return Path(self.model).expanduser()

    def _is_folder(self) -> bool:
        # The name of a hub model never means a folder in the working directory: a folder of that name may belong to
        # somebody else and contain code.
        return self.model.startswith((".", "/", "~")) or "\\" in self.model or self.model.count("/") > 1

    def _name_and_revision(self) -> tuple[str, str | None]:
        name, _, revision = self.model.partition("@")
        return name, revision or None

    def download_command(self) -> str:
        """Return the shell command that downloads the model."""
        name, revision = self._name_and_revision()
        return f"hf download {name}" + (f" --revision {revision}" if revision else "")

    def _cached_file(self, file: str) -> Path | None:
        """Return the path of a downloaded file, or None."""
        try:
            from huggingface_hub import try_to_load_from_cache
            from huggingface_hub.errors import HFValidationError
        except ImportError as error:
            raise missing_package_error("transformers", "transformers") from error
        name, revision = self._name_and_revision()
        try:
            path = try_to_load_from_cache(name, file, revision=revision)
        except HFValidationError:
            return None
        return Path(path) if isinstance(path, str) else None

    def _fetch_file(self, file: str) -> Path:
        """Download a file and return its folder."""
        if self._is_folder():
            raise EmbedderError(f"{self.label} is not a model", hint=self.missing_reason())
        name, revision = self._name_and_revision()
        from huggingface_hub import hf_hub_download

        with _translate_hub_errors(self):
            return Path(hf_hub_download(name, file, revision=revision)).parent

    def _read_optional(self, folder: Path, file: str, fetch: bool) -> dict[str, Any]:
        """Return the content of a file that not every model has, or an empty dict."""
        path = folder / file
        if fetch and not path.is_file() and not self._is_folder() and not _is_full_download(folder):
            # Another program may have downloaded only the files that it needed.
            from huggingface_hub import hf_hub_download, try_to_load_from_cache
            from huggingface_hub.errors import EntryNotFoundError

            name = self._name_and_revision()[0]
            if try_to_load_from_cache(name, file, revision=folder.name) is None:  # the cache also records absent files
                # EntryNotFoundError: the model does not have the file, or this machine is offline.
                with _translate_hub_errors(self), suppress(EntryNotFoundError):
                    hf_hub_download(name, file, revision=folder.name)
        return read_optional_file(folder, file)

    def _prompts(self) -> tuple[str, str]:
        name = self._name_and_revision()[0] if not self._is_folder() else self.label
        return known_prompts(name)


def read_configuration(
    folder: Path,
    label: str,
    version: str,
    read_optional: Callable[[str], dict[str, Any]],
    default_prompts: tuple[str, str],
    *,
    default_pooling: str = "mean",
    setting: str = "embedding.model_transformers",
) -> Checkpoint:
    """Return the configuration of a model; `read_optional` returns a file that not every model has, or nothing."""
    config = _read_json(folder / "config.json") if (folder / "config.json").is_file() else {}
    pooling, dense_layers, size = default_pooling, [], _hidden_size(config)
    hint = f"Choose another model in {setting}."
    for module in read_optional("modules.json").get("", _DEFAULT_MODULES):
        kind, path = str(module.get("type", "")).rpartition(".")[2], str(module.get("path", "")).strip("/")
        module_config = read_optional(f"{path}/config.json") if path else {}
        if kind == "Pooling":
            pooling = _pooling(module_config, label, hint) if module_config else pooling
            size = module_config.get("word_embedding_dimension", module_config.get("embedding_dimension", size))
        elif kind == "Dense":
            dense_layers.append(path)
            size = module_config.get("out_features", size)
        elif kind not in ("Transformer", "Normalize"):
            raise EmbedderError(f"{label} has an unsupported module: {kind or 'no type'}", hint=hint)
    limits, tokenizer = read_optional("sentence_bert_config.json"), read_optional("tokenizer_config.json")
    sentence_config = read_optional("config_sentence_transformers.json")
    return Checkpoint(
        label=label,
        folder=folder,
        version=version,
        size=size if isinstance(size, int) and size > 0 else None,
        pooling=pooling,
        dense_layers=tuple(dense_layers),
        prompts=_prompts(sentence_config.get("prompts")) or default_prompts,
        max_tokens=_token_limit(config, tokenizer, limits),
        lowercase=limits.get("do_lower_case") is True,
        model_type=str(config.get("model_type", "")),
        has_code=bool(config.get("auto_map") or tokenizer.get("auto_map")),
    )


def read_optional_file(folder: Path, file: str) -> dict[str, Any]:
    """Return the content of a JSON file in a folder, or an empty dict if it is not there."""
    path = folder / file
    return _read_json(path) if path.is_file() else {}


def known_prompts(name: str) -> tuple[str, str]:
    """Return the prompts of a model whose files do not name them, for documents and for queries."""
    return next((words for pattern, words in _MODEL_PROMPTS if pattern.search(name.lower())), ("", ""))


def _pooling(config: dict[str, Any], label: str, hint: str) -> str:
    mode = config.get("pooling_mode")
    modes = [mode] if isinstance(mode, str) else [name for key, name in _POOLINGS.items() if config.get(key)]
    unsupported = [
        key
        for key, value in config.items()
        if key.startswith("pooling_mode_") and value is True and key not in _POOLINGS
    ]
    if len(modes) != 1 or unsupported or modes[0] not in _POOLINGS.values() or config.get("include_prompt") is False:
        raise EmbedderError(f"{label} uses an unsupported pooling", hint=hint)
    return modes[0]


def _prompts(prompts: object) -> tuple[str, str] | None:
    """Return the prompts for documents and for queries that a configuration names, None if it names neither."""
    if not isinstance(prompts, dict):
        return None
    document = next((str(prompts[name]) for name in _DOCUMENT_PROMPTS if prompts.get(name)), "")
    query = next((str(prompts[name]) for name in _QUERY_PROMPTS if prompts.get(name)), "")
    return (document, query) if document or query else None


def has_weights(folder: Path) -> bool:
    """Return whether all weights of a model are in its folder; large models have several files."""
    for name in _WEIGHT_FILES:
        if (folder / name).is_file():
            return True
        index = folder / f"{name}.index.json"
        if index.is_file():
            files = _read_json(index).get("weight_map", {}).values()
            return bool(files) and all((folder / file).is_file() for file in set(files))
    return False


@contextmanager
def _translate_hub_errors(location: ModelLocation) -> Iterator[None]:
    """Translate errors of the hub to EmbedderError."""
    from huggingface_hub.errors import GatedRepoError, HFValidationError, RepositoryNotFoundError, RevisionNotFoundError

    try:
        yield
    except GatedRepoError as error:
        raise EmbedderError(
            f"{location.model} is a gated model", hint="Request access on its page, then run: hf auth login"
        ) from error
    except (RepositoryNotFoundError, RevisionNotFoundError, HFValidationError) as error:
        raise EmbedderError(
            f"There is no model called {location.model}",
            hint="Set embedding.model_transformers to the name of a model on the hub, or to a folder, as in ./folder.",
        ) from error
    except Exception as error:  # anything a network, a proxy or a disk can raise
        reason = " ".join(str(error).split())[:_LONGEST_MESSAGE]
        raise EmbedderError(
            f"{location.model} is not on this machine and cannot be downloaded: {reason}",
            hint=(
                f"When you are online, run: {location.download_command()}   "
                "Or set embedding.model_transformers to its folder."
            ),
        ) from error


def _is_full_download(folder: Path) -> bool:
    """Return whether the whole repository was downloaded, including the files for people."""
    return any((folder / name).exists() for name in (".gitattributes", "README.md"))


def _read_json(path: Path) -> dict[str, Any]:
    """Return the JSON object in a file; a list of objects is returned under the empty key."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(content, list) and all(isinstance(item, dict) for item in content):
            return {"": content}
        if not isinstance(content, dict):
            raise ValueError("it is not a JSON object")
        return content
    except (OSError, ValueError) as error:
        raise EmbedderError(
            f"{path.name} of the model cannot be read: {error}",
            hint=f"Download the model again; it is in {path.parent}.",
        ) from error


def _hidden_size(config: dict[str, Any]) -> int | None:
    for table in (config, config.get("text_config")):
        for name in ("hidden_size", "d_model", "n_embd", "dim"):
            if isinstance(table, dict) and isinstance(table.get(name), int):
                return int(table[name])
    return None


def _token_limit(config: dict[str, Any], tokenizer: dict[str, Any], limits: dict[str, Any]) -> int | None:
    """Return the token limit of the model: the smallest limit in its files."""
    positions = config.get("max_position_embeddings")
    if isinstance(positions, int) and "roberta" in str(config.get("model_type", "")):
        positions -= int(config.get("pad_token_id") or 0) + 1  # RoBERTa counts positions from there
    token_limits = (positions, tokenizer.get("model_max_length"), limits.get("max_seq_length"))
    return min(
        (int(limit) for limit in token_limits if isinstance(limit, int | float) and 0 < limit < _NO_TOKEN_LIMIT),
        default=None,
    )


def _folder_digest(folder: Path) -> str:
    """Return a digest of the files of a folder: all of small files, samples of large ones."""
    digest = blake2b(digest_size=8)
    for path in sorted(path for path in folder.rglob("*") if path.suffix in _DIGEST_SUFFIXES and path.is_file()):
        size = path.stat().st_size
        digest.update(f"{path.relative_to(folder).as_posix()}\0{size}\0".encode("utf-8", "surrogatepass"))
        with path.open("rb") as file:
            if size <= _SAMPLE_BLOCKS * _SAMPLE_BYTES:
                digest.update(file.read())
                continue
            for block in range(_SAMPLE_BLOCKS):
                file.seek((size - _SAMPLE_BYTES) * block // (_SAMPLE_BLOCKS - 1))
                digest.update(file.read(_SAMPLE_BYTES))
    return digest.hexdigest()
