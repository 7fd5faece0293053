"""Train a table of token vectors with learned weights.

usage: python training/static.py OUT --tokenizer PIECES --pairs FILE… [--judged FILE] [--minutes N] [options]
needs: torch with a GPU, sentencepiece, zstandard, numpy. With --device cpu --steps N, two runs give the same bytes.
"""

from __future__ import annotations

import argparse
import math
import time
from pathlib import Path

import numpy as np
import torch
from data import EVERYDAY, Group, Side, Tokenizer, gather, load
from judge import Encode, format_scores, load_sets, scores
from torch import nn
from torch.nn.functional import cross_entropy, embedding_bag, normalize, softplus

SIZES = (256, 128, 64)  # a shorter vector is a prefix of the longer one
LONG = 24  # tokens of a text that can be split in two
ENOUGH = 2000  # such texts per group, so that the texts of a batch differ
WINDOW = (10, 50)  # tokens of a part of a text that is about as long as a sentence
MIN_WINDOW_TEXT = 60  # tokens of a text that such a part is taken from


class Static(nn.Module):
    """The weighted sum of token vectors; only its direction counts."""

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
    """Return the contrastive loss of finding the partner of each text among all texts of the other side.

    `same` masks other pairs that share a text with it: a word has several glosses, and none of them is wrong.
    """
    total = a.new_zeros(())
    target = torch.arange(len(a), device=a.device)
    for size in SIZES:
        left, right = (normalize(x[:, :size], dim=-1) for x in (a, b))
        similarities = (scale.exp() * (left.bfloat16() @ right.bfloat16().T).float()).masked_fill(same, -1e4)
        total = total + cross_entropy(similarities, target) + cross_entropy(similarities.T, target)
    return total / len(SIZES) / 2


