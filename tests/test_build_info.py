"""What an index was built with: what is stored is read, compared and kept."""

from __future__ import annotations

import json

from bunko.ingest.chunker_settings import ChunkerSettings
from bunko.types.build_info import NOT_BUILT, BuildInfo


def test_a_stored_record_is_read_and_written_unchanged() -> None:
    stored = {"chunker": ChunkerSettings().to_json(), "embedder": "static:1", "grams": 1, "later": [1], "words": 1}
    built = BuildInfo.from_json(stored)
    assert (built.words, built.grams, built.tokenizer, built.embedder) == (1, 1, None, "static:1")
    assert json.dumps(built.to_json()) == json.dumps(stored)
    assert BuildInfo.from_json({}) == NOT_BUILT
    assert NOT_BUILT.to_json() == {}


def test_only_parts_that_are_compared_can_differ() -> None:
    built = BuildInfo(words=1, grams=1, chunker={"kind": "auto"}, embedder="static:1", other={"later": 1})
    assert built.differences(built) == set()
    assert built.differences(BuildInfo(words=2, grams=1, chunker={"kind": "auto"})) == {"words"}
    assert built.differences(BuildInfo(chunker={"kind": "tokens"}, tokenizer="pieces-1")) == {"chunker", "tokenizer"}


def test_a_record_of_the_wrong_type_differs_from_every_part() -> None:
    built = BuildInfo.from_json({"words": "of long ago"})
    assert built.differences(BuildInfo(words=1)) == {"words"}
    assert built.to_json() == {"words": "of long ago"}


def test_chunker_settings_are_recorded_as_json_reads_them_back() -> None:
    stored = ChunkerSettings("tokens", heading_levels=(1, 2)).to_json()
    assert json.loads(json.dumps(stored)) == stored
    assert stored.keys() == set(ChunkerSettings.__slots__)
