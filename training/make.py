"""Make every file that bunko ships, from the same pairs and in the order in which they need each other.

usage: python training/make.py PAIRS… --out FOLDER [--everyday PAIRS…] [--without queries.jsonl…] [options]
needs: bunko and zstandard; 8 GB of memory. For static.bin also torch, and a GPU unless `--device cpu --steps N`.

`--no-static` leaves out static.bin; further options are those of static.py. The dictionary is apart (`dictionary.py`),
because it comes from an installed package.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import bridge
import export
import light_words
import loanwords
import pieces
import tokenizer

from bunko.text import analyzer


def main() -> None:
    """Run the steps."""
    parser = argparse.ArgumentParser()
    parser.add_argument("pairs", type=Path, nargs="+")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--everyday", type=Path, nargs="*", default=[], help="pairs for light_words and static alone")
    parser.add_argument("--without", type=Path, nargs="*", default=[], help="questions that light_words must not see")
    parser.add_argument("--vocabulary", type=int, default=tokenizer.VOCABULARY)
    parser.add_argument("--no-static", dest="static", action="store_false", help="leave out what needs torch")
    parser.add_argument("--name", default="new", help="of static.bin: stored vectors refer to it")
    options, static_options = parser.parse_known_args()
    out: Path = options.out
    if options.static:  # first, because torch may be missing, or an option wrong
        import static

        files = ["--pairs", *map(str, options.pairs), "--everyday", *map(str, options.everyday)]
        files += ["--tokenizer", str(out / "pieces.model")]
        static_options = static.parse_options([str(out / "table"), *files, *static_options])
    elif static_options:
        parser.error(f"unknown: {' '.join(static_options)}")
    out.mkdir(parents=True, exist_ok=True)
    loanwords.main(out / "loanwords.tsv", options.pairs)
    analyzer.CORRECTIONS_PATH = out / "loanwords.tsv"  # from here on, words are those that the new files will meet
    light_words.main(out / "light_words.tsv", [*options.pairs, *options.everyday], options.without)
    tokenizer.main(out / "pieces.model", options.pairs, options.vocabulary)
    pieces.main(out / "pieces.model", out / "pieces.bin")
    bridge.main(out / "bridge.bin", options.pairs)
    if options.static:
        static.main(static_options)
        export.main(out / "table", out / "static.bin", options.name)


if __name__ == "__main__":
    main()
