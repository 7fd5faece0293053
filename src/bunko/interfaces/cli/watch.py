"""`bunko watch`: a library in, its tools kept fresh and a line for each change out, until Ctrl-C."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from bunko.interfaces.cli.options import (
    SharedOptions,
    complete_tool_names,
    is_terminal,
    pop_shared_options,
    print_stderr,
    replace_controls,
    shared_options,
)

if TYPE_CHECKING:
    from bunko.library.watch import WatchEvent
    from bunko.types import Report


@click.command()
@click.option(
    "--name",
    "-n",
    metavar="NAME",
    help="Only this tool, shown to assistants or not. [all active ones]",
    shell_complete=complete_tool_names,
)
@click.option(
    "--poll",
    type=click.FloatRange(0.1, 86_400),
    metavar="SECONDS",
    help="Look so often instead of waiting for file events, as for a folder that other machines change.",
)
@shared_options
def command(name: str | None, poll: float | None, **options: Any) -> None:
    """Keep tools fresh as their files change, until Ctrl-C.

    Files are taken in a moment after they were last changed, and at least every few seconds while changes go on.

    \b
    Example:
      bunko watch
      bunko watch -n api-docs
      bunko watch --docs-dir ~/notes --json
    """
    asked = pop_shared_options(options)
    from bunko.library.watch import watch_library

    with _stop_on_signals() as stop:
        watch_library(
            lambda: asked.open(create=asked.docs_dir is not None),
            lambda news: _print_event(news, asked),
            stop,
            name=name,
            poll=poll,
        )


class _StopFlag:
    """Set by a signal; an Event could hang there, because its lock may be held by the very thread it interrupts."""

    def __init__(self) -> None:
        self._stopped = False

    def is_set(self) -> bool:
        """Say whether somebody asked us to end."""
        return self._stopped

    def set(self) -> None:
        """Ask us to end."""
        self._stopped = True


@contextmanager
def _stop_on_signals() -> Iterator[_StopFlag]:
    """Let Ctrl-C and SIGTERM end the watch in order; a second one ends it at once."""
    stop, own = _StopFlag(), os.getpid()
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def end(number: int, _: object) -> None:
        if os.getpid() != own:
            os._exit(1)  # a worker of an import, forked with our handlers
        stop.set()
        for each, handler in before.items():
            signal.signal(each, handler)

    for each in before:
        signal.signal(each, end)
    try:
        yield stop
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def _print_event(event: WatchEvent, shared: SharedOptions) -> None:
    at = datetime.now().astimezone()
    if shared.as_json:
        click.echo(
            json.dumps(
                {"event": event.kind, "at": at.isoformat(timespec="seconds"), **_event_to_dict(event)},
                ensure_ascii=False,
            )
        )
        return
    lines = list(_event_lines(event))
    if event.kind in ("problem", "waiting"):
        for line in lines:
            print_stderr(f"{at:%H:%M:%S} {line}")
        return
    for line in lines:
        clock = f"{at:%H:%M:%S}"
        click.echo(f"{click.style(clock, dim=True) if is_terminal() else clock} {replace_controls(line)}")


def _event_to_dict(event: WatchEvent) -> dict[str, Any]:
    told: dict[str, Any] = {"tool": event.tool, "message": event.message, "hint": event.hint}
    told = {key: value for key, value in told.items() if value}
    if event.kind == "watching":
        told["tools"] = [
            {"name": place.tool, "path": place.path} | ({"polled": place.poll_reason} if place.poll_reason else {})
            for place in event.watched_tools
        ]
    if event.report is not None:
        from bunko.interfaces.serialize import report_to_dict

        told |= report_to_dict(event.report)
    return told


def _event_lines(event: WatchEvent) -> Iterator[str]:
    """Return what there is to say, in lines."""
    if event.kind == "watching":
        number = len(event.watched_tools)
        names = ", ".join(place.tool for place in event.watched_tools) or "none yet; waiting for bunko tool add"
        yield f"Watching {number} tool{'' if number == 1 else 's'}: {names}. Ctrl-C stops it."
        for place in event.watched_tools:
            yield f"  {place.tool}: {place.path}{f' (looking now and then: {place.poll_reason})' if place.poll_reason else ''}"  # noqa: E501
    elif event.kind == "stopped":
        yield "Stopped; what was written stays."
    else:
        before = f"{event.tool}: " if event.tool else ""
        what = _format_changes(event.report) if event.report else event.message
        yield before + " ".join(what.splitlines())
        if event.hint:
            yield f"  {event.hint}"


def _format_changes(report: Report) -> str:
    counts = {name: getattr(report, name) for name in ("added", "updated", "deleted", "moved")}
    return ", ".join(f"{number:,} {name}" for name, number in counts.items() if number)
