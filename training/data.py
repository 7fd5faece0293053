"""Load training pairs as token ids on the GPU, in groups of one kind and language pair."""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import sentencepiece
import torch
from pairs import lines
from spacing import space_words

MAX_TOKENS = {"a": 64, "b": 160}  # tokens of each side of a pair
MIN_SOURCE_PAIRS = 4000  # pairs of a source that form a separate group
MIN_GROUP_PAIRS = 1000  # pairs of a group: with fewer, a batch is too easy
EVERYDAY = "everyday+"  # begins the names of groups of everyday pairs, whose sources are smaller
MIN_EVERYDAY_SOURCE_PAIRS, MIN_EVERYDAY_GROUP_PAIRS = 500, 300


class Tokenizer:
    """Converts texts to token ids, as the package does."""

    def __init__(self, model: Path) -> None:
        self._model = sentencepiece.SentencePieceProcessor(model_file=str(model))
        self.size = self._model.get_piece_size()

    def __call__(self, texts: list[str]) -> list[np.ndarray]:
        """Return the token ids of each text."""
        spaced_texts = [space_words(" ".join(text.split())) for text in texts]
        return self._model.encode(spaced_texts, return_type="numpy", num_threads=16)


@dataclass
class Side:
    """The concatenated token ids of many texts, and the start of each."""

    tokens: torch.Tensor
    starts: torch.Tensor
    lengths: torch.Tensor
    hashes: torch.Tensor  # the same for the same text

    @classmethod
    def of(cls, rows: list[np.ndarray], max_tokens: int, device: str) -> Side:
        """Copy texts to a device, each truncated to a length."""
        rows = [row[:max_tokens] if len(row) else np.zeros(1, np.int32) for row in rows]
        lengths = np.array([len(row) for row in rows], np.int64)
        starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
        tokens = np.concatenate(rows).astype(np.int32)
        hashes = np.array([hash(row.tobytes()) for row in rows], np.int64)
        return cls(*(torch.from_numpy(array).to(device) for array in (tokens, starts, lengths, hashes)))

    def pad_rows(self, rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the token ids and the mask of these texts."""
        return gather(self.tokens, self.starts[rows], self.lengths[rows])


def gather(tokens: torch.Tensor, starts: torch.Tensor, lengths: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return ranges of the tokens as a padded matrix with its mask."""
    positions = torch.arange(int(lengths.max()), device=tokens.device)
    mask = positions < lengths[:, None]
    indices = (starts[:, None] + positions).clamp_max(len(tokens) - 1)
    return tokens[indices].long() * mask, mask


@dataclass
class Group:
    """Pairs of one kind and language direction, of one source if it has many: similar texts are hard to tell apart."""

    name: str
    a: Side
    b: Side

    def __len__(self) -> int:
        return len(self.a.starts)


def load(paths: list[Path], tokenizer: Tokenizer, device: str, everyday: list[Path] | None = None) -> list[Group]:
    """Load all pairs, grouped by kind, languages and source; everyday pairs are groups of their own."""
    pairs_by_group = {
        name: pairs for name, pairs in _group_pairs(paths, MIN_SOURCE_PAIRS).items() if len(pairs) >= MIN_GROUP_PAIRS
    } | {
        EVERYDAY + name: pairs
        for name, pairs in _group_pairs(everyday or [], MIN_EVERYDAY_SOURCE_PAIRS).items()
        if len(pairs) >= MIN_EVERYDAY_GROUP_PAIRS
    }
    groups = []
    for name, pairs in sorted(pairs_by_group.items()):
        random.Random(0).shuffle(pairs)
        token_sides = [tokenizer([pair[side] for pair in pairs]) for side in (0, 1)]
        groups.append(
            Group(
                name, Side.of(token_sides[0], MAX_TOKENS["a"], device), Side.of(token_sides[1], MAX_TOKENS["b"], device)
            )
        )
    return groups


def _group_pairs(paths: list[Path], min_source_pairs: int) -> dict[str, list[tuple[str, str]]]:
    by_source: dict[tuple[str, str], list[tuple[str, str]]] = defaultdict(list)
    for line in lines(paths):
        by_source[f"{line['kind']}:{line['la']}>{line['lb']}", line["src"]].append((line["a"], line["b"]))
    pairs_by_group: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for (name, source), pairs in by_source.items():
        pairs_by_group[f"{name}:{source}" if len(pairs) >= min_source_pairs else name] += pairs
    return pairs_by_group
