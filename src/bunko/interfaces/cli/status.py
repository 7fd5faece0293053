"""`bunko status`: a library in, what it holds out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from bunko.interfaces.cli.options import chosen, is_terminal, print_json, shared

if TYPE_CHECKING:
    from bunko.status import Status


@click.command()
@shared
def command(**options: Any) -> None:
    """Show what is indexed.

    \b
    Example:
      bunko status --docs-dir ~/notes
    """
    asked = chosen(options)
    with asked.open(create=False) as library:
        status = library.status()
    if asked.as_json:
        print_json(payload(status))
    elif is_terminal():
        from bunko.interfaces.cli.show import status as show

        show(status)
    else:
        click.echo(plain(status))


def payload(status: Status) -> dict[str, Any]:
    """Return a status as a plain dictionary."""
    return {
        "library": str(status.database),
        "generation": status.generation,
        "bytes": status.bytes,
        "derived_bytes": status.derived_bytes,
        "tools": [
            {
                "name": one.tool.name,
                "kind": one.tool.kind,
                "active": one.tool.active,
                "source": one.tool.source,
                "documents": one.totals.documents,
                "chunks": one.totals.chunks,
                "vectors": one.totals.vectors,
                "characters": one.totals.characters,
                "last_import": one.tool.imported_at,
                "built": one.tool.built,
                "problems": [{"file_path": p.uri, "reason": p.reason} for p in one.problems],
            }
            for one in status.tools
        ],
    }


def plain(status: Status) -> str:
    """Return a status as lines for a pipe."""
    lines = [
        f"library: {status.database} ({size(status.bytes)}, derived {size(status.derived_bytes)},"
        f" generation {status.generation})"
    ]
    for one in status.tools:
        state = "active" if one.tool.active else "disabled"
        lines.append(
            f"{one.tool.name}: {state}, {one.totals.documents} documents, {one.totals.chunks} chunks,"
            f" {one.totals.vectors} vectors, last import {one.tool.imported_at or 'never'}, from {one.tool.source}"
        )
        lines += [f"  problem: {p.uri}: {' '.join(p.reason.splitlines())}" for p in one.problems]
    return "\n".join(lines)


def size(number: float) -> str:
    """Return a number of bytes as people read it."""
    for unit in ("B", "kB", "MB"):
        if number < 1000:
            return f"{number:.0f} {unit}" if unit == "B" else f"{number:.1f} {unit}"
        number /= 1000
    return f"{number:.1f} GB"
