"""A tool in, one file that another library takes in out; and back."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from bunko.errors import BunkoError
from bunko.ingest.embed import paid
from bunko.ingest.pipeline import Progress
from bunko.library import catalog
from bunko.library.build_config import Recipe
from bunko.library.importing import Importing
from bunko.protocols import Store
from bunko.timing import now
from bunko.types import Report, Tool

if TYPE_CHECKING:
    from bunko.library.pack import Pack


class Packs:
    """Moves tools between this library and others."""

    def __init__(self, store: Store, recipe: Recipe, importing: Importing) -> None:
        self._store, self._recipe, self._importing = store, recipe, importing

    def export(self, name: str | None, path: Path) -> tuple[Tool, Path, int]:
        """Write a tool, or the only one, into a file that `import_pack` takes; return it, the file and its bytes."""
        from bunko.library import pack

        tool = catalog.only(self._store, name)
        path = path.expanduser()
        path = path / f"{catalog.safe(tool.name)}{pack.SUFFIX}" if path.is_dir() else path
        return tool, path, pack.write(self._store, tool, path)

    def import_pack(
        self,
        packed: Pack,
        *,
        name: str | None = None,
        source: Path | None = None,
        replacing: bool = False,
        progress: Callable[[Progress], None] = lambda _: None,
        waiting: Callable[[str], None] = lambda _: None,
    ) -> tuple[Tool, Report]:
        """Take in a tool of another library; it is there whole in one step, and until then all is as it was."""
        from bunko.library.pack.load import take

        store, recipe, name = self._store, self._recipe, name or packed.tool.name
        with self._importing.writing(waiting):
            tool = catalog.received(
                store, packed.tool, name=name, source=source, replacing=replacing, is_about=packed.is_about
            )
            cutting, built, embedder = recipe.cutting(tool), recipe.built(tool), recipe.embedder_of(tool)
            cutting.build()  # says what is wrong with it before anything is written
            for left in store.tools():
                if left.name == f"{catalog.SHADOW}{name}":
                    store.drop_tool(left.id)
            # No rebuild has these facts, so that none goes on from what a killed import left.
            shadow = store.put_tool(Tool(f"{catalog.SHADOW}{name}", tool.kind, active=False, built={"pack": name}))
            try:
                report = take(store, shadow, packed, cutting, embedder, built, progress=progress)
                tool = store.adopt(replace(tool, built=built, imported_at=now()), shadow)
            except BaseException:
                with suppress(BunkoError):
                    store.drop_tool(shadow.id)
                    if not paid(embedder):  # else the next attempt finds what was paid for, or a later sweep does
                        store.sweep()
                raise
            store.sweep()
            return tool, self._importing.indexed(tool, report)
