"""Decompress the body of an answer, within limits."""

from __future__ import annotations

import zlib

from bunko.errors import FetchFailed

# Text seldom compresses better than 1:30, and deflate at most 1:1030. Small pages may be very repetitive.
_MAX_RATIO = 200
_SMALL_BYTES = 1 << 20
ENCODINGS = "gzip, deflate"  # what the standard library can decompress
_WINDOW_BITS = {"gzip": 16 + zlib.MAX_WBITS, "x-gzip": 16 + zlib.MAX_WBITS, "deflate": zlib.MAX_WBITS}


class Decompressor:
    """Decompresses a body chunk by chunk, as its Content-Encoding says, up to `max_bytes`.

    A longer body is an error; with `truncate` it is cut instead, and `is_full` is set.
    """

    def __init__(self, encoding: str, max_bytes: int, *, truncate: bool = False) -> None:
        layers = [name for part in encoding.lower().split(",") if (name := part.strip()) not in ("", "identity")]
        if len(layers) > 1 or not all(name in _WINDOW_BITS for name in layers):
            raise FetchFailed(
                f"its encoding is {encoding[:80]!r}, but only {ENCODINGS} were requested",
                hint="This is an error of the server.",
            )
        self._encoding = layers[0] if layers else ""
        self._max_bytes, self._truncate = max_bytes, truncate
        self.is_full = False
        self._packed_bytes = 0
        self._body = bytearray()
        self._stream = zlib.decompressobj(_WINDOW_BITS[self._encoding]) if layers else None

    def feed(self, data: bytes) -> None:
        """Decompress the next chunk."""
        self._packed_bytes += len(data)
        if self._stream is None:
            self._body += data
            self._check_limits()
            return
        if self._encoding == "deflate" and self._packed_bytes == len(data) and data and data[0] & 0x0F != 8:
            # The standard requires a zlib header, but some servers leave it out.
            self._stream = zlib.decompressobj(-zlib.MAX_WBITS)
        while data and not self.is_full:
            if self._stream.eof:
                # Another gzip member may follow; anything else after the end is padding.
                if self._encoding == "deflate" or data[:2] != b"\x1f\x8b":
                    return
                self._stream = zlib.decompressobj(_WINDOW_BITS[self._encoding])
            try:
                self._body += self._stream.decompress(data, self._max_bytes - len(self._body) + 1)
            except zlib.error as error:
                raise FetchFailed(f"its {self._encoding} cannot be decompressed: {error}") from error
            self._check_limits()
            data = self._stream.unused_data or self._stream.unconsumed_tail

    def check_size(self, size: int) -> None:
        """Raise FetchFailed if a body of this size is too large."""
        if size > self._max_bytes:
            raise FetchFailed(f"it is larger than {self._max_bytes} bytes", hint="Raise crawl.max_bytes to read it.")

    def content(self) -> bytes:
        """Return the whole body, after the last chunk."""
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
                f"it decompresses to more than {_MAX_RATIO} times its size",
                hint="It may be a decompression bomb; do not fetch it.",
            )


def gunzip(data: bytes, max_bytes: int) -> bytes:
    """Return the content of a gzip file such as sitemap.xml.gz; raise FetchFailed if it is invalid or too large."""
    decompressor = Decompressor("gzip", max_bytes)
    decompressor.feed(data)
    return decompressor.content()
