"""What every store promises about its place and its files."""

from __future__ import annotations

import os
import pickle

from bunko import stores
from bunko.protocols import Store
from bunko.types.records import StoreAddress


def test_a_store_says_its_kind_and_where_it_is(store: Store) -> None:
    assert store.kind in stores.KINDS
    assert store.location
    assert store.engine
    assert store.files.still_exist()


def test_the_address_of_a_store_opens_the_same_library_again(store: Store) -> None:
    address: StoreAddress = pickle.loads(pickle.dumps(store.address))
    again = stores.build(*address, read_only=True)
    assert again.id == store.id
    again.close()


def test_a_store_knows_its_size(store: Store) -> None:
    assert bool(store.size()) == store.is_persistent


def test_a_change_is_not_waited_for_any_longer_than_asked(store: Store) -> None:
    assert store.wait_for_change(0.01)  # nobody can know what happened before


def test_only_a_store_on_this_machine_has_files(store: Store) -> None:
    paths = store.files.paths()
    assert bool(paths) == (store.address.server is None)
    assert all(store.files.contain(os.path.realpath(path)) for path in paths)
