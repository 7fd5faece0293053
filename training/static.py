"""Training pairs in, a table of token vectors with learned weights out.

usage: python training/static.py OUT --tokenizer PIECES --pairs FILE… [--judged FILE] [--minutes N] [options]
needs: torch with a GPU, sentencepiece, zstandard, numpy.
"""

from __future__ import annotations

import argparse
import math
import time
from pathlib import Path

import numpy as np
import torch
from data import Group, Side, Tokenizer, gather, load
from judge import Encode, judged, scores, table
from torch import nn
from torch.nn.functional import cross_entropy, embedding_bag, normalize, softplus

SIZES = (256, 128, 64)  # a shorter vector is the beginning of the longer one
LONG = 24  # tokens of a text that can be cut in two
ENOUGH = 2000  # such texts of a group, so that those of a batch differ


class Static(nn.Module):
    """The weighted sum of token vectors; only where it points counts."""

    def __init__(self, tokens: int, size: int) -> None:
        super().__init__()
        self.table = nn.Embedding(tokens, size)
        self.weight = nn.Parameter(torch.zeros(tokens))
        nn.init.normal_(self.table.weight, std=size**-0.5)

    def forward(self, tokens: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Return the sum for each text."""
        flat, numbers = tokens[mask], mask.sum(1)
        starts = numbers.cumsum(0) - numbers
        weight = softplus(self.weight[flat])
        return embedding_bag(flat, self.table.weight, starts, mode="sum", per_sample_weights=weight)


def loss(a: torch.Tensor, b: torch.Tensor, scale: torch.Tensor, same: torch.Tensor) -> torch.Tensor:
    """Return how badly each text of one side finds its partner among all of the other side.

    `same` says which other pairs share a text with it: a word has several glosses, and none of them is wrong.
    """
    total = a.new_zeros(())
    target = torch.arange(len(a), device=a.device)
    for size in SIZES:
        left, right = (normalize(x[:, :size], dim=-1) for x in (a, b))
        near = (scale.exp() * (left.bfloat16() @ right.bfloat16().T).float()).masked_fill(same, -1e4)
        total = total + cross_entropy(near, target) + cross_entropy(near.T, target)
    return total / len(SIZES) / 2


def shared(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return which pairs have the same text on one side."""
    found = (a[:, None] == a) | (b[:, None] == b)
    return found.fill_diagonal_(False)


def dropped(mask: torch.Tensor, share: float) -> torch.Tensor:
    """Return a mask with some tokens gone, so that a text is known by any part of it; short ones stay whole."""
    if not share:
        return mask
    keep = (torch.rand(mask.shape, device=mask.device) > share) | (mask.sum(1, keepdim=True) <= 4)
    return mask & keep


def crops(side: Side, rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return two different stretches of each text: a short one that asks, and the rest that answers."""
    starts, lengths = side.starts[rows], side.lengths[rows]
    size = (3 + torch.rand(len(rows), device=rows.device) * 14).long().minimum(lengths // 2)
    at = (torch.rand(len(rows), device=rows.device) * (lengths - size + 1)).long()
    tokens, mask = gather(side.tokens, starts, lengths)
    place = torch.arange(tokens.shape[1], device=rows.device)
    inside = (place >= at[:, None]) & (place < (at + size)[:, None])
    short, short_mask = gather(side.tokens, starts + at, size)
    return short, short_mask, tokens, mask & ~inside


def train(groups: list[Group], tokenizer: Tokenizer, options: argparse.Namespace, device: str) -> Static:
    """Return a trained table."""
    torch.manual_seed(options.seed)
    model = Static(tokenizer.size, SIZES[0]).to(device)
    scale = nn.Parameter(torch.tensor(math.log(options.scale), device=device))
    optimizer = torch.optim.Adam([*model.parameters(), scale], lr=options.rate, betas=(0.9, 0.98))
    share = np.array([len(group) ** options.power for group in groups])
    chance = np.random.RandomState(options.seed)
    long = [(g.b.lengths >= LONG).nonzero().squeeze(1) for g in groups]
    begin, step, kept = time.time(), 0, 0.0
    while (spent := (time.time() - begin) / (60 * options.minutes)) < 1:
        number = chance.choice(len(groups), p=share / share.sum())
        group = groups[number]
        if chance.rand() < options.crops and len(long[number]) > ENOUGH:
            pool = long[number]
            rows = pool[torch.randint(len(pool), (min(options.batch, len(pool)),), device=device)]
            a, a_mask, b, b_mask = crops(group.b, rows)
            same = shared(group.b.hashes[rows], group.b.hashes[rows])
        else:
            rows = torch.randperm(len(group), device=device)[: options.batch]
            (a, a_mask), (b, b_mask) = group.a.padded(rows), group.b.padded(rows)
            same = shared(group.a.hashes[rows], group.b.hashes[rows])
        left, right = model(a, dropped(a_mask, options.drop)), model(b, dropped(b_mask, options.drop))
        value = loss(left, right, scale, same)
        for part in optimizer.param_groups:
            part["lr"] = options.rate * min(1, (step + 1) / 200) * (0.5 + 0.5 * math.cos(math.pi * spent))
        optimizer.zero_grad(set_to_none=True)
        value.backward()
        optimizer.step()
        with torch.no_grad():
            scale.clamp_(max=math.log(60))
        step += 1
        if step % 200 == 0:
            kept = float(value.detach())
    print(f"{step} steps, loss {kept:.3f}, scale {float(scale.exp()):.1f}", flush=True)
    return model


def encoder(model: Static, tokenizer: Tokenizer, device: str, size: int = SIZES[0]) -> Encode:
    """Return what makes vectors of texts."""

    @torch.no_grad()
    def encode(texts: list[str]) -> np.ndarray:
        side = Side.of(tokenizer(texts), 2000, device)
        out = []
        for first in range(0, len(texts), 256):
            rows = torch.arange(first, min(first + 256, len(texts)), device=device)
            out.append(normalize(model(*side.padded(rows))[:, :size], dim=-1).cpu().numpy())
        return np.concatenate(out)

    return encode


def rounded(table: np.ndarray, most: int = 4) -> tuple[np.ndarray, np.ndarray]:
    """Return bytes and a shift for each row, so that sums of them are exact; a small row is not rounded away."""
    peak = np.abs(table).max(axis=1)
    unit = np.quantile(peak, 0.999) / 127 / 2**most
    shifts = np.clip(np.ceil(np.log2(np.maximum(peak, 1e-9) / (127 * unit))), 0, most).astype(np.int8)
    rows = np.clip(np.round(table / (unit * 2.0 ** shifts[:, None])), -127, 127).astype(np.int8)
    return rows, shifts


def main() -> None:
    """Train once, or once for each trial; the last table is kept."""
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path)
    parser.add_argument("--tokenizer", type=Path, required=True)
    parser.add_argument("--pairs", type=Path, nargs="+", required=True)
    parser.add_argument("--judged", type=Path)
    parser.add_argument("--minutes", type=float, default=3)
    parser.add_argument("--batch", type=int, default=8192)
    parser.add_argument("--rate", type=float, default=2e-2)
    parser.add_argument("--scale", type=float, default=20)
    parser.add_argument("--power", type=float, default=0.5)
    parser.add_argument("--drop", type=float, default=0.1)
    parser.add_argument("--crops", type=float, default=0.2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--trials", nargs="*", default=[], help="further runs: batch=4096,drop=0.3")
    options = parser.parse_args()
    device = "cuda"
    begin = time.time()
    tokenizer = Tokenizer(options.tokenizer)
    groups = load(options.pairs, tokenizer, device)
    print(f"{time.time() - begin:.0f} s,", {group.name: len(group) for group in groups}, flush=True)
    sets = judged(options.judged) if options.judged else {}
    for trial in options.trials or [""]:
        own = argparse.Namespace(**vars(options))
        for change in filter(None, trial.split(",")):
            name, value = change.split("=")
            setattr(own, name, type(getattr(options, name))(value))
        model = train(groups, tokenizer, own, device)
        print(f"[{time.time() - begin:.0f} s] {trial or 'defaults'}", flush=True)
        if sets:
            print(table(scores(sets, encoder(model, tokenizer, device))), flush=True)
    options.out.mkdir(exist_ok=True, parents=True)
    weight = softplus(model.weight.detach())[:, None]
    whole = (model.table.weight.detach() * weight).cpu().numpy()
    rows, shifts = rounded(whole)
    np.save(options.out / "rows.npy", rows)
    np.save(options.out / "shifts.npy", shifts)


if __name__ == "__main__":
    main()
