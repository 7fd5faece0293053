"""Run PDFium in a process of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bunko.errors import SourceError
from bunko.readers.helper_process import HelperProcess, memory_limit

MAX_PAGES = 5000
MAX_CHARS = 20_000_000
MAX_SECONDS = 120.0  # PDFium reads several hundred pages a second

extractor = HelperProcess(Path(__file__).with_name("extract.py"))


def extract(data: bytes) -> list[dict[str, Any]]:
    """Return the answers of `extract.py` for a PDF, one file at a time; raise SourceError if there is none."""
    try:
        limits = (MAX_PAGES, MAX_CHARS, memory_limit())
        return extractor.ask(data, MAX_SECONDS, [str(limit) for limit in limits])
    except EOFError:
        raise SourceError(
            f"The PDF cannot be read: it takes more than {MAX_SECONDS:.0f} seconds or too much memory, or is damaged",
            hint="Open it and save it again, split it, or exclude it.",
        ) from None
    except OSError as error:
        raise SourceError(
            f"The PDF cannot be read: no process could be started for it ({error.strerror})",
            hint="Close other programs, then import it again.",
        ) from error
