"""Kill the process at a named point, for crash tests: `BUNKO_FAILPOINT=name`, or `name:3` for the third visit."""

from __future__ import annotations

import os
import signal

_armed_name, _, _count = os.environ.get("BUNKO_FAILPOINT", "").partition(":")
_visits_left = int(_count) if _count.isdigit() else 1


def reach_failpoint(name: str) -> None:
    """Kill the process with SIGKILL if this failpoint is armed; otherwise do nothing."""
    global _visits_left
    if name != _armed_name:
        return
    _visits_left -= 1
    if _visits_left <= 0:
        os.kill(os.getpid(), signal.SIGKILL)
