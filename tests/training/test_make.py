"""Training makes the same bytes from the same pairs: every file but `static.bin`, which `tests/models` makes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.training.small_run import make_files

pytestmark = pytest.mark.slow  # it starts programs

# Who changes a script on purpose changes its checksum here. `pieces.model` and `pieces.bin` have none: theirs depend on
# the version of sentencepiece.
CHECKSUMS = {
    "bridge.bin": "5be215e7b962d2e37a46b520741d28915dd199dc3d76045b5f6c8f7420dfcf69",
    "light_words.tsv": "4df6f45c0bc19686742fab125b15eb2cff569ba0b830bfd5abb8c4621e94b9ab",
    "loanwords.tsv": "9af1e21935cfd1766149f53620ac0d40611936578d68ea787f224f9b819c8f3e",
}


def test_two_runs_make_the_same_bytes_whatever_the_order_of_sets(tmp_path: Path) -> None:
    first, second = (make_files(tmp_path, "--no-static", seed=seed) for seed in (1, 2))
    assert first == second
    assert sorted(first) == ["bridge.bin", "light_words.tsv", "loanwords.tsv", "pieces.bin", "pieces.model"]
    assert CHECKSUMS.items() <= first.items()
