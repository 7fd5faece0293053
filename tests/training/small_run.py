"""A small run of `training/make.py`, with pairs of texts that are made on the spot: enough of each kind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from hashlib import sha256
from itertools import product
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "training" / "make.py"

ANIMALS = dict(zip("猫犬馬鳥牛羊狐熊", "cat dog horse bird cow sheep fox bear".split(), strict=True))
PLACES = {"公園": "park", "図書館": "library", "台所": "kitchen", "駅": "station", "海岸": "beach", "学校": "school"}
ACTIONS = {
    "眠る": "sleeps",
    "走る": "runs",
    "食べる": "eats",
    "待つ": "waits",
    "遊ぶ": "plays",
    "歩く": "walks",
    "泳ぐ": "swims",
}
# The dictionary takes the first for a lender, the second for cash, and the third, a name of ours, for 砂 and pet.
LOANWORDS = {"レンダー": "render", "キャッシュ": "cache", "スナペット": "snapet"}


def write_pairs(path: Path) -> Path:
    """Write translations, and questions with answers in both languages."""
    rows = []
    for animal, place, action in product(ANIMALS, PLACES, ACTIONS):
        japanese = f"{animal}は{place}で{action}。"
        english = f"The {ANIMALS[animal]} {ACTIONS[action]} in the {PLACES[place]}."
        rows.append((japanese, english, "parallel", "ja", "en"))
        rows.append((f"{place}で{action}のは何ですか", japanese, "qa", "ja", "ja"))
        rows.append((f"Which animal {ACTIONS[action]} in the {PLACES[place]}?", english, "qa", "en", "en"))
    rows += [(*words, "gloss", "ja", "en") for words in (ANIMALS | PLACES).items()]
    for word, place in product(LOANWORDS, PLACES):
        texts = f"{place}の{word}を開く。", f"Open the {LOANWORDS[word]} of the {PLACES[place]}."
        rows.append((*texts, "parallel", "ja", "en"))
    lines = (json.dumps(dict(zip(("a", "b", "kind", "la", "lb", "src"), (*row, "tests"), strict=True))) for row in rows)
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def make_files(folder: Path, *options: str, seed: int) -> dict[str, str]:
    """Run it in a process whose sets have another order for each seed; return the checksums of what it made."""
    out, pairs = folder / str(seed), str(write_pairs(folder / "pairs.jsonl"))
    command = [sys.executable, str(SCRIPT), pairs, "--out", str(out), "--vocabulary", "110", *options]
    subprocess.run(command, check=True, env=os.environ | {"PYTHONHASHSEED": str(seed)})
    return {path.name: sha256(path.read_bytes()).hexdigest() for path in out.iterdir() if path.is_file()}