def shares_text(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return a mask of the pairs that share a text."""
    mask = (a[:, None] == a) | (b[:, None] == b)
    return mask.fill_diagonal_(False)


def drop_tokens(mask: torch.Tensor, share: float) -> torch.Tensor:
    """Drop random tokens from a mask, so that any part of a text represents it; short texts stay whole."""
    if not share:
        return mask
    keep = (torch.rand(mask.shape, device=mask.device) > share) | (mask.sum(1, keepdim=True) <= 4)
    return mask & keep


def crops(side: Side, rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Split each text in two: a short part as the query, and the remaining text as its answer."""
    starts, lengths = side.starts[rows], side.lengths[rows]
    crop_sizes = (3 + torch.rand(len(rows), device=rows.device) * 14).long().minimum(lengths // 2)
    crop_starts = (torch.rand(len(rows), device=rows.device) * (lengths - crop_sizes + 1)).long()
    tokens, mask = gather(side.tokens, starts, lengths)
    positions = torch.arange(tokens.shape[1], device=rows.device)
    inside = (positions >= crop_starts[:, None]) & (positions < (crop_starts + crop_sizes)[:, None])
    short, short_mask = gather(side.tokens, starts + crop_starts, crop_sizes)
    return short, short_mask, tokens, mask & ~inside


def pad_windows(side: Side, rows: torch.Tensor, share: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Return these texts, and of a share of the long ones a part of about a sentence: sentences have vectors too."""
    starts, lengths = side.starts[rows], side.lengths[rows]
    sizes = (WINDOW[0] + torch.rand(len(rows), device=rows.device) * (WINDOW[1] - WINDOW[0])).long()
    is_cut = (lengths > MIN_WINDOW_TEXT) & (torch.rand(len(rows), device=rows.device) < share)
    offsets = (torch.rand(len(rows), device=rows.device) * (lengths - sizes).clamp(min=0)).long()
    return gather(side.tokens, torch.where(is_cut, starts + offsets, starts), torch.where(is_cut, sizes, lengths))


def group_weight(group: Group, options: argparse.Namespace) -> float:
    """Return how often a group is drawn."""
    factor = options.everyday_weight if group.name.startswith(EVERYDAY) else 1.0
    factor *= options.qa_weight if group.name.startswith("qa:") else 1.0
    return factor * len(group) ** options.power


def train(groups: list[Group], tokenizer: Tokenizer, options: argparse.Namespace, device: str) -> Static:
    """Train a table and return the model."""
    torch.manual_seed(options.seed)
    model = Static(tokenizer.size, SIZES[0]).to(device)
    scale = nn.Parameter(torch.tensor(math.log(options.scale), device=device))
    optimizer = torch.optim.Adam([*model.parameters(), scale], lr=options.rate, betas=(0.9, 0.98))
    group_weights = np.array([group_weight(group, options) for group in groups])
    rng = np.random.RandomState(options.seed)
    long_rows = [(group.b.lengths >= LONG).nonzero().squeeze(1) for group in groups]
    start, step, last_loss = time.time(), 0, 0.0
    while (progress := step / options.steps if options.steps else (time.time() - start) / (60 * options.minutes)) < 1:
        group_index = rng.choice(len(groups), p=group_weights / group_weights.sum())
        group = groups[group_index]
        if rng.rand() < options.crops and len(long_rows[group_index]) > ENOUGH:
            pool = long_rows[group_index]
            rows = pool[torch.randint(len(pool), (min(options.batch, len(pool)),), device=device)]
            a, a_mask, b, b_mask = crops(group.b, rows)
            same = shares_text(group.b.hashes[rows], group.b.hashes[rows])
        else:
            rows = torch.randperm(len(group), device=device)[: options.batch]
            (a, a_mask), (b, b_mask) = group.a.pad_rows(rows), pad_windows(group.b, rows, options.windows)
            same = shares_text(group.a.hashes[rows], group.b.hashes[rows])
        left, right = model(a, drop_tokens(a_mask, options.drop)), model(b, drop_tokens(b_mask, options.drop))
        value = loss(left, right, scale, same)
        for part in optimizer.param_groups:
            part["lr"] = options.rate * min(1, (step + 1) / 200) * (0.5 + 0.5 * math.cos(math.pi * progress))
        optimizer.zero_grad(set_to_none=True)
        value.backward()
        optimizer.step()
        with torch.no_grad():
            scale.clamp_(max=math.log(60))
        step += 1
        if step % 200 == 0:
            last_loss = float(value.detach())
    print(f"{step} steps, loss {last_loss:.3f}, scale {float(scale.exp()):.1f}", flush=True)
    return model


def encoder(model: Static, tokenizer: Tokenizer, device: str, size: int = SIZES[0]) -> Encode:
    """Return a function that embeds texts."""

    @torch.no_grad()
    def encode(texts: list[str]) -> np.ndarray:
        side = Side.of(tokenizer(texts), 2000, device)
        out = []
        for first in range(0, len(texts), 256):
            rows = torch.arange(first, min(first + 256, len(texts)), device=device)
            out.append(normalize(model(*side.pad_rows(rows))[:, :size], dim=-1).cpu().numpy())
        return np.concatenate(out)

    return encode


def quantize(table: np.ndarray, max_shift: int = 4) -> tuple[np.ndarray, np.ndarray]:
    """Quantize each row to bytes and a shift, so that sums are exact and small rows are not rounded to zero."""
    peak = np.abs(table).max(axis=1)
    unit = np.quantile(peak, 0.999) / 127 / 2**max_shift
    shifts = np.clip(np.ceil(np.log2(np.maximum(peak, 1e-9) / (127 * unit))), 0, max_shift).astype(np.int8)
    rows = np.clip(np.round(table / (unit * 2.0 ** shifts[:, None])), -127, 127).astype(np.int8)
    return rows, shifts


def parse_options(arguments: list[str] | None = None) -> argparse.Namespace:
    """Return the options of a command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path)
    parser.add_argument("--tokenizer", type=Path, required=True)
    parser.add_argument("--pairs", type=Path, nargs="+", required=True)
    parser.add_argument("--everyday", type=Path, nargs="*", default=[], help="pairs in groups of their own")
    parser.add_argument("--judged", type=Path)
    parser.add_argument("--minutes", type=float, default=3)
    parser.add_argument("--steps", type=int, help="stop after this many steps, not after a time")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--batch", type=int, default=8192)
    parser.add_argument("--rate", type=float, default=2e-2)
    parser.add_argument("--scale", type=float, default=20)
    parser.add_argument("--power", type=float, default=0.5)
    parser.add_argument("--drop", type=float, default=0.1)
    parser.add_argument("--crops", type=float, default=0.2)
    parser.add_argument("--windows", type=float, default=0.2, help="share of long texts seen in part")
    parser.add_argument("--qa-weight", type=float, default=2)
    parser.add_argument("--everyday-weight", type=float, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--trials", nargs="*", default=[], help="further runs: batch=4096,drop=0.3")
    return parser.parse_args(arguments)


def main(options: argparse.Namespace) -> None:
    """Train once, or once per trial; the last table is saved."""
    device = options.device
    if device == "cpu":
        torch.set_num_threads(1)  # sums in one order
        torch.use_deterministic_algorithms(True)
    start = time.time()
    tokenizer = Tokenizer(options.tokenizer)
    groups = load(options.pairs, tokenizer, device, options.everyday)
    if not groups:
        raise SystemExit("No kind of pairs has enough of them: see MIN_GROUP_PAIRS in training/data.py.")
    print(f"{time.time() - start:.0f} s,", {group.name: len(group) for group in groups}, flush=True)
    sets = load_sets(options.judged) if options.judged else {}
    for trial in options.trials or [""]:
        trial_options = argparse.Namespace(**vars(options))
        for change in filter(None, trial.split(",")):
            name, value = change.split("=")
            setattr(trial_options, name, type(getattr(options, name))(value))
        model = train(groups, tokenizer, trial_options, device)
        print(f"[{time.time() - start:.0f} s] {trial or 'defaults'}", flush=True)
        if sets:
            print(format_scores(scores(sets, encoder(model, tokenizer, device))), flush=True)
    options.out.mkdir(exist_ok=True, parents=True)
    weight = softplus(model.weight.detach())[:, None]
    weighted_table = (model.table.weight.detach() * weight).cpu().numpy()
    rows, shifts = quantize(weighted_table)
    np.save(options.out / "rows.npy", rows)
    np.save(options.out / "shifts.npy", shifts)


if __name__ == "__main__":
    main(parse_options())
