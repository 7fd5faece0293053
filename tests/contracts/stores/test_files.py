"""What every store promises about its place and its files."""

from __future__ import annotations

import os

from bunko import stores
from bunko.protocols import Store


def test_a_store_says_its_kind_and_where_it_is(store: Store) -> None:
    assert store.kind in stores.KINDS
    assert store.location
    assert store.files.still_exist()


def test_only_a_store_that_lasts_has_files(store: Store) -> None:
    paths = store.files.paths()
    assert bool(paths) == store.is_persistent
    assert all(store.files.contain(os.path.realpath(path)) for path in paths)
