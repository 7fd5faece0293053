"""Run real searches over a copy of the sample library: `make demo`."""

from __future__ import annotations

import io
import os
import re
import shlex
import shutil
import sys
from contextlib import redirect_stdout
from pathlib import Path

from bunko.interfaces.cli.main import COMMANDS, main

SAMPLE = Path(__file__).with_name("library")
COPY = Path(".demo")
MAX_TEXT_LINES = 2  # per hit; the real output has the whole text
RESULT_BREAK = re.compile(r"\n\n(?=\[\d+\] )")

SEARCHES = (
    ("Words, however they are inflected: 走る finds 走った and 走りたい.", "走る -k 2"),
    ("Other spellings of the same word: 玉ねぎ finds 玉葱.", "玉ねぎ -k 1"),
    ("Full-width or half-width makes no difference.", "ＲａｔｅＬｉｍｉｔｅｒ -k 1"),
    ("A loanword finds the English word it came from, and the other way round.", "データベース -k 1"),
    ("", "butter -k 1"),
    ("Words are translated: holiday finds 休暇. So does 休日, which is a holiday too.", "holiday -k 1"),
    ("", "休日 -k 1"),
    ("By meaning, with no word in common.", "病気で休みたい -k 1"),
    ("Identifiers, whole or in part, in any style: this text says station_id.", "stationId -k 1"),
    ("A whole question, in either language.", "有給休暇はいつまでに申請すればよいですか -k 1"),
    ("", "'How do I roll back a release?' -k 1"),
    ("Only some documents: by tag, by date, by path.", "通知 --tag 会議 --since 2025-05 --until 2025-06 -k 1"),
    ("Why each result was found.", "'stale forecast' --explain -k 1"),
)

USE_COLOR = sys.stdout.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"


def demo() -> None:
    """Import the sample library and search it."""
    # Settings of this machine must not change the demo.
    for name in [name for name in os.environ if name.startswith(("BUNKO_", "RAG_", "EMBEDDING_"))]:
        del os.environ[name]
    shutil.rmtree(COPY, ignore_errors=True)
    shutil.copytree(SAMPLE, COPY)
    print_line("bunko: search your own documents, in Japanese and English, offline.", "1")
    print_line(f"A small sample library is now in {COPY}/. The demo imports it, then searches it.")
    # Not the library of whoever runs the demo.
    os.environ["BUNKO_LIBRARY"] = str(COPY / ".library")
    print_line(f"\n$ export BUNKO_LIBRARY={os.environ['BUNKO_LIBRARY']}", "1;36")
    run_command(f"add {COPY}")
    for meaning, search in SEARCHES:
        if meaning:
            print_line(f"\n{meaning}", "33")
        run_command(f"search {search}")
    print_next_steps()


def run_command(command: str) -> None:
    """Print a command, run it, and print its output, shortened."""
    print_line(f"\n$ bunko {command}", "1;36")
    printed = io.StringIO()
    with redirect_stdout(printed):
        main(shlex.split(command))
    for index, block in enumerate(RESULT_BREAK.split(printed.getvalue().strip())):
        if index:
            print_line("")
        heading, *body = [line for line in block.splitlines() if line.strip()]
        print_line(f"  {heading}", "32")
        # The heading path and the explanation come before the text; headings repeated in the text are skipped.
        context_lines = [line for line in body[:2] if " > " in line or line.startswith("why: ")]
        text_lines = body[len(context_lines) :]
        lines = [line for line in text_lines if not line.startswith("#") and line not in context_lines]
        for line in context_lines + lines[:MAX_TEXT_LINES]:
            print_line(f"  {line}")
        if len(lines) > MAX_TEXT_LINES:
            print_line("  …")


def print_next_steps() -> None:
    """Print what to run next."""
    print_line("\nNow your own folder, in a new shell:", "1")
    print_line("  source .venv/bin/activate")
    print_line("  bunko add ~/notes")
    print_line('  bunko search "環境構築の方法"')
    print_line(
        "bunko only reads your folder; its library is in your data folder. The next search picks up changed files."
    )
    print_line("\nFor an assistant:", "1")
    if "serve" in COMMANDS:
        print_line("  bunko serve                # an MCP server over stdin and stdout")
    if "connect" in COMMANDS:
        print_line("  bunko connect claude-code  # prints the configuration for the assistant")
    print_line("  bunko search QUERY --json  # any assistant that has a shell can call this")
    print_line("\nMore: README.md, README.ja.md, bunko --help")


def print_line(text: str, style: str = "") -> None:
    """Print a line, in color on a terminal."""
    print(f"\x1b[{style}m{text}\x1b[0m" if style and USE_COLOR else text)


if __name__ == "__main__":
    demo()
