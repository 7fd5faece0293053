"""Training makes the same bytes from the same pairs: `static.bin` too, on the CPU and with a number of steps."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.training.small_run import make_files

pytestmark = pytest.mark.models


# No checksum is named: it depends on the version of torch.
def test_two_trainings_of_as_many_steps_make_the_same_bytes(tmp_path: Path) -> None:
    options = ["--everyday", str(tmp_path / "pairs.jsonl"), "--device", "cpu", "--steps", "20", "--batch", "64"]
    first, second = (make_files(tmp_path, *options, seed=seed) for seed in (1, 2))
    assert first == second
    assert "static.bin" in first
