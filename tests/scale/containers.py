"""The services of deploy/compose.yaml as processes on loopback, driven by the commands that an operator types.

There is no Docker where bunko is tested. So each service runs without its container: its own command, environment,
secrets, volumes and health check, all read from the file. Only places are replaced: folders for the paths of volumes,
and ports of loopback for the names of services.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.scale.postgres_server import PostgresServer, find_programs
from tests.slow import corpus

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
_SERVER_PORT, _SITE_PORT = 8765, 8080
_HEALTHY_SECONDS = 120.0


class Deployment:
    """What `docker compose -f deploy/compose.yaml` works on."""

    def __init__(self, folder: Path) -> None:
        self.services: dict[str, dict[str, Any]] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
        self._caddy, self._folder = _find_caddy(self.services["proxy"]["image"]), folder
        ports = _free_ports(len(self.services) + 1)
        self.ports = dict(zip(self.services, ports, strict=False))
        self.tls_port = ports[-1]
        self.documents, self.secrets = folder / "documents", folder / "secrets"
        self._postgres: PostgresServer | None = None
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._outdated: set[str] = set()  # services that run an older image
        for name in ("documents", "bin", "logs"):
            (folder / name).mkdir()
        self._write_programs()
        shutil.copy(DEPLOY / "create-secrets.sh", folder)
        subprocess.run(["sh", folder / "create-secrets.sh"], check=True, stdout=subprocess.DEVNULL)

    def do(self, commands: str) -> str:
        """Run commands of an operator, one a line, and return what the last one prints."""
        output = ""
        for line in filter(None, map(str.strip, commands.splitlines())):
            output = self._do(shlex.split(line))
        return output

    def _do(self, words: list[str]) -> str:
        if words[:3] == ["docker", "volume", "rm"]:
            return self._remove_volume(words[3].removeprefix("bunko_"))
        assert words[:4] == ["docker", "compose", "-f", "deploy/compose.yaml"], words
        verb, *arguments = words[4:]
        environ: dict[str, str] = {}
        while arguments and arguments[0].startswith("-"):
            option = arguments.pop(0)
            if option in ("-e", "--env"):
                name, _, value = arguments.pop(0).partition("=")
                environ[name] = value
            assert option in ("-e", "--env", "--build", "--detach", "--wait", "--no-deps", "--rm", "-T"), option
        match verb:
            case "build":
                self._outdated = {name for name, service in self.services.items() if "bunko:" in service["image"]}
            case "up":
                for name in arguments or self.services:
                    self._bring_up(name, with_needed="--no-deps" not in words)
            case "down" | "stop":
                for name in arguments or [*reversed(self._processes), "postgres"]:
                    self._stop(name)
            case "restart":
                for name in arguments:
                    self._stop(name)
                    self._start(name)
            case "exec" | "run":
                name, *command = arguments
                if verb == "run":
                    command = [*self.services[name].get("entrypoint", ["bunko"]), *command]
                return self._run(name, command, environ)
            case _:
                raise AssertionError(words)
        return ""

    def _bring_up(self, name: str, *, with_needed: bool) -> None:
        """Start a service after those that it needs, or again if its image is a new one."""
        if with_needed:
            for needed in self.services[name].get("depends_on", {}):
                self._bring_up(needed, with_needed=True)
        if name in self._outdated:
            self._outdated.remove(name)
            self._stop(name)
        self._start(name)
        deadline = time.monotonic() + _HEALTHY_SECONDS
        while not self.is_healthy(name):
            assert time.monotonic() < deadline, self.log_path(name).read_text()
            time.sleep(0.1)

    def _start(self, name: str) -> None:
        if name == "postgres":
            self._start_postgres()
            return
        if name in self._processes:
            return
        if name == "proxy":
            command = [self._caddy, "run", "--adapter", "caddyfile", "--config", str(self._write_caddyfile())]
        else:
            service = self.services[name]
            command = [*service.get("entrypoint", ["bunko"]), *service["command"]]
        with open(self.log_path(name), "ab") as log:
            self._processes[name] = subprocess.Popen(
                [self._local(name, word) for word in command],
                env=self._environ(name), stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip

    def _start_postgres(self) -> None:
        if self._postgres is not None:
            if not self.is_healthy("postgres"):
                self._postgres.start()
            return
        self._postgres = PostgresServer(durable=True)
        password = (self.secrets / "postgres_password").read_text()
        self._postgres.execute(f"CREATE ROLE bunko SUPERUSER LOGIN PASSWORD '{password}'")
        self._postgres.execute("CREATE DATABASE bunko OWNER bunko")

    def _stop(self, name: str) -> None:
        """End a service as Docker does, in the time that it has."""
        if name == "postgres":
            if self._postgres is not None:
                self._postgres.stop()
            return
        process = self._processes.pop(name, None)
        if process is None:
            return
        process.terminate()
        process.wait(_seconds(self.services[name]["stop_grace_period"]))
        _kill_group(process)

    def _remove_volume(self, name: str) -> str:
        assert name == "postgres"
        assert self._postgres is not None
        self._postgres.remove()
        self._postgres = None
        return ""

    def lose_database(self) -> None:
        """Destroy the server of the database and its volume."""
        assert self._postgres is not None
        self._postgres.kill()
        shutil.rmtree(self._postgres.folder / "data" / "base")

    def is_healthy(self, name: str) -> bool:
        """Run the health check of a service."""
        test = self.services[name]["healthcheck"]["test"]
        assert test[0] == "CMD"
        return self._execute(name, test[1:], {}).returncode == 0

    def _run(self, name: str, command: list[str], environ: dict[str, str]) -> str:
        done = self._execute(name, command, environ)
        assert done.returncode == 0, (command, done.stdout, done.stderr)
        return done.stdout

    def _execute(self, name: str, command: list[str], environ: dict[str, str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self._local(name, word) for word in command],
            env=self._environ(name) | environ, capture_output=True, text=True, encoding="utf-8", check=False,
        )  # fmt: skip

    def _environ(self, name: str) -> dict[str, str]:
        """Return the environment of a service, and what its image has."""
        own = self.services[name].get("environment", {})
        values = {key: self._local(name, str(value)) for key, value in own.items()}
        path = os.pathsep.join([str(self._folder / "bin"), str(find_programs()), os.environ["PATH"]])
        if self._postgres is not None:
            values |= {"PGHOST": str(self._postgres.folder), "PGPORT": str(self._postgres.port)}
        values |= {"PATH": path, "HOME": str(self._folder), "XDG_DATA_HOME": str(self.volume("certificates"))}
        return corpus.environment(**values)

    def _local(self, name: str, text: str) -> str:
        """Replace the places in a container by those on this machine."""
        service = self.services[name]
        for volume in service.get("volumes", []):
            source, target = re.sub(r"\$\{[^}]*\}", "./documents", volume).removesuffix(":ro").split(":")
            if source == "./documents" or "/" not in source:
                text = text.replace(target, str(self.documents if "/" in source else self.volume(source)))
        text = text.replace("/run/secrets", str(self.secrets))
        if name == "proxy":
            text = text.replace(str(_SITE_PORT), str(self.ports["proxy"]))
            for server in ("bunko1", "bunko2"):
                text = text.replace(f"{server}:{_SERVER_PORT}", f"127.0.0.1:{self.ports[server]}")
        else:
            text = text.replace(str(_SERVER_PORT), str(self.ports[name])).replace("0.0.0.0", "127.0.0.1")
            if self._postgres is not None:
                text = text.replace("@postgres/", f"@127.0.0.1:{self._postgres.port}/")
        return text.replace("$$", "$")  # as Compose writes a dollar sign

    def volume(self, name: str) -> Path:
        """Return the folder of a volume."""
        path = self._folder / "volumes" / name
        path.mkdir(parents=True, exist_ok=True)
        return path

    def backups(self) -> list[Path]:
        """Return the files of the backup job, oldest first."""
        return sorted(self.volume("backups").glob("bunko-*.zip"))

    def log_path(self, name: str) -> Path:
        """Return what a service has printed."""
        return self._folder / "logs" / name

    def _write_programs(self) -> None:
        for name, module in (("bunko", "-m bunko"), ("python", "")):
            program = self._folder / "bin" / name
            program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {module} "$@"\n')
            program.chmod(0o755)

    def _write_caddyfile(self) -> Path:
        """Write the Caddyfile with ports of loopback, and the same site with a certificate of Caddy's own."""
        text = self._local("proxy", (DEPLOY / "Caddyfile").read_text())
        options = "\tdefault_bind 127.0.0.1\n\tlocal_certs\n\tskip_install_trust\n\tauto_https disable_redirects\n"
        text = text.replace("\tadmin off\n", f"\tadmin off\n{options}")
        site = f":{self.ports['proxy']} {{"
        assert site in text
        path = self._folder / "Caddyfile"
        path.write_text(text.replace(site, f"https://localhost:{self.tls_port}, {site}"))
        return path

    def remove(self) -> None:
        """End everything."""
        for process in self._processes.values():
            _kill_group(process)
        if self._postgres is not None:
            self._postgres.remove()


def _find_caddy(image: str) -> str:
    """Return a Caddy of the version in an image, or skip the test."""
    version = image.partition(":")[2].partition("-")[0]
    path = shutil.which("caddy", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if path is not None:
        output = subprocess.run([path, "version"], capture_output=True, text=True, check=True).stdout
        if output.startswith(f"v{version} "):
            return path
    pytest.skip(f"Caddy {version} is not installed: make test-scale installs it")


def _seconds(duration: str) -> float:
    """Return the seconds of a duration such as 30s or 1m."""
    return float(duration[:-1]) * {"s": 1, "m": 60}[duration[-1]]


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    finally:
        process.wait()


def _free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [int(listener.getsockname()[1]) for listener in sockets]
    for listener in sockets:
        listener.close()
    return ports
