"""A model's name or folder in, what its files say out: size, pooling, prompts, longest text; no weights are read."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

from bunko.embedders.remote import missing_package_error
from bunko.errors import EmbedderError

_POOLINGS = {
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_lasttoken": "lasttoken",
}
_DOCUMENT_PROMPTS = ("document", "passage", "corpus", "検索文書")
_QUERY_PROMPTS = ("query", "検索クエリ")
# Models whose makers ask for words before a text in their manuals only, not in their files: documents, queries.
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
_NO_TOKEN_LIMIT = 1_000_000  # tokenizers write a number larger than that where they know no limit
_SAMPLE_BLOCKS, _SAMPLE_BYTES = 32, 4096  # read of a large file for its digest: another training changes all of them


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A model as its files describe it."""

    label: str
    folder: Path
    version: str  # what tells it from another of its name: a revision, or a digest of its files
    size: int | None  # None: the files do not say
    pooling: str  # mean, cls, max or lasttoken
    dense_layers: tuple[str, ...]  # folders of what comes after the pooling
    prompts: tuple[str, str]  # put before documents and before queries
    max_tokens: int | None  # of the longest text
    lowercase: bool
    model_type: str
    has_code: bool

    def digest(self) -> str:
        """Return a short name of everything that changes the vectors."""
        facts = (self.version, self.pooling, self.dense_layers, self.prompts, self.lowercase)
        return blake2b(repr(facts).encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()


@dataclass(frozen=True, slots=True)
class ModelLocation:
    """Where a model is: a folder, or a name on the hub with a revision after an @."""

    model: str

    @property
    def label(self) -> str:
        """Return how the model is called, wherever its folder lies."""
        return self._folder_path().resolve().name if self._is_folder() else self.model

    def local_folder(self) -> Path | None:
        """Return the folder of the model on this machine, None where it is not; nothing is fetched."""
        if self._is_folder():
            return self._folder_path() if (self._folder_path() / "config.json").is_file() else None
        found = self._cached_file("config.json")
        return found.parent if found else None

    def missing_reason(self) -> str:
        """Return nothing if the whole model is on this machine, else what is missing and how to get it."""
        folder = self.local_folder()
        if folder is not None and has_weights(folder):
            return ""
        if self._is_folder():
            what = "weights are" if folder else "config.json is"
            return f"No {what} in {self._folder_path()}: give embedding.model_transformers the folder of a model."
        return f"The model {self.model} is not on this machine: fetch it with: {self.download_command()}"

    def read_checkpoint(self, *, fetch: bool = True) -> Checkpoint:
        """Return what the files say; small ones that are not on this machine are fetched, if that is allowed."""
        folder = self.local_folder() or self._fetch_file("config.json")

        def optional(file: str) -> dict[str, Any]:
            return self._read_optional(folder, file, fetch)

        config = _read_json(folder / "config.json")
        pooling, layers, size = "mean", [], _hidden_size(config)
        for module in optional("modules.json").get("", _DEFAULT_MODULES):
            kind, path = str(module.get("type", "")).rpartition(".")[2], str(module.get("path", "")).strip("/")
            told = optional(f"{path}/config.json") if path else {}
            if kind == "Pooling":
                pooling = self._pooling(told) if told else pooling
                size = told.get("word_embedding_dimension", told.get("embedding_dimension", size))
            elif kind == "Dense":
                layers.append(path)
                size = told.get("out_features", size)
            elif kind not in ("Transformer", "Normalize"):
                raise EmbedderError(
                    f"{self.label} has a part that is not known here: {kind or 'no type'}",
                    hint="Choose another model in embedding.model_transformers.",
                )
        limits, tokenizer = optional("sentence_bert_config.json"), optional("tokenizer_config.json")
        spoken = optional("config_sentence_transformers.json")
        return Checkpoint(
            label=self.label,
            folder=folder,
            version=_folder_digest(folder) if self._is_folder() else folder.name,
            size=size if isinstance(size, int) and size > 0 else None,
            pooling=pooling,
            dense_layers=tuple(layers),
            prompts=self._prompts(spoken.get("prompts")),
            max_tokens=_token_limit(config, tokenizer, limits),
            lowercase=limits.get("do_lower_case") is True,
            model_type=str(config.get("model_type", "")),
            has_code=bool(config.get("auto_map") or tokenizer.get("auto_map")),
        )

    def is_stale(self, checkpoint: Checkpoint) -> bool:
        """Say whether the files are others than those that were read; what was fetched stays as it is."""
        return self._is_folder() and _folder_digest(checkpoint.folder) != checkpoint.version

    def fetch_weights(self, folder: Path) -> None:
        """Fetch the weights, and whatever else the model needs, beside the files that were read."""
        if self._is_folder():
            raise EmbedderError(f"{self.label} cannot be loaded", hint=self.missing_reason())
        from huggingface_hub import snapshot_download

        with _translate_hub_errors(self):
            for patterns in (
                (*_CONFIG_PATTERNS, "*.safetensors"),
                ("*.bin", "*.bin.index.json"),
            ):  # older models have the second
                snapshot_download(self._name_and_revision()[0], revision=folder.name, allow_patterns=list(patterns))
                if has_weights(folder):
                    return
            raise FileNotFoundError("there are no weights")

    def _folder_path(self) -> Path:
        return Path(self.model).expanduser()

    def _is_folder(self) -> bool:
        # A model of the hub is never taken from where a command happens to run: somebody else's folder may be called
        # as it is, and hold program code.
        return self.model.startswith((".", "/", "~")) or "\\" in self.model or self.model.count("/") > 1

    def _name_and_revision(self) -> tuple[str, str | None]:
        name, _, revision = self.model.partition("@")
        return name, revision or None

    def download_command(self) -> str:
        """Return what fetches the model from a terminal."""
        name, revision = self._name_and_revision()
        return f"hf download {name}" + (f" --revision {revision}" if revision else "")

    def _cached_file(self, file: str) -> Path | None:
        """Return a file as an earlier fetch left it; None where none did."""
        try:
            from huggingface_hub import try_to_load_from_cache
            from huggingface_hub.errors import HFValidationError
        except ImportError as error:
            raise missing_package_error("transformers", "transformers") from error
        name, revision = self._name_and_revision()
        try:
            found = try_to_load_from_cache(name, file, revision=revision)
        except HFValidationError:
            return None
        return Path(found) if isinstance(found, str) else None

    def _fetch_file(self, file: str) -> Path:
        """Return the folder of a file after it was fetched."""
        if self._is_folder():
            raise EmbedderError(f"{self.label} is not a model", hint=self.missing_reason())
        name, revision = self._name_and_revision()
        from huggingface_hub import hf_hub_download

        with _translate_hub_errors(self):
            return Path(hf_hub_download(name, file, revision=revision)).parent

    def _read_optional(self, folder: Path, file: str, fetch: bool) -> dict[str, Any]:
        """Return what a file holds that not every model has; nothing where it is not there."""
        path = folder / file
        if fetch and not path.is_file() and not self._is_folder() and not _is_full_download(folder):
            # Another program may have fetched only what it needed itself.
            from huggingface_hub import hf_hub_download, try_to_load_from_cache
            from huggingface_hub.errors import EntryNotFoundError

            name = self._name_and_revision()[0]
            if try_to_load_from_cache(name, file, revision=folder.name) is None:  # it also knows what is not there
                with _translate_hub_errors(self), suppress(EntryNotFoundError):  # there is none, or nobody to ask
                    hf_hub_download(name, file, revision=folder.name)
        return _read_json(path) if path.is_file() else {}

    def _pooling(self, config: dict[str, Any]) -> str:
        named = config.get("pooling_mode")
        found = [named] if isinstance(named, str) else [way for key, way in _POOLINGS.items() if config.get(key)]
        others = [
            key for key, on in config.items() if key.startswith("pooling_mode_") and on is True and key not in _POOLINGS
        ]
        if len(found) != 1 or others or found[0] not in _POOLINGS.values() or config.get("include_prompt") is False:
            raise EmbedderError(
                f"{self.label} makes one vector of many in a way that is not known here",
                hint="Choose another model in embedding.model_transformers.",
            )
        return found[0]

    def _prompts(self, prompts: object) -> tuple[str, str]:
        if isinstance(prompts, dict):
            document = next((str(prompts[name]) for name in _DOCUMENT_PROMPTS if prompts.get(name)), "")
            query = next((str(prompts[name]) for name in _QUERY_PROMPTS if prompts.get(name)), "")
            if document or query:
                return document, query
        name = self._name_and_revision()[0] if not self._is_folder() else self.label
        return next((words for pattern, words in _MODEL_PROMPTS if pattern.search(name.lower())), ("", ""))


def has_weights(folder: Path) -> bool:
    """Say whether all weights of a model are in its folder; large ones come in several files."""
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
    """Say in our words why the hub gives nothing."""
    from huggingface_hub.errors import GatedRepoError, HFValidationError, RepositoryNotFoundError, RevisionNotFoundError

    try:
        yield
    except GatedRepoError as error:
        raise EmbedderError(
            f"{location.model} is given only to those who ask", hint="Ask on its page, then run: hf auth login"
        ) from error
    except (RepositoryNotFoundError, RevisionNotFoundError, HFValidationError) as error:
        raise EmbedderError(
            f"There is no model called {location.model}",
            hint="Give embedding.model_transformers the name of a model on the hub, or a folder as ./folder.",
        ) from error
    except Exception as error:  # whatever a network, a proxy or a disk can do
        said = " ".join(str(error).split())[:_LONGEST_MESSAGE]
        raise EmbedderError(
            f"{location.model} is not on this machine and cannot be fetched: {said}",
            hint=f"With a network, run: {location.download_command()}   Or give its folder in embedding.model_transformers.",  # noqa: E501
        ) from error


def _is_full_download(folder: Path) -> bool:
    """Say whether a model was fetched as it is, with what only people read."""
    return any((folder / name).exists() for name in (".gitattributes", "README.md"))


def _read_json(path: Path) -> dict[str, Any]:
    """Return the table in a file; a list of tables comes under the name of nothing."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(found, list) and all(isinstance(one, dict) for one in found):
            return {"": found}
        if not isinstance(found, dict):
            raise ValueError("it holds no table")
        return found
    except (OSError, ValueError) as error:
        raise EmbedderError(
            f"{path.name} of the model cannot be read: {error}", hint=f"Fetch the model again; it is in {path.parent}."
        ) from error


def _hidden_size(config: dict[str, Any]) -> int | None:
    for table in (config, config.get("text_config")):
        for name in ("hidden_size", "d_model", "n_embd", "dim"):
            if isinstance(table, dict) and isinstance(table.get(name), int):
                return int(table[name])
    return None


def _token_limit(config: dict[str, Any], tokenizer: dict[str, Any], limits: dict[str, Any]) -> int | None:
    """Return how many tokens the model reads, the smallest that a file names."""
    places = config.get("max_position_embeddings")
    if isinstance(places, int) and "roberta" in str(config.get("model_type", "")):
        places -= int(config.get("pad_token_id") or 0) + 1  # theirs are counted from there
    found = (places, tokenizer.get("model_max_length"), limits.get("max_seq_length"))
    return min((int(one) for one in found if isinstance(one, int | float) and 0 < one < _NO_TOKEN_LIMIT), default=None)


def _folder_digest(folder: Path) -> str:
    """Return what a folder's files come to: small ones whole, large ones in samples."""
    found = blake2b(digest_size=8)
    for path in sorted(path for path in folder.rglob("*") if path.suffix in _DIGEST_SUFFIXES and path.is_file()):
        size = path.stat().st_size
        found.update(f"{path.relative_to(folder).as_posix()}\0{size}\0".encode("utf-8", "surrogatepass"))
        with path.open("rb") as file:
            if size <= _SAMPLE_BLOCKS * _SAMPLE_BYTES:
                found.update(file.read())
                continue
            for number in range(_SAMPLE_BLOCKS):
                file.seek((size - _SAMPLE_BYTES) * number // (_SAMPLE_BLOCKS - 1))
                found.update(file.read(_SAMPLE_BYTES))
    return found.hexdigest()
