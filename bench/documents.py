"""Write measurements into the documents that show them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DOCS, NOTES = ROOT / "docs", ROOT / "bench" / "notes"


def write_section(name: str, body: str, documents: Sequence[Path] = ()) -> None:
    """Replace the section between the markers of a name, in the document that has it."""
    document = find_document(name, documents)
    if document is None:
        raise SystemExit(f"No document has a section bench:{name}")
    text = document.read_text(encoding="utf-8")
    replaced = _section(name).sub(lambda match: f"{match[1]}\n{body}\n\n{match[2]}", text)
    document.write_text(replaced, encoding="utf-8")


def find_document(name: str, documents: Sequence[Path] = ()) -> Path | None:
    """Return the document that has the section of a name."""
    pages = documents or (DOCS / "performance.md", *sorted(NOTES.glob("*.md")))
    return next((page for page in pages if _section(name).search(page.read_text(encoding="utf-8"))), None)


def _section(name: str) -> re.Pattern[str]:
    return re.compile(rf"(<!-- bench:{re.escape(name)} -->\n).*?(<!-- /bench -->)", re.DOTALL)
