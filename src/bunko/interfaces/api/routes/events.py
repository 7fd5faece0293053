"""Follow what happens."""

from __future__ import annotations

from collections.abc import AsyncIterator

from bunko.interfaces.api.endpoint import Call, Endpoint


def follow_events(call: Call) -> AsyncIterator[str]:
    """Follow the progress of jobs and changes of documents as server-sent events.

    `job` has the fields of a job, `generation` has {"generation": …}, another number after each change.
    """
    call.events.check_room(call.library.caller)
    return call.events.stream(call.library.caller)


ENDPOINTS = [Endpoint("GET", "/events", follow_events, str, right="read", is_stream=True)]
