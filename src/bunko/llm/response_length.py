"""Let a response of a chat model fail if it is longer than any answer."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, cast

import anyio.lowlevel

from bunko.remote import UNUSABLE_STATUS, RemoteFailure

if TYPE_CHECKING:
    import httpx2

_MAX_BYTES = 50_000_000  # a streamed token takes about 250


async def limit_length(response: httpx2.Response) -> None:
    """Count the bytes of a response while it is read; the SDK would keep a line without end in memory."""
    from httpx2 import AsyncByteStream

    stream = cast(AsyncByteStream, response.stream)

    class LimitedStream(AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            length = 0
            async for part in stream:
                length += len(part)
                if length > _MAX_BYTES:
                    raise RemoteFailure("the answer is too long", status=UNUSABLE_STATUS)
                yield part

        async def aclose(self) -> None:
            await stream.aclose()

    response.stream = LimitedStream()
    await anyio.lowlevel.checkpoint()
