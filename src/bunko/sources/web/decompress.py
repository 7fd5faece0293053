"""Compressed bytes go in, plain bytes within a limit come out: a bomb is found before it is unpacked."""

from __future__ import annotations

import zlib

from bunko.errors import FetchFailed

# Text seldom packs better than 1 to 30, and deflate cannot do more than 1 to 1030. Small pages may be all alike.
_RATIO = 200
_SMALL = 1 << 20

ENCODINGS = "gzip, deflate"  # what the standard library unpacks
_WINDOWS = {"gzip": 16 + zlib.MAX_WBITS, "x-gzip": 16 + zlib.MAX_WBITS, "deflate": zlib.MAX_WBITS}


class Unpacker:
    """Takes a body in pieces, packed as its Content-Encoding says, and holds at most `max_bytes` of it unpacked.

    What is longer is an error, or where it may be `cut` the rest is left out, and `full` says so.
    """

    def __init__(self, encoding: str, max_bytes: int, *, cut: bool = False) -> None:
        layers = [name for part in encoding.lower().split(",") if (name := part.strip()) not in ("", "identity")]
        if len(layers) > 1 or not all(name in _WINDOWS for name in layers):
            raise FetchFailed(
                f"its encoding is {encoding[:80]!r}, where {ENCODINGS} were asked for",
                hint="The server is at fault; nothing can be done here.",
            )
        self._encoding = layers[0] if layers else ""
        self._max, self._cut = max_bytes, cut
        self.full = False
        self._packed = 0
        self._body = bytearray()
        self._stream = zlib.decompressobj(_WINDOWS[self._encoding]) if layers else None

    def feed(self, data: bytes) -> None:
        """Take the next piece."""
        self._packed += len(data)
        if self._stream is None:
            self._body += data
            self._check()
            return
        if self._encoding == "deflate" and self._packed == len(data) and data and data[0] & 0x0F != 8:
            # Meant to have zlib's header, and sent without it by some.
            self._stream = zlib.decompressobj(-zlib.MAX_WBITS)
        while data and not self.full:
            if self._stream.eof:
                # A gzip file may go on with another; anything else after the end is padding.
                if self._encoding == "deflate" or data[:2] != b"\x1f\x8b":
                    return
                self._stream = zlib.decompressobj(_WINDOWS[self._encoding])
            try:
                self._body += self._stream.decompress(data, self._max - len(self._body) + 1)
            except zlib.error as error:
                raise FetchFailed(f"its {self._encoding} cannot be unpacked: {error}") from error
            self._check()
            data = self._stream.unused_data or self._stream.unconsumed_tail

    def expect(self, size: int) -> None:
        """Say how large the body is or will be."""
        if size > self._max:
            raise FetchFailed(
                f"it is larger than {self._max} bytes", hint="Raise crawl.max_bytes if it should be read."
            )

    def content(self) -> bytes:
        """Return the whole body, once all pieces were taken."""
        if self._stream is not None and self._packed and not self._stream.eof and not self.full:
            raise FetchFailed(f"its {self._encoding} ends early", hint="Try again later.")
        return bytes(self._body)

    def _check(self) -> None:
        if len(self._body) > self._max and self._cut:
            del self._body[self._max :]
            self.full = True
        self.expect(len(self._body))
        if self._stream is not None and len(self._body) > max(_SMALL, self._packed * _RATIO):
            raise FetchFailed(
                f"it unpacks to more than {_RATIO} times its size", hint="It was made to fill the memory; leave it out."
            )


def gunzipped(data: bytes, max_bytes: int) -> bytes:
    """Return what a gzip file holds, such as sitemap.xml.gz; FetchFailed if it is broken or larger than that."""
    unpacker = Unpacker("gzip", max_bytes)
    unpacker.feed(data)
    return unpacker.content()
