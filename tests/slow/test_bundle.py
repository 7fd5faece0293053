"""The bundle for desktop assistants: its manifest is valid, and what is packed is enough to serve."""

from __future__ import annotations

import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest

from tests.slow import corpus, npm, serving

pytestmark = pytest.mark.slow


def test_the_manifest_is_valid() -> None:
    done = npm.run("mcpb", "validate", npm.ROOT / "mcpb" / "manifest.json")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.skipif(not shutil.which("make"), reason="the bundle is made by make")
def test_a_packed_bundle_can_serve(tmp_path: Path) -> None:
    npm.require()
    done = subprocess.run(["make", "mcpb"], cwd=npm.ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    with zipfile.ZipFile(npm.ROOT / "dist" / "bunko.mcpb") as bundle:
        names = bundle.namelist()
        bundle.extractall(tmp_path / "bundle")
    assert "manifest.json" in names
    assert not [name for name in names if "__pycache__" in name or name.startswith(("tests", ".venv"))]
    docs = tmp_path / "docs"
    docs.mkdir()
    corpus.write(docs, {"京都.md": "# 京都\n\n寺と庭。\n"})
    with serving.Piped(docs, PYTHONPATH=str(tmp_path / "bundle" / "src")) as server:
        assert server.call("search", query="寺")["structuredContent"]["results"][0]["citation"].startswith("京都.md:L")
