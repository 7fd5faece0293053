"""A real PostgreSQL server with a data folder of its own, on a socket and on loopback."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import psycopg
import pytest

from bunko.types.records import DatabaseServer

MIN_VERSION = 15
PASSWORD = "right-horse-battery"
_START_SECONDS = 60.0


def find_programs() -> Path:
    """Return the folder of the newest initdb and postgres, or skip the test."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: float(path.parent.name), reverse=True)
    if found := shutil.which("initdb"):
        folders.append(Path(found).resolve().parent)
    for folder in folders:
        if (folder / "initdb").exists() and (folder / "postgres").exists():
            version = subprocess.run([folder / "postgres", "--version"], capture_output=True, text=True, check=True)
            if float(version.stdout.split()[2].partition(".")[0]) >= MIN_VERSION:
                return folder
    pytest.skip(f"PostgreSQL {MIN_VERSION} or newer is not installed (Debian: apt install postgresql)")


class PostgresServer:
    """A server that tests start, stop and kill."""

    def __init__(self, *, primary: PostgresServer | None = None, durable: bool = False) -> None:
        self._programs, self._durable = find_programs(), durable
        # A short path: the address of a socket has at most 107 bytes.
        self.folder = Path(tempfile.mkdtemp(prefix="bunko-pg-"))
        self.port = _free_port()
        # initdb refuses to run as root.
        self._user: dict[str, Any] = {"user": "postgres", "group": "postgres"} if os.geteuid() == 0 else {}
        self._process: subprocess.Popen[bytes] | None = None
        self._numbers = count(1)
        if self._user:
            try:
                shutil.chown(self.folder, **self._user)
            except LookupError:
                pytest.skip("PostgreSQL refuses to run as root, and there is no user postgres")
        if primary is not None:
            source = f"host={primary.folder} port={primary.port} user=postgres"
            self._run("pg_basebackup", "-D", self._data, "-d", source, "-R", "-c", "fast", "--no-sync")
            self.start()
            return
        password_file = self.folder / "password"
        password_file.write_text(PASSWORD)
        if self._user:
            shutil.chown(password_file, **self._user)
        arguments = ["--auth-local=trust", "--auth-host=scram-sha-256", "--username=postgres", "--encoding=UTF8"]
        self._run("initdb", "-D", self._data, *arguments, "--locale=C.UTF-8", f"--pwfile={password_file}", "--no-sync")
        self.start()

    @property
    def pid(self) -> int:
        """Return the id of the server's first process."""
        assert self._process is not None
        return self._process.pid

    @property
    def _data(self) -> Path:
        return self.folder / "data"

    def _run(self, program: str, *arguments: str | Path) -> None:
        command = [str(self._programs / program), *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, cwd=self.folder, check=False, **self._user)
        assert done.returncode == 0, done.stderr

    def start(self) -> None:
        """Start the server, and wait until it answers."""
        deadline = time.monotonic() + _START_SECONDS
        while True:
            self._process = self._start_process()
            while self._process.poll() is None and time.monotonic() < deadline:
                try:
                    psycopg.connect(self.superuser_url("postgres"), connect_timeout=5).close()
                    return
                except psycopg.OperationalError:
                    time.sleep(0.02)
            # The processes of a killed server need a moment to end; until then, a new one refuses to start.
            assert time.monotonic() < deadline, (self.folder / "log").read_text()

    def _start_process(self) -> subprocess.Popen[bytes]:
        # Without fsync by default: the tests kill processes, not the machine.
        settings = {
            "unix_socket_directories": str(self.folder),
            "listen_addresses": "127.0.0.1",
            "port": str(self.port),
            "fsync": "on" if self._durable else "off",
            "max_connections": "60",
            "shared_buffers": "32MB",
        }
        options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        with open(self.folder / "log", "ab") as log:
            return subprocess.Popen(
                [self._programs / "postgres", "-D", self._data, *options],
                stdout=log,
                stderr=log,
                cwd=self.folder,
                **self._user,
            )

    def stop(self, *, immediately: bool = False) -> None:
        """Stop the server; open connections are lost. If `immediately`, the next start recovers its files."""
        assert self._process is not None
        self._process.send_signal(signal.SIGQUIT if immediately else signal.SIGINT)
        self._process.wait(_START_SECONDS)

    def kill(self) -> None:
        """Kill the server as the system would."""
        assert self._process is not None
        self._process.kill()
        self._process.wait(_START_SECONDS)

    def remove(self) -> None:
        """Stop the server and remove its data."""
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    @contextmanager
    def standby(self) -> Iterator[PostgresServer]:
        """Run a server that follows this one, and that can only be read."""
        standby = PostgresServer(primary=self)
        try:
            yield standby
        finally:
            standby.remove()

    def superuser_url(self, database: str) -> str:
        """Return the URL of the superuser, on the socket."""
        return f"postgresql://postgres@/{database}?host={self.folder}&port={self.port}"

    def execute(self, statement: str, database: str = "postgres") -> list[tuple[Any, ...]]:
        """Run a statement as the superuser, and return its rows."""
        with psycopg.connect(self.superuser_url(database), autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def new_library(self, *, pool_size: int = 8) -> DatabaseServer:
        """Return the place of a library that does not exist yet, in a schema of its own."""
        return DatabaseServer(self.superuser_url("postgres"), f"library_{next(self._numbers)}", pool_size=pool_size)

    def tcp_url(self, user: str = "postgres", database: str = "postgres") -> str:
        """Return a URL on loopback, where the server asks for a password."""
        return f"postgresql://{user}@127.0.0.1:{self.port}/{database}"


def environment(server: DatabaseServer) -> dict[str, str]:
    """Return the settings that open a library on a server, as environment variables."""
    values = {"BUNKO_STORAGE_KIND": "postgres", "BUNKO_STORAGE_URL": server.url, "BUNKO_STORAGE_SCHEMA": server.schema}
    return values | ({"BUNKO_STORAGE_PASSWORD": server.password} if server.password else {})


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])
