"""Connect to a Ray cluster, or start one of our own, and run tasks on it."""

from __future__ import annotations

import logging
import os
import pickle
import secrets
import signal
import socket
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any
from urllib.parse import urlsplit

from bunko.errors import BunkoError, ClusterError, SettingsError
from bunko.ingest.cluster.tasks import EmbeddedTexts, PreparedBatch, Task, component_versions
from bunko.ingest.cluster.worker import WorkerProcess, run_on_worker
from bunko.ingest.preparer import CANCEL_SECONDS
from bunko.runtime.installation import install_command
from bunko.runtime.temporary_files import TemporaryFolder
from bunko.runtime.workers import default_worker_count

_CONNECT_SECONDS = 5.0
# A cluster starts a process for each client, at a port that another process may take at that moment. Depending on
# when that process ends, Ray says so, or fails itself while it looks at the process.
_MAX_ATTEMPTS = 5
_CLIENT_PROCESS_FAILED = ("Starting Ray client server failed", "psutil.NoSuchProcess", "psutil.ZombieProcess")
# How often an import that waits checks that the cluster is still there, and how long it may be away, as in a restart.
_CHECK_SECONDS, _MAX_SILENCE_SECONDS = 3.0, 20.0
# Machines may join or leave during an import.
_CPU_COUNT_SECONDS = 10.0
# Ray retries what a dead worker or machine was doing; more than once, it may be the document that kills it.
_MAX_RETRIES = 1
# Results that wait for their turn; Ray writes what exceeds this to the disk.
_OBJECT_STORE_BYTES = 512 * 1024 * 1024
# Ray adds the paths of its sockets to the folder, and a path of a socket has at most 103 bytes on macOS.
_MAX_FOLDER_LENGTH = 40
_CONNECT_HINT = (
    "Check that it runs with the versions of Ray and Python of this machine. The port in ray://HOST:PORT is that of the"
    " Ray client, 10001 by default."
)
_SAME_VERSIONS_HINT = "Install the same versions of bunko and its packages on every machine of the cluster."


class WorkerLost(Exception):
    """The process or the machine that ran a task has died."""


