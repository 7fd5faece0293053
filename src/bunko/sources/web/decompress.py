"""Compressed bytes go in, plain bytes within a limit come out: a bomb is found before it is unpacked."""

from __future__ import annotations

import zlib

from bunko.errors import FetchFailed

# Text seldom packs better than 1 to 30, and deflate cannot do more than 1 to 1030. Small pages may be all alike.
_MAX_RATIO = 200
_SMALL_BYTES = 1 << 20

ENCODINGS = "gzip, deflate"  # what the standard library unpacks
_WINDOW_BITS = {"gzip": 16 + zlib.MAX_WBITS, "x-gzip": 16 + zlib.MAX_WBITS, "deflate": zlib.MAX_WBITS}


class Decompressor:
    """Takes a body in pieces, packed as its Content-Encoding says, and holds at most `max_bytes` of it unpacked.

    What is longer is an error, or where it may be `cut` the rest is left out, and `full` says so.
    """

    def __init__(self, encoding: str, max_bytes: int, *, truncate: bool = False) -> None:
        layers = [name for part in encoding.lower().split(",") if (name := part.strip()) not in ("", "identity")]
        if len(layers) > 1 or not all(name in _WINDOW_BITS for name in layers):
            raise FetchFailed(
                f"its encoding is {encoding[:80]!r}, where {ENCODINGS} were asked for",
                hint="The server is at fault; nothing can be done here.",
            )
        self._encoding = layers[0] if layers else ""
        self._max_bytes, self._truncate = max_bytes, truncate
        self.is_full = False
        self._packed_bytes = 0
        self._body = bytearray()
        self._stream = zlib.decompressobj(_WINDOW_BITS[self._encoding]) if layers else None

    def feed(self, data: bytes) -> None:
        """Take the next piece."""
        self._packed_bytes += len(data)
        if self._stream is None:
            self._body += data
            self._check_limits()
            return
        if self._encoding == "deflate" and self._packed_bytes == len(data) and data and data[0] & 0x0F != 8:
            # Meant to have zlib's header, and sent without it by some.
            self._stream = zlib.decompressobj(-zlib.MAX_WBITS)
        while data and not self.is_full:
            if self._stream.eof:
                # A gzip file may go on with another; anything else after the end is padding.
                if self._encoding == "deflate" or data[:2] != b"\x1f\x8b":
                    return
                self._stream = zlib.decompressobj(_WINDOW_BITS[self._encoding])
            try:
                self._body += self._stream.decompress(data, self._max_bytes - len(self._body) + 1)
            except zlib.error as error:
                raise FetchFailed(f"its {self._encoding} cannot be unpacked: {error}") from error
            self._check_limits()
            data = self._stream.unused_data or self._stream.unconsumed_tail

    def check_size(self, size: int) -> None:
        """Say how large the body is or will be."""
        if size > self._max_bytes:
            raise FetchFailed(
                f"it is larger than {self._max_bytes} bytes", hint="Raise crawl.max_bytes if it should be read."
            )

    def content(self) -> bytes:
        """Return the whole body, once all pieces were taken."""
        if self._stream is not None and self._packed_bytes and not self._stream.eof and not self.is_full:
            raise FetchFailed(f"its {self._encoding} ends early", hint="Try again later.")
        return bytes(self._body)

    def _check_limits(self) -> None:
        if len(self._body) > self._max_bytes and self._truncate:
            del self._body[self._max_bytes :]
            self.is_full = True
        self.check_size(len(self._body))
        if self._stream is not None and len(self._body) > max(_SMALL_BYTES, self._packed_bytes * _MAX_RATIO):
            raise FetchFailed(
                f"it unpacks to more than {_MAX_RATIO} times its size",
                hint="It was made to fill the memory; leave it out.",
            )


def gunzip(data: bytes, max_bytes: int) -> bytes:
    """Return what a gzip file holds, such as sitemap.xml.gz; FetchFailed if it is broken or larger than that."""
    unpacker = Decompressor("gzip", max_bytes)
    unpacker.feed(data)
    return unpacker.content()
