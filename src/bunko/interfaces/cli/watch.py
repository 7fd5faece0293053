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

from bunko.interfaces.cli.options import Chosen, chosen, is_terminal, say, shared, tool_names, visible

if TYPE_CHECKING:
    from bunko.library.watch import News
    from bunko.types import Report


@click.command()
@click.option(
    "--name",
    "-n",
    metavar="NAME",
    help="Only this tool, shown to assistants or not. [all active ones]",
    shell_complete=tool_names,
)
@click.option(
    "--poll",
    type=click.FloatRange(0.1, 86_400),
    metavar="SECONDS",
    help="Look so often instead of waiting for file events, as for a folder that other machines change.",
)
@shared
def command(name: str | None, poll: float | None, **options: Any) -> None:
    """Keep tools fresh as their files change, until Ctrl-C.

    Files are taken in a moment after they were last changed, and at least every few seconds while changes go on.

    \b
    Example:
      bunko watch
      bunko watch -n api-docs
      bunko watch --docs-dir ~/notes --json
    """
    asked = chosen(options)
    from bunko.library.watch import watch

    with _until_told() as stop:
        watch(
            lambda: asked.open(create=asked.docs_dir is not None),
            lambda news: _tell(news, asked),
            stop,
            name=name,
            poll=poll,
        )


class _Stop:
    """Set by a signal; an Event could hang there, because its lock may be held by the very thread it interrupts."""

    def __init__(self) -> None:
        self._told = False

    def is_set(self) -> bool:
        """Say whether somebody asked us to end."""
        return self._told

    def set(self) -> None:
        """Ask us to end."""
        self._told = True


@contextmanager
def _until_told() -> Iterator[_Stop]:
    """Let Ctrl-C and SIGTERM end the watch in order; a second one ends it at once."""
    stop, own = _Stop(), os.getpid()
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


def _tell(news: News, asked: Chosen) -> None:
    at = datetime.now().astimezone()
    if asked.as_json:
        click.echo(
            json.dumps(
                {"event": news.kind, "at": at.isoformat(timespec="seconds"), **_payload(news)}, ensure_ascii=False
            )
        )
        return
    lines = list(_lines(news))
    if news.kind in ("problem", "waiting"):
        for line in lines:
            say(f"{at:%H:%M:%S} {line}")
        return
    for line in lines:
        clock = f"{at:%H:%M:%S}"
        click.echo(f"{click.style(clock, dim=True) if is_terminal() else clock} {visible(line)}")


def _payload(news: News) -> dict[str, Any]:
    told: dict[str, Any] = {"tool": news.tool, "message": news.message, "hint": news.hint}
    told = {key: value for key, value in told.items() if value}
    if news.kind == "watching":
        told["tools"] = [
            {"name": place.tool, "path": place.path} | ({"polled": place.polled} if place.polled else {})
            for place in news.places
        ]
    if news.report is not None:
        from bunko.interfaces.serialize import report

        told |= report(news.report)
    return told


def _lines(news: News) -> Iterator[str]:
    """Return what there is to say, in lines."""
    if news.kind == "watching":
        number = len(news.places)
        names = ", ".join(place.tool for place in news.places) or "none yet; waiting for bunko tool add"
        yield f"Watching {number} tool{'' if number == 1 else 's'}: {names}. Ctrl-C stops it."
        for place in news.places:
            yield f"  {place.tool}: {place.path}{f' (looking now and then: {place.polled})' if place.polled else ''}"
    elif news.kind == "stopped":
        yield "Stopped; what was written stays."
    else:
        before = f"{news.tool}: " if news.tool else ""
        what = _changes(news.report) if news.report else news.message
        yield before + " ".join(what.splitlines())
        if news.hint:
            yield f"  {news.hint}"


def _changes(report: Report) -> str:
    counts = {name: getattr(report, name) for name in ("added", "updated", "deleted", "moved")}
    return ", ".join(f"{number:,} {name}" for name, number in counts.items() if number)
