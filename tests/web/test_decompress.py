"""Compressed responses, decompression bombs and garbage."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bunko.errors import FetchFailed
from bunko.sources.web.decompress import Decompressor, gunzip
from bunko.sources.web.fetch import Fetcher
from bunko.sources.web.ssrf_guard import Guard
from tests.site import Site
from tests.web.replies import compressed


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


@pytest.mark.parametrize(
    ("data", "encoding"),
    [
        (gzip.compress(b"hello", mtime=0), "gzip"),
        (gzip.compress(b"hello", mtime=0), "X-GZIP"),
        (gzip.compress(b"hel", mtime=0) + gzip.compress(b"lo", mtime=0), "gzip"),
        (gzip.compress(b"hello", mtime=0) + b"\0" * 20, "gzip"),
        (zlib.compress(b"hello"), "deflate"),
        (raw_deflate(b"hello"), "deflate"),
        (b"hello", "identity"),
        (gzip.compress(b"hello", mtime=0), "identity, gzip"),
    ],
)
def test_a_packed_page_is_unpacked(site: Site, fetcher: Fetcher, data: bytes, encoding: str) -> None:
    site.pages["/"] = compressed(data, encoding)
    assert fetcher.fetch(site.url()).content == b"hello"


@pytest.mark.parametrize("encoding", ["br", "zstd", "compress", "gzip, gzip", "gzip, br", "deflate,gzip", "nonsense"])
def test_packing_that_was_not_asked_for_is_refused(site: Site, fetcher: Fetcher, encoding: str) -> None:
    site.pages["/"] = compressed(gzip.compress(gzip.compress(b"hello", mtime=0)), encoding)
    with pytest.raises(FetchFailed, match="its encoding is"):
        fetcher.fetch(site.url())


def test_two_headers_do_not_hide_two_layers(site: Site, fetcher: Fetcher) -> None:
    headers = [("Content-Type", "text/html"), ("Content-Encoding", "gzip"), ("Content-Encoding", "gzip")]
    site.pages["/"] = (200, headers, gzip.compress(gzip.compress(b"hello", mtime=0)))
    with pytest.raises(FetchFailed, match="its encoding is 'gzip, gzip'"):
        fetcher.fetch(site.url())


@pytest.mark.parametrize(
    ("data", "encoding", "said"),
    [
        (gzip.compress(b"hello" * 1000, mtime=0)[:-12], "gzip", "ends early"),
        (zlib.compress(b"hello" * 1000)[:-3], "deflate", "ends early"),
        (b"this is not gzip", "gzip", "cannot be decompressed"),
        (gzip.compress(b"hello", mtime=0)[:-8] + b"\0" * 8, "gzip", "cannot be decompressed"),
        (b"\xff\xff\xff", "deflate", "cannot be decompressed"),
    ],
)
def test_broken_packing_is_a_failure(site: Site, fetcher: Fetcher, data: bytes, encoding: str, said: str) -> None:
    site.pages["/"] = compressed(data, encoding)
    with pytest.raises(FetchFailed, match=said):
        fetcher.fetch(site.url())


@pytest.mark.parametrize("pack", [gzip.compress, zlib.compress, raw_deflate])
def test_a_bomb_is_found_before_it_fills_the_memory(site: Site, pack: Callable[[bytes], bytes]) -> None:
    encoding = "gzip" if pack is gzip.compress else "deflate"
    site.pages["/"] = compressed(pack(b"\0" * (20 << 20)), encoding)
    with (
        Fetcher(Guard((site.host,)), max_bytes=1 << 30) as fetcher,
        pytest.raises(FetchFailed, match="200 times its size"),
    ):
        fetcher.fetch(site.url())
    with Fetcher(Guard((site.host,))) as fetcher, pytest.raises(FetchFailed, match=r"larger than|times its size"):
        fetcher.fetch(site.url())


def test_a_small_page_may_be_all_alike(site: Site) -> None:
    site.pages["/"] = compressed(gzip.compress(b" " * 900_000, mtime=0), "gzip")
    with Fetcher(Guard((site.host,))) as fetcher:
        assert len(fetcher.fetch(site.url()).content) == 900_000


def test_a_gzip_file_is_unpacked_within_a_limit() -> None:
    assert gunzip(gzip.compress(b"<urlset/>", mtime=0), 100) == b"<urlset/>"
    for data in (gzip.compress(b"x" * 101, mtime=0), b"<urlset/>", gzip.compress(b"hello", mtime=0)[:-1]):
        with pytest.raises(FetchFailed):
            gunzip(data, 100)


@given(st.binary(max_size=3000), st.sampled_from(["gzip", "deflate", ""]), st.integers(1, 50), st.integers(0, 4000))
def test_pieces_of_any_size_are_unpacked_alike(data: bytes, encoding: str, size: int, limit: int) -> None:
    compress: dict[str, Callable[[bytes], bytes]] = {"gzip": gzip.compress, "deflate": zlib.compress, "": bytes}
    body = compress[encoding](data)
    cutting = Decompressor(encoding, limit, truncate=True)
    for start in range(0, len(body), size):
        cutting.feed(body[start : start + size])
    assert cutting.content() == data[:limit]
    assert cutting.is_full == (len(data) > limit)
    whole = Decompressor(encoding, len(data))
    for start in range(0, len(body), size):
        whole.feed(body[start : start + size])
    assert whole.content() == data


@given(st.binary(max_size=300), st.sampled_from(["gzip", "deflate"]))
def test_garbage_is_never_more_than_a_failure(data: bytes, encoding: str) -> None:
    unpacker = Decompressor(encoding, 1000)
    with suppress(FetchFailed):
        unpacker.feed(b"\x1f\x8b\x08" + data if encoding == "gzip" else data)
        assert len(unpacker.content()) <= 1000
