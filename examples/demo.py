"""The sample library in, real searches over a copy of it out: what `make demo` shows."""

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
MOST_LINES = 2  # of each hit's text; the whole text is in the real output
BLOCK = re.compile(r"\n\n(?=\[\d+\] )")

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

ON_A_TERMINAL = sys.stdout.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"


def demo() -> None:
    """Import the sample library and search it."""
    # Settings of this machine must not change what a newcomer sees.
    for name in [name for name in os.environ if name.startswith(("BUNKO_", "RAG_", "EMBEDDING_"))]:
        del os.environ[name]
    shutil.rmtree(COPY, ignore_errors=True)
    shutil.copytree(SAMPLE, COPY)
    say("bunko: search your own documents, in Japanese and English, offline.", "1")
    say(f"A small sample library now lies in {COPY}/. First it is imported, then it is searched.")
    run(f"reindex --docs-dir {COPY}")
    for meaning, search in SEARCHES:
        if meaning:
            say(f"\n{meaning}", "33")
        run(f"search {search} --docs-dir {COPY}")
    go_on()


def run(line: str) -> None:
    """Show a command as one would type it, run it, and show what it printed, shortened."""
    say(f"\n$ bunko {line}", "1;36")
    printed = io.StringIO()
    with redirect_stdout(printed):
        main(shlex.split(line))
    for number, block in enumerate(BLOCK.split(printed.getvalue().strip())):
        if number:
            say("")
        head, *body = [text for text in block.splitlines() if text.strip()]
        say(f"  {head}", "32")
        # A heading path and a why come before the text; the text repeats its headings, which says nothing new.
        above = [text for text in body[:2] if " > " in text or text.startswith("why: ")]
        text = [text for text in body[len(above) :] if not text.startswith("#") and text not in above]
        for shown in above + text[:MOST_LINES]:
            say(f"  {shown}")
        if len(text) > MOST_LINES:
            say("  …")


def go_on() -> None:
    """Say what to type next."""
    say("\nNow your own folder (Markdown and text files):", "1")
    say("  source .venv/bin/activate")
    say("  bunko reindex --docs-dir ~/notes")
    say('  bunko search "環境構築の方法" --docs-dir ~/notes')
    say("The index lies in ~/notes/.rag-index; delete that folder and nothing else is left behind.")
    say("Changed files are found by the next search; you need not reindex by hand.")
    say("\nFor an assistant:", "1")
    if "serve" in COMMANDS:
        say("  bunko serve --docs-dir ~/notes                # an MCP server over stdin and stdout")
    if "connect" in COMMANDS:
        say("  bunko connect claude-code --docs-dir ~/notes  # what to tell the assistant")
    say("  bunko search QUERY --docs-dir ~/notes --json  # any assistant that has a shell can call this")
    say("\nMore: README.md, README.ja.md, bunko --help")


def say(text: str, style: str = "") -> None:
    """Print a line, coloured where a person is looking."""
    print(f"\x1b[{style}m{text}\x1b[0m" if style and ON_A_TERMINAL else text)


if __name__ == "__main__":
    demo()
