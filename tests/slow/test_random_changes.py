"""Random settings, outages of the embedder and kills over one library end with exactly the documents of the folder.

`BUNKO_TEST_SECONDS=300` lets it run longer; `BUNKO_TEST_SEED` repeats a run.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bunko.library.open import open_library
from bunko.library.opening.paths import locate_library
from tests.cli.processes import subprocess_environment
from tests.loopback import Asked, Loopback, Reply, openai_error

pytestmark = pytest.mark.slow

WORDS = ("京都", "奈良", "サーバー", "移行", "database", "garden", "budget", "鹿", "会議", "notes")
SETTINGS = {
    "BUNKO_CHUNKER_MAX_CHUNK_CHARS": ("200", "700", "3000"),
    "BUNKO_CHUNKER_KIND": ("auto", "prose", "paragraphs", "tokens"),
    "RAG_CHUNK_SIZE": ("100", "300"),
    "BUNKO_SCANNER_FILE_EXTENSIONS": ("md", "md,txt,rst"),
    "BUNKO_SCANNER_MAX_FILE_BYTES": ("200", "20000000"),
    "BUNKO_SCANNER_EXCLUDE_DIRS": ("deep", ".git"),
    "EMBEDDING_PROVIDER": ("static", "hashing", "local", "local", "none", "gemini"),
}
# A command that needs the embedder of the moment may fail for it; nothing else may.
EMBEDDER_FAILED = 5


class Folder:
    """A folder of documents that changes at random, and what it holds."""

    def __init__(self, root: Path, rng: random.Random) -> None:
        self.root, self._rng = root, rng
        self.texts: dict[str, str] = {}
        for _ in range(30):
            self.change()

    def change(self) -> None:
        rng, names = self._rng, sorted(self.texts)
        action = rng.choice(("add", "add", "update", "delete", "move")) if len(names) > 5 else "add"
        if action == "delete":
            self._remove(rng.choice(names))
        elif action == "move":
            old = rng.choice(names)
            text = self.texts[old]
            self._remove(old)
            self._write(self._new_name(), text)
        else:
            self._write(rng.choice(names) if action == "update" else self._new_name(), self._text())

    def _new_name(self) -> str:
        folder = self._rng.choice(("", "deep/", "other/"))
        return f"{folder}{self._rng.randrange(10**6)}.{self._rng.choice(('md', 'txt'))}"

    def _text(self) -> str:
        words = [self._rng.choice(WORDS) for _ in range(self._rng.choice((10, 200)))]
        return f"# {words[0]} {self._rng.randrange(10**6)}\n\n{' '.join(words)}。\n"

    def _write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        self.texts[name] = text

    def _remove(self, name: str) -> None:
        (self.root / name).unlink()
        del self.texts[name]


def documents(docs: Path) -> dict[str, str]:
    with open_library(locate_library(docs_dir=docs, environ={}), environ={}) as library:
        tool = library.resolve_tool(None)
        uris = library.store.documents.uris(tool.id, limit=10**6)
        stored = {uri: library.store.documents.get(tool.id, uri) for uri in uris}
    return {uri: document.text for uri, document in stored.items() if document is not None}


def misbehave(service: Loopback, rng: random.Random) -> None:
    def hang(_: Asked) -> Reply:
        time.sleep(1)
        return openai_error(503, "slow")

    service.always = rng.choice((lambda _: None, lambda _: openai_error(503, "out of order"), hang))


def run(command: list[str], env: dict[str, str], rng: random.Random) -> int | None:
    """Run a command; kill it at a random moment in one of three runs, and then return None."""
    process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if rng.random() < 1 / 3:
        time.sleep(rng.uniform(0.1, 1.5))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        return None
    output, _ = process.communicate(timeout=120)
    assert "Traceback" not in output, output
    allowed = (0, EMBEDDER_FAILED) if {"--force", "reembed", "reindex"} & set(command) else (0,)
    assert process.returncode in allowed, (command, process.returncode, output)
    return process.returncode


def test_random_settings_outages_and_kills_lose_nothing(tmp_path: Path, service: Loopback) -> None:
    seed = int(os.environ.get("BUNKO_TEST_SEED", time.time_ns() % 10**6))
    rng, deadline = random.Random(seed), time.monotonic() + float(os.environ.get("BUNKO_TEST_SECONDS", 30))
    docs = tmp_path / "docs"
    docs.mkdir()
    folder = Folder(docs, rng)
    base = subprocess_environment(
        tmp_path, LMSTUDIO_BASE_URL=f"{service.address}/v1", BUNKO_RETRY_MAX_RETRIES="0",
        BUNKO_EMBEDDING_QUERY_TIMEOUT="0.3",
    )  # fmt: skip
    bunko, place = [sys.executable, "-m", "bunko"], ["--docs-dir", str(docs)]
    subprocess.run([*bunko, "search", "京都", *place], env=base, check=True, capture_output=True)
    runs = kills = 0
    while time.monotonic() < deadline:
        for _ in range(rng.randrange(4)):
            folder.change()
        misbehave(service, rng)
        chosen = rng.sample(sorted(SETTINGS), rng.randrange(4))
        env = base | {name: rng.choice(SETTINGS[name]) for name in chosen}
        command = rng.choice(
            [["search", rng.choice(WORDS)]] * 6 + [["reindex"]] * 3 + [["reindex", "--force"], ["reembed"]]
        )
        runs += 1
        kills += run([*bunko, *command, *place], env, rng) is None
    service.always = lambda _: None
    subprocess.run([*bunko, "reindex", *place], env=base, check=True, capture_output=True)
    held = documents(docs)
    assert held.items() <= folder.texts.items(), f"seed {seed}: a document that is not in the folder, or an old text"
    subprocess.run([*bunko, "reindex", "--force", *place], env=base, check=True, capture_output=True)
    assert documents(docs) == folder.texts, f"seed {seed}"
    checked = subprocess.run([*bunko, "doctor", *place], env=base, capture_output=True, text=True)
    assert checked.returncode == 0, f"seed {seed}: {checked.stdout}"
    print(f"{runs} commands, {kills} of them killed, seed {seed}")
