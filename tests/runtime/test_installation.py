"""Hints name the command of the program that installed bunko."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from bunko.runtime.installation import install_command
from bunko.runtime.packages import Package
from tests.conftest import Run


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "venvs" / "bunko"
    folder.mkdir(parents=True)
    monkeypatch.setattr(sys, "prefix", str(folder))
    return folder


@pytest.mark.parametrize(
    ("requirements", "extra", "package"),
    [
        ('{ name = "bunko" }', 'uv tool install "bunko[gemini]"', "uv tool install bunko --with lxml"),
        (
            '{ name = "bunko", extras = ["code"] }, { name = "bunko-toy" }',
            'uv tool install "bunko[code,gemini]" --with bunko-toy',
            'uv tool install "bunko[code]" --with bunko-toy --with lxml',
        ),
        (
            '{ name = "bunko", directory = "/src/my bunko" }',
            'uv tool install "bunko[gemini] @ file:///src/my%20bunko"',
            'uv tool install "bunko @ file:///src/my%20bunko" --with lxml',
        ),
    ],
)
def test_uv_installs_a_tool_anew_with_what_it_had(
    environment: Path, requirements: str, extra: str, package: str
) -> None:
    (environment / "uv-receipt.toml").write_text(f"[tool]\nrequirements = [{requirements}]\n", "utf-8")
    assert install_command("gemini") == extra
    assert install_command(package="lxml") == package
    again = install_command(package="idna==3.20", again=True)
    assert again == package.replace("install ", "install --reinstall-package idna ").replace("lxml", "idna==3.20")


def test_a_receipt_that_nobody_can_read_costs_only_what_it_says(environment: Path) -> None:
    (environment / "uv-receipt.toml").write_text("[tool", "utf-8")
    assert install_command("gemini") == 'uv tool install "bunko[gemini]"'


def test_pipx_runs_pip_in_the_environment_of_the_program(environment: Path) -> None:
    (environment / "pipx_metadata.json").write_text("{}", "utf-8")
    assert install_command("gemini") == 'pipx runpip bunko install "bunko[gemini]"'
    assert install_command(package="lxml") == "pipx runpip bunko install lxml"
    again = install_command(package="idna==3.20", again=True)
    assert again == 'pipx runpip bunko install --force-reinstall "idna==3.20"'


@pytest.mark.parametrize(
    ("installer", "command", "again"),
    [("pip", "pip install", "--force-reinstall"), ("uv", "uv pip install", "--reinstall-package idna")],
)
def test_a_package_is_installed_by_what_installed_bunko(
    installer: str, command: str, again: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = tmp_path / "bunko-0.1.0.dist-info"
    record.mkdir()
    record.joinpath("METADATA").write_text("Metadata-Version: 2.1\nName: bunko\nVersion: 0.1.0\n", "utf-8")
    record.joinpath("INSTALLER").write_text(f"{installer}\n", "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    assert install_command("gemini") == f'{command} "bunko[gemini]"'
    assert Package("idna", "2.10", "<4,>=3.18", "3.20").repair == f'Install it with: {command} "idna<4,>=3.18"'
    assert Package("idna", "3.19", "", "3.20").repair == f'Install it again with: {command} "idna==3.20"'
    assert Package("idna", "3.20", "", "3.20").repair == f'Install it again with: {command} {again} "idna==3.20"'


def test_a_command_names_it_in_both_languages(environment: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    (environment / "pipx_metadata.json").write_text("{}", "utf-8")
    monkeypatch.setitem(sys.modules, "openai", None)
    assert 'pipx runpip bunko install "bunko[openai]"' in run("embedders").out
    monkeypatch.setenv("LANG", "ja_JP.UTF-8")
    assert 'pipx runpip bunko install "bunko[openai]"' in run("embedders").out
