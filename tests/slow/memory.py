"""Measure the memory of a command."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

# Linux counts the memory of whoever starts a process as the new process's own, so a small one starts the command.
_STARTER = """
import os, sys
pid = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ)
_, status, usage = os.wait4(pid, 0)
print(usage.ru_maxrss, file=sys.stderr)
sys.exit(os.waitstatus_to_exitcode(status))
"""


def run_bunko(arguments: Sequence[str | Path], home: Path) -> tuple[int, str]:
    """Run a command in a process of its own; return the most bytes it had, and what it printed."""
    done = subprocess.run(
        [sys.executable, "-S", "-c", _STARTER, sys.executable, "-m", "bunko", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "XDG_CONFIG_HOME": str(home), "OPENBLAS_NUM_THREADS": "1"},
    )
    return int(done.stderr.splitlines()[-1]) * 1024, done.stdout
