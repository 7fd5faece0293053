"""Start tasks on a worker, which may have another version of bunko or none.

Ray sends functions and classes of a module by name, and those that are made inside of a function by value. What is
made here is sent by value, so that a worker without bunko can say so.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def _make() -> tuple[Callable[[bytes, str, dict[str, str]], Any], type]:
    def run_on_worker(payload: bytes, version: str, versions: dict[str, str]) -> Any:
        import platform
        from importlib import import_module

        try:
            # By its name: an import statement would say that this package uses all of bunko.
            found_version = import_module("bunko").__version__
            if found_version != version:
                return f"bunko on {platform.node()} is version {found_version}, here it is version {version}"
            from bunko.ingest.cluster.tasks import run_task
        except ImportError as error:
            return f"bunko on {platform.node()} cannot be imported: {error}"
        return run_task(payload, versions)

    class WorkerProcess:
        def __init__(self, threads: int) -> None:
            import os

            os.environ["OMP_NUM_THREADS"] = str(threads)  # Ray would give it one

        def run(self, payload: bytes, version: str, versions: dict[str, str]) -> Any:
            return run_on_worker(payload, version, versions)

    return run_on_worker, WorkerProcess


run_on_worker, WorkerProcess = _make()
