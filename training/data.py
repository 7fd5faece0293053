"""Training pairs and a tokenizer in, token numbers on the GPU out, in groups of one kind and language pair each."""

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

LONGEST = {"a": 64, "b": 160}  # tokens of each side of a pair
LEAST = 4000  # pairs of a source that make a group of their own
FEWEST = 1000  # pairs of a group: fewer make a batch too easy


class Tokenizer:
    """Texts in, lists of token numbers out, as the package makes them."""

    def __init__(self, model: Path) -> None:
        self._model = sentencepiece.SentencePieceProcessor(model_file=str(model))
        self._model.override_normalizer_spec(remove_extra_whitespaces=False)
        self.size = self._model.get_piece_size()

    def __call__(self, texts: list[str]) -> list[np.ndarray]:
        """Return the token numbers of each text."""
        whole = [space_words(" ".join(text.split())) for text in texts]
        return self._model.encode(whole, return_type="numpy", num_threads=16)


@dataclass
class Side:
    """Token numbers of many texts in one row, and where each begins."""

    tokens: torch.Tensor
    starts: torch.Tensor
    lengths: torch.Tensor
    hashes: torch.Tensor  # the same for the same text

    @classmethod
    def of(cls, rows: list[np.ndarray], longest: int, device: str) -> Side:
        """Return texts on a device, each cut at a length."""
        rows = [row[:longest] if len(row) else np.zeros(1, np.int32) for row in rows]
        lengths = np.array([len(row) for row in rows], np.int64)
        starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
        tokens = np.concatenate(rows).astype(np.int32)
        hashes = np.array([hash(row.tobytes()) for row in rows], np.int64)
        return cls(*(torch.from_numpy(array).to(device) for array in (tokens, starts, lengths, hashes)))

    def padded(self, rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return token numbers and a mask for some of the texts."""
        return gather(self.tokens, self.starts[rows], self.lengths[rows])


def gather(tokens: torch.Tensor, starts: torch.Tensor, lengths: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return stretches of a row of tokens as a padded matrix with its mask."""
    at = torch.arange(int(lengths.max()), device=tokens.device)
    mask = at < lengths[:, None]
    where = (starts[:, None] + at).clamp_max(len(tokens) - 1)
    return tokens[where].long() * mask, mask


@dataclass
class Group:
    """Pairs of one kind from one language to another, of one source where it has many: neighbours are hard to tell."""

    name: str
    a: Side
    b: Side

    def __len__(self) -> int:
        return len(self.a.starts)


def load(paths: list[Path], tokenizer: Tokenizer, device: str) -> list[Group]:
    """Return all pairs by kind, languages and source."""
    by_source: dict[tuple[str, str], list[tuple[str, str]]] = defaultdict(list)
    for line in lines(paths):
        by_source[f"{line['kind']}:{line['la']}>{line['lb']}", line["src"]].append((line["a"], line["b"]))
    found: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for (name, source), own in by_source.items():
        found[f"{name}:{source}" if len(own) >= LEAST else name] += own
    groups = []
    for name, own in sorted(found.items()):
        if len(own) < FEWEST:
            continue
        random.Random(0).shuffle(own)
        sides = [tokenizer([pair[side] for pair in own]) for side in (0, 1)]
        groups.append(Group(name, Side.of(sides[0], LONGEST["a"], device), Side.of(sides[1], LONGEST["b"], device)))
    return groups
