"""Say what imports may do for the caller that waits for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bunko.runtime.observer import NO_OBSERVER, Observer

if TYPE_CHECKING:
    from bunko.ingest.preparer import Preparer

# How long an import waits for another one to finish.
LOCK_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class ImportPolicy:
    """How an import runs; the caller that knows who waits for it makes the policy once."""

    observer: Observer = NO_OBSERVER
    preparer: Preparer | None = None  # where documents are prepared; None: on this machine
    lock_seconds: float = LOCK_SECONDS
    uses_services: bool = True  # asks an embedder elsewhere; else its texts are found by their words until later
    rebuilds_outdated: bool = True  # builds a tool of an older version of bunko anew
    adds_notices: bool = True  # tells what the user could change
    needs_vectors: bool = False  # an embedder that fails ends the import; else documents are written without vectors
