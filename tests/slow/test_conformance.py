"""The official MCP conformance suite against our server, at the newest revision and the one that most clients speak."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.slow import corpus, npm

pytestmark = pytest.mark.slow

REVISIONS = {"2025-11-25": 30, "2026-07-28": 37}  # and how many scenarios count for each
REFUSED: dict[str, dict[str, str]] = yaml.safe_load(
    (Path(__file__).parent / "conformance" / "refused.yml").read_text(encoding="utf-8")
)
_BAD = ("FAILURE", "WARNING")


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Our server with the suite's fixtures, in a process of its own."""
    npm.require()
    docs = tmp_path_factory.mktemp("docs")
    corpus.write(docs, {"京都.md": "# 京都\n\n寺と庭。\n"})
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.slow.conformance.server", str(docs)],
        cwd=npm.ROOT,
        env=corpus.environment(),
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        port = process.stdout.readline().strip()
        assert port, "the server ended before it listened"
        yield f"http://127.0.0.1:{port}/mcp"
        assert process.poll() is None, "the server ended during the suite"
    finally:
        process.kill()
        process.communicate()


Results = dict[str, list[dict[str, Any]]]


def results(address: str, revision: str, folder: Path) -> Results:
    """Run every scenario of a revision, and return the checks of each by its name."""
    done = npm.run(
        "conformance", "server", "--url", address, "--requirements", revision, "--output-dir", folder, seconds=300
    )
    assert "=== SUMMARY ===" in done.stdout, done.stdout + done.stderr
    found = {}
    for path in folder.glob("*/checks.json"):
        name = re.sub(r"-\d{4}-\d\d-\d\dT[\d-]+Z$", "", path.parent.name).removeprefix("server-")
        found[name] = json.loads(path.read_text(encoding="utf-8"))
    return found


def required(revision: str) -> set[str]:
    """Return the scenarios that the suite's own list counts for a revision; others are run for information."""
    package = npm.FOLDER / "node_modules" / "@modelcontextprotocol" / "conformance"
    return set(yaml.safe_load((package / "requirements" / f"{revision}.yaml").read_text(encoding="utf-8"))["server"])


@pytest.mark.parametrize("revision", REVISIONS)
def test_the_official_suite_passes_but_for_what_we_refuse(revision: str, address: str, tmp_path: Path) -> None:
    found = results(address, revision, tmp_path)
    refused = REFUSED[revision]
    assert all(refused.values()), "every refusal has its reason"
    unexpected, met = [], set()
    for scenario, checks in found.items():
        for check in checks:
            if check["status"] in _BAD:
                entries = {scenario, f"{scenario}:{check['id']}"} & refused.keys()
                met |= entries
                if not entries:
                    unexpected.append(f"{scenario}:{check['id']} {check['status']}: {check.get('errorMessage')}")
    assert not unexpected, "\n".join(unexpected)
    assert met == refused.keys(), f"refused.yml lists what passes now: {sorted(refused.keys() - met)}"
    scored = required(revision)
    assert len(scored) == REVISIONS[revision]
    assert scored <= found.keys()
    for scenario in scored - refused.keys():
        # An unknown tool is an error too, so a scenario about errors could pass without the tool it is about.
        assert "Unknown tool" not in json.dumps(found[scenario]), scenario
        assert any(check["status"] == "SUCCESS" for check in found[scenario]), f"{scenario} checked nothing"
