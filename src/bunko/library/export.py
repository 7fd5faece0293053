"""A tool in, one file that another library takes in out; and back."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from bunko.errors import BunkoError
from bunko.ingest.embed import as_remote
from bunko.ingest.pipeline import ImportProgress
from bunko.library import catalog
from bunko.library.build_config import ToolConfig
from bunko.library.importing import Importer
from bunko.protocols import Store
from bunko.timing import now
from bunko.types import Report, Tool

if TYPE_CHECKING:
    from bunko.library.pack import Pack


class PackTransfer:
    """Moves tools between this library and others."""

    def __init__(self, store: Store, tool_config: ToolConfig, importer: Importer) -> None:
        self._store, self._tool_config, self._importer = store, tool_config, importer

    def export_tool(self, name: str | None, path: Path) -> tuple[Tool, Path, int]:
        """Write a tool, or the only one, into a file that `import_pack` takes; return it, the file and its bytes."""
        from bunko.library import pack

        tool = catalog.resolve_tool(self._store, name)
        path = path.expanduser()
        path = path / f"{catalog.safe_name(tool.name)}{pack.SUFFIX}" if path.is_dir() else path
        return tool, path, pack.write_pack(self._store, tool, path)

    def import_pack(
        self,
        pack: Pack,
        *,
        name: str | None = None,
        source: Path | None = None,
        replace_existing: bool = False,
        progress: Callable[[ImportProgress], None] = lambda _: None,
        waiting: Callable[[str], None] = lambda _: None,
    ) -> tuple[Tool, Report]:
        """Take in a tool of another library; it is there whole in one step, and until then all is as it was."""
        from bunko.library.pack.load import load_pack

        store, recipe, name = self._store, self._tool_config, name or pack.tool.name
        with self._importer.write_lock(waiting):
            tool = catalog.adapt_foreign_tool(
                store,
                pack.tool,
                name=name,
                source=source,
                replace_existing=replace_existing,
                matches_folder=pack.matches_folder,
            )
            cutting, built, embedder = recipe.chunker_settings(tool), recipe.build_facts(tool), recipe.embedder_of(tool)
            cutting.build()  # says what is wrong with it before anything is written
            for left in store.tools():
                if left.name == f"{catalog.SHADOW_PREFIX}{name}":
                    store.drop_tool(left.id)
            # No rebuild has these facts, so that none goes on from what a killed import left.
            shadow = store.put_tool(
                Tool(f"{catalog.SHADOW_PREFIX}{name}", tool.kind, active=False, built={"pack": name})
            )
            try:
                report = load_pack(store, shadow, pack, cutting, embedder, built, progress=progress)
                tool = store.adopt_documents(replace(tool, built=built, imported_at=now()), shadow)
            except BaseException:
                with suppress(BunkoError):
                    store.drop_tool(shadow.id)
                    if not as_remote(embedder):  # else the next attempt finds what was paid for, or a later sweep does
                        store.delete_orphan_vectors()
                raise
            store.delete_orphan_vectors()
            return tool, self._importer.update_index(tool, report)
