"""Write measurements into the documents that show them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DOCS, NOTES = ROOT / "docs", ROOT / "bench" / "notes"


def write_section(name: str, body: str, documents: Sequence[Path] | None = None) -> None:
    """Replace the section between the markers of a name, in the document that has it."""
    section = re.compile(rf"(<!-- bench:{re.escape(name)} -->\n).*?(<!-- /bench -->)", re.DOTALL)
    for document in documents or (DOCS / "performance.md", *sorted(NOTES.glob("*.md"))):
        text = document.read_text(encoding="utf-8")
        if section.search(text):
            replaced = section.sub(lambda match: f"{match[1]}\n{body}\n\n{match[2]}", text)
            document.write_text(replaced, encoding="utf-8")
            return
    raise SystemExit(f"No document has a section bench:{name}")
