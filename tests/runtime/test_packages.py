"""The installed packages beside the ranges that bunko names and the versions that it was tested with."""

from __future__ import annotations

import json
import platform
import re
import sys
from pathlib import Path

import pytest

from bunko.interfaces.cli.main import COMMANDS, main
from bunko.runtime.package_errors import find_package_error
from bunko.runtime.packages import CONSTRAINTS, Package, find_package, used_packages
from tests.conftest import Run


def install(folder: Path, name: str, version: str) -> None:
    """Let a folder contain the record of an installed package."""
    record = folder / f"{name}-{version}.dist-info"
    record.mkdir()
    record.joinpath("METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")


@pytest.mark.parametrize(
    ("version", "is_allowed"),
    [("2.0", True), ("2", True), ("2.4.6", True), ("2.0rc1", True), ("1.26.4", False), ("3.0.0", False), ("", False)],
)
def test_a_version_outside_the_range_is_a_problem(version: str, is_allowed: bool) -> None:
    assert (Package("numpy", version, "<3,>=2.0", "2.5.4").problem == "") is is_allowed


def test_a_version_is_newer_than_the_tested_one_by_its_numbers() -> None:
    assert Package("idna", "3.20", "", "3.9").is_newer
    assert not Package("idna", "3.9", "", "3.20").is_newer
    assert not Package("idna", "3.9", "", "").is_newer


def test_every_package_of_bunko_was_tested_and_is_in_its_range() -> None:
    packages = {package.name: package for package in used_packages()}
    assert packages.keys() >= {"click", "mcp", "numpy", "sentencepiece"}
    for package in packages.values():
        assert package.problem == ""
        assert Package(package.name, package.tested_version, package.range, "").problem == ""


@pytest.mark.parametrize(
    ("system", "machine", "end"),
    [("linux", "x86_64", "0.3"), ("darwin", "arm64", "0.3"), ("darwin", "x86_64", "0.2.3")],
)
def test_the_range_and_the_tested_version_are_those_of_the_machine(
    system: str, machine: str, end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.setattr(platform, "machine", lambda: machine)
    package = find_package("sentencepiece")
    assert package.range == f"<{end},>=0.2.2"
    assert Package("sentencepiece", package.tested_version, package.range, "").problem == ""


@pytest.mark.parametrize(
    ("failing_code", "message"),
    [
        ("import yaml; yaml.dump(1, to=2)", r"pyyaml \S+ cannot be used \(TypeError: .+ argument 'to'\)"),
        ("import yaml; yaml.remove_it()", r"pyyaml \S+ cannot be used \(AttributeError: module 'yaml' has no"),
        ("import rich.gone", r"rich \S+ cannot be used \(ModuleNotFoundError: No module named 'rich.gone'\)"),
        ("from starlette import gone", r"starlette \S+ cannot be used \(ImportError: cannot import name 'gone'"),
        ("import yaml; yaml.safe_load('[')", ""),  # wrong values are no matter of its version
        ("import nothing_of_that_name", ""),
        ("None.attribute", ""),
        ("open('/nonexistent')", ""),
    ],
)
def test_an_error_of_a_package_is_told_from_a_bug_of_ours(failing_code: str, message: str) -> None:
    code = compile(failing_code, "ours.py", "exec")
    with pytest.raises(Exception) as caught:
        exec(code, {"__name__": "bunko.ours"})
    error = find_package_error(ExceptionGroup("of a task", [caught.value]))
    assert error is None if not message else error is not None and re.match(message, error.message)
    if error is not None:
        assert error.hint == find_package(error.message.split()[0]).repair


def test_the_tested_versions_name_no_host_and_no_folder() -> None:
    for line in CONSTRAINTS.read_text("utf-8").splitlines()[2:]:
        assert re.fullmatch(r"[a-z0-9-]+(\[[a-z0-9,-]+\])?==[\w.+!]+( ; .+)?", line)


def test_doctor_names_a_package_that_another_one_has_replaced(
    run: Run, docs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("reindex", "--docs-dir", docs)
    packages = tmp_path / "packages"
    packages.mkdir()
    install(packages, "idna", "2.10")
    install(packages, "platformdirs", "4.999.0")
    monkeypatch.syspath_prepend(packages)
    doctor = run("doctor", "--docs-dir", docs)
    assert doctor.code == 1
    assert ", idna 2.10, " in doctor.out
    assert "\nFAIL packages: idna 2.10 is installed, but bunko needs idna" in doctor.out
    # With packages of today, others may be newer as well.
    assert re.search(
        r"\nNewer than the versions that were tested: (.+, )?platformdirs \(\d[\d.]+\)(, .+)?\n", doctor.out
    )
    report = json.loads(run("doctor", "--docs-dir", docs, "--json").out)
    assert report["versions"]["idna"] == "2.10"
    assert "platformdirs" in report["newer_than_tested"]


def test_doctor_prints_versions_where_there_is_no_library(run: Run, tmp_path: Path) -> None:
    doctor = run("doctor", "--docs-dir", tmp_path)
    assert doctor.code != 0
    assert re.match(r"Python 3\.\d+\.\d+, bunko [\d.]+, .*\bclick ", doctor.out)


def test_a_bug_names_the_packages_that_may_be_its_cause(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, "platformdirs", "4.999.0")
    install(tmp_path, "tokenizers", "0.21.0")  # of an extra: one that bunko itself needs would be the whole message
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(COMMANDS, "forgotten", "A command without a module.")
    with pytest.raises(ModuleNotFoundError) as bug:
        main(["forgotten"])
    notes = bug.value.__notes__
    assert any(note.startswith("platformdirs 4.999.0 is newer than ") for note in notes)
    assert any(note.startswith("tokenizers 0.21.0 is installed, but bunko needs tokenizers") for note in notes)


@pytest.mark.parametrize("language", ["en", "ja"])
def test_where_another_package_has_pinned_numpy_1_a_failure_says_so(
    language: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    install(tmp_path, "numpy", "1.26.4")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("BUNKO_DISPLAY_LANGUAGE", language)
    monkeypatch.setitem(COMMANDS, "forgotten", "A command without a module.")
    with pytest.raises(SystemExit) as end:
        main(["forgotten", "--json"])
    assert end.value.code == 22
    printed = capsys.readouterr()
    error, hint = printed.err.splitlines()
    told = "numpy 1.26.4 is installed, but bunko needs numpy<3,>=2.0"
    if language == "en":
        assert error == f"Error: {told}"
        assert hint.endswith(' install "numpy<3,>=2.0"')
    else:
        assert error == "エラー: numpy 1.26.4 が入っていますが、bunko には numpy<3,>=2.0 が必要です"
    assert json.loads(printed.out)["error"]["message"] == told