class Cluster:
    """The workers of a Ray cluster."""

    def __init__(self, ray: Any, name: str, address: tuple[str, int], workers: int | None) -> None:
        self._ray, self._name, self._address, self._workers = ray, name, address, workers
        self._answered_at = self._checked_at = time.monotonic()
        self._is_lost = False
        self._function = ray.remote(run_on_worker)
        self._cpus, self._counted_at = 0, 0.0
        if not self._count_cpus():
            raise ClusterError(
                f"{name} has no CPU for tasks", hint="Add a machine with `ray start --address=HOST:PORT`."
            )

    def max_tasks(self) -> int:
        """Return how many tasks to have in flight: for each CPU one that runs, and one that waits."""
        if self._workers:
            return self._workers
        if time.monotonic() - self._counted_at > _CPU_COUNT_SECONDS:
            self._count_cpus()
        return 2 * self._cpus

    def submit(self, task: Task) -> Any:
        """Start a task on any worker, and return a reference to its result."""
        with self._translated_errors():
            return self._function.options(num_cpus=1, max_retries=_MAX_RETRIES).remote(*_arguments(task))

    def start_models(self) -> ModelProcesses:
        """Start processes for a large model: one for each free GPU, else one for each machine."""
        with self._translated_errors():
            gpus = int(self._ray.available_resources().get("GPU", 0))
            machines = [node for node in self._ray.nodes() if node["Alive"]]
            threads = max(self._cpus // max(len(machines), 1), 1)
            # Without a claim on CPUs: preparing documents needs them, and a model would keep one for the whole import.
            options = {"num_cpus": 0, "num_gpus": 1 if gpus else 0, "scheduling_strategy": "SPREAD"}
            worker = self._ray.remote(WorkerProcess).options(max_restarts=_MAX_RETRIES, **options)
            return ModelProcesses(self, [worker.remote(threads) for _ in range(gpus or len(machines) or 1)])

    def wait(self, reference: Any, is_cancelled: Callable[[], bool]) -> bool:
        """Wait for a result; return False if it is cancelled before."""
        with self._translated_errors():
            while not self._ray.wait([reference], timeout=CANCEL_SECONDS)[0]:
                if is_cancelled():
                    return False
                self._check_connection()
            return True

    def result(self, reference: Any) -> PreparedBatch | EmbeddedTexts:
        """Return a result; raise WorkerLost if the worker has died, and ClusterError if it must not be used."""
        with self._translated_errors():
            answer: PreparedBatch | EmbeddedTexts | str = self._ray.get(reference)
        if isinstance(answer, str):
            raise ClusterError(f"A worker cannot be used: {answer}", hint=_SAME_VERSIONS_HINT)
        return answer

    def cancel(self, references: Sequence[Any]) -> None:
        """Stop tasks whose results nobody needs."""
        for reference in () if self._is_lost else references:
            with suppress(Exception):  # it may be finished, or the cluster gone
                self._ray.cancel(reference)

    def _check_connection(self) -> None:
        """Raise an error if the cluster is gone: Ray would end this process after a minute."""
        now = time.monotonic()
        if now - self._checked_at < _CHECK_SECONDS:
            return
        self._checked_at = now
        try:
            socket.create_connection(self._address, timeout=_CONNECT_SECONDS).close()
            self._answered_at = now
        except OSError as error:
            if now - self._answered_at > _MAX_SILENCE_SECONDS:
                raise self._lost_error(error) from error

    def _lost_error(self, error: Exception) -> ClusterError:
        self._is_lost = True
        return ClusterError(
            f"{self._name} stopped answering: {_short_reason(error)}",
            hint="What was imported is kept. Check the cluster, then run the command again.",
            is_lost=True,
        )

    def _count_cpus(self) -> int:
        with self._translated_errors():
            self._cpus = int(self._ray.cluster_resources().get("CPU", 0))
        self._counted_at = time.monotonic()
        return self._cpus

    @contextmanager
    def _translated_errors(self) -> Iterator[None]:
        errors = self._ray.exceptions
        lost = (
            errors.WorkerCrashedError, errors.OutOfMemoryError, errors.NodeDiedError, errors.ObjectLostError,
            errors.RayActorError,
        )  # fmt: skip
        try:
            yield
        except errors.RayTaskError:
            raise  # a bug in the code of the task
        except lost as error:
            raise WorkerLost from error
        except (errors.RayError, ConnectionError) as error:
            raise self._lost_error(error) from error


class ModelProcesses:
    """Processes of a cluster that each hold a large model."""

    def __init__(self, cluster: Cluster, processes: Sequence[Any]) -> None:
        self._cluster, self._processes, self._count = cluster, processes, 0

    def submit(self, task: Task) -> Any:
        """Give a task to the next process, and return a reference to its result."""
        self._count += 1
        process = self._processes[self._count % len(self._processes)]
        return process.run.options(max_task_retries=_MAX_RETRIES).remote(*_arguments(task))


def _arguments(task: Task) -> tuple[bytes, str, dict[str, str]]:
    return (
        pickle.dumps(task, protocol=pickle.HIGHEST_PROTOCOL),
        import_module("bunko").__version__,
        component_versions(),
    )


@contextmanager
def connect(on: str, workers: int | None) -> Iterator[Cluster]:
    """Connect to the Ray that `on` names: `ray` starts one for this import, the others are there already."""
    name = _check_place(on)
    if find_spec("ray") is None or (on.startswith("ray://") and find_spec("grpc") is None):
        raise ClusterError("The package ray is not installed", hint=f"Install it with: {install_command('ray')}.")
    if on != "ray":
        _check_reachable(os.environ.get("RAY_ADDRESS", "") if on == "ray:auto" else on, name)
    with ExitStack() as stack:
        stack.enter_context(_changed_environment(is_own=on == "ray"))
        stack.enter_context(_restored_sigterm())
        import ray

        if not ray.is_initialized():
            folder = TemporaryFolder("bunko-ray-")
            stack.callback(folder.cleanup)
            stack.push(partial(_disconnect, ray))
            _start(ray, on, name, workers, str(folder.path))
        if ray.util.client.ray.is_connected():
            parts = urlsplit(on)
            address = (parts.hostname or "", parts.port or 0)
        else:
            host, _, port = ray.get_runtime_context().gcs_address.rpartition(":")
            address = (host, int(port))
        yield Cluster(ray, name, address, None if on == "ray" else workers)


def _check_place(on: str) -> str:
    """Return what messages call the cluster; raise SettingsError if it is none."""
    if on == "ray":
        return "Ray on this machine"
    if on == "ray:auto":
        return "The Ray cluster of this machine"
    try:
        parts = urlsplit(on)
        if parts.scheme == "ray" and parts.hostname and parts.port and not parts.path.strip("/"):
            return f"The Ray cluster at {parts.hostname}:{parts.port}"
    except ValueError:
        pass
    raise SettingsError(
        f"An import cannot run on {on!r}",
        hint="Use local, ray for a Ray of its own, ray:auto for the cluster of this machine, or ray://HOST:10001.",
    )


def _check_reachable(address: str, name: str) -> None:
    """Raise an error if nothing answers at an address: Ray itself would try for minutes."""
    try:
        parts = urlsplit(address if "://" in address else f"//{address}")
        if parts.hostname and parts.port:
            socket.create_connection((parts.hostname, parts.port), timeout=_CONNECT_SECONDS).close()
    except ValueError:
        return  # Ray says what is wrong with it
    except OSError as error:
        raise ClusterError(f"{name} cannot be reached: {error.strerror or error}", hint=_CONNECT_HINT) from error


def _start(ray: Any, on: str, name: str, workers: int | None, folder: str) -> None:
    options: dict[str, Any] = {"address": on, "log_to_driver": False, "logging_level": logging.ERROR}
    logging.getLogger("ray").setLevel(logging.ERROR)  # that of a client ignores `logging_level`
    if on == "ray:auto":
        options["address"] = "auto"
    elif on == "ray":
        options |= {
            "address": "local",
            "num_cpus": workers or default_worker_count(),
            "include_dashboard": False,
            "object_store_memory": _OBJECT_STORE_BYTES,
            "_node_ip_address": "127.0.0.1",
        }
        if len(folder) <= _MAX_FOLDER_LENGTH:
            options["_temp_dir"] = folder
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for attempt in range(_MAX_ATTEMPTS):
            try:
                ray.init(**options)
                return
            except Exception as error:  # Ray raises errors of many kinds
                is_temporary = any(reason in str(error) for reason in _CLIENT_PROCESS_FAILED)
                if attempt == _MAX_ATTEMPTS - 1 or not is_temporary:
                    raise ClusterError(f"{name} cannot be used: {_short_reason(error)}", hint=_CONNECT_HINT) from error
                with suppress(Exception):
                    ray.shutdown()


def _disconnect(ray: Any, _type: object, error: BaseException | None, _traceback: object) -> None:
    if isinstance(error, ClusterError) and error.is_lost:
        return  # Ray would wait for the cluster, and then end this process before it can print the error
    with warnings.catch_warnings(), suppress(Exception):
        warnings.simplefilter("ignore")
        ray.shutdown()


@contextmanager
def _changed_environment(*, is_own: bool) -> Iterator[None]:
    """Set what Ray reads from the environment: no usage statistics, and an own Ray on loopback only."""
    # Ray would start a cluster of its own when it has lost its connection.
    values = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ENABLE_AUTO_CONNECT": "0"}
    if is_own:
        # Ray listens on all interfaces otherwise. It has this name because loopback is its default on those systems.
        values["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
        # Other users of this machine can reach loopback too, and whoever reaches Ray can run code.
        values |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    previous = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in previous.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextmanager
def _restored_sigterm() -> Iterator[None]:
    """Restore the handler of SIGTERM, which Ray replaces."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handler = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, handler)


def _short_reason(error: BaseException) -> str:
    if isinstance(error, BunkoError):
        return error.message
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    # Ray may add the traceback of another process, whose last line says what went wrong.
    return lines[-1 if "Traceback" in str(error) else 0].rstrip(".:")
