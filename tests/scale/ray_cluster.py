"""Start a Ray cluster on loopback, for tests."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.scale.engines import free_port

ROOT = Path(__file__).parents[2]
_START_SECONDS = 90
# As bunko sets it for a Ray of its own: nothing listens beyond loopback.
ENVIRONMENT = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0", "RAY_AUTH_MODE": "disabled"}


def require_ray() -> None:
    """Skip the test if Ray is missing."""
    if find_spec("ray") is None or find_spec("grpc") is None:
        pytest.skip("ray is not installed here: make test-scale installs it")


class RayHead:
    """A cluster of one machine."""

    def __init__(self, process: subprocess.Popen[bytes], address: str, gcs_address: str) -> None:
        self.process, self.address, self.gcs_address = process, address, gcs_address

    def worker_processes(self) -> list[int]:
        """Return the processes that run tasks now."""
        names = {pid: process_name(pid) for pid in descendants(self.process.pid)}
        return [pid for pid, name in names.items() if name.startswith("ray::run_on_worker")]


@contextmanager
def ray_head(
    folder: Path, *options: str, prefix: Sequence[str] = (), python_path: Sequence[Path] = (ROOT,)
) -> Iterator[RayHead]:
    """Run `ray start --head` until the end of the block, with the files of Ray in a folder."""
    require_ray()
    port, client_port = free_port(), free_port()
    command = [
        *prefix, sys.executable, "-m", "ray.scripts.scripts", "start", "--head", "--block", "--num-cpus=2",
        "--node-ip-address=127.0.0.1", f"--port={port}", f"--ray-client-server-port={client_port}",
        "--include-dashboard=false", f"--temp-dir={folder}", *options,
    ]  # fmt: skip
    log = folder.with_suffix(".log")
    environment = {**os.environ, **ENVIRONMENT, "PYTHONPATH": os.pathsep.join(map(str, python_path))}
    with open(log, "wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, env=environment, start_new_session=True)
    try:
        deadline = time.monotonic() + _START_SECONDS
        while not _listens(client_port):
            if process.poll() is not None or time.monotonic() > deadline:
                pytest.fail(f"Ray did not start: {log.read_text(errors='replace')[-2000:]}")
            time.sleep(0.1)
        yield RayHead(process, f"ray://127.0.0.1:{client_port}", f"127.0.0.1:{port}")
    finally:
        processes = [*descendants(process.pid), process.pid]
        for pid in processes:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.wait()
        wait_until_gone(processes)


def descendants(pid: int) -> list[int]:
    """Return the processes that a process has started, and those that they have."""
    parents = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            parents[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
    found, new = list[int](), [pid]
    while new:
        new = [child for child, parent in parents.items() if parent in new]
        found += new
    return found


def wait_until_gone(pids: Sequence[int], seconds: float = 30) -> None:
    """Wait until processes have ended."""
    deadline = time.monotonic() + seconds
    while alive := [pid for pid in pids if _is_alive(pid)]:
        if time.monotonic() > deadline:
            pytest.fail(f"still alive: {[(pid, process_name(pid)) for pid in alive]}")
        time.sleep(0.05)


def listening_addresses(pids: Sequence[int]) -> set[str]:
    """Return the addresses, without ports, that processes listen on, as the kernel writes them."""
    inodes = set()
    for pid in pids:
        with suppress(OSError):
            for descriptor in Path(f"/proc/{pid}/fd").iterdir():
                with suppress(OSError):
                    inodes.add(str(descriptor.readlink()).removeprefix("socket:[").removesuffix("]"))
    addresses = set()
    for name in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and fields[9] in inodes:
                addresses.add(fields[1].partition(":")[0])
    return addresses


def _listens(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


def process_name(pid: int) -> str:
    """Return the name of a program, or what a process of Ray calls itself; empty if it has ended."""
    with suppress(OSError):
        command = Path(f"/proc/{pid}/cmdline").read_bytes().partition(b"\0")[0].decode(errors="replace")
        return command.rpartition("/")[2].strip()
    return ""


def _is_alive(pid: int) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False
