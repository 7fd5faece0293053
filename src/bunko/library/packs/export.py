"""Export a tool to one file, and import such a file."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from bunko.embedders.embed import as_remote
from bunko.errors import BunkoError
from bunko.library.importing.importer import Importer
from bunko.library.packs import pack
from bunko.library.packs.pack import load_pack
from bunko.library.tools import catalog
from bunko.library.tools.assistant_names import file_name
from bunko.library.tools.build_config import ToolConfig, has_vectors
from bunko.protocols import Store
from bunko.runtime.observer import NO_OBSERVER, Observer
from bunko.runtime.timing import now
from bunko.types import Report, Tool
from bunko.types.build_info import BuildInfo

if TYPE_CHECKING:
    from bunko.library.packs.pack import Pack


class PackTransfer:
    """Export and import tools of one library."""

    def __init__(self, store: Store, tool_config: ToolConfig, importer: Importer) -> None:
        self._store, self._tool_config, self._importer = store, tool_config, importer

    def export_tool(self, name: str | None, path: Path) -> tuple[Tool, Path, int]:
        """Export a tool, or the only one, to a file for `import_pack`; return it, the path and the size in bytes."""
        tool = catalog.resolve_tool(self._store, name)
        path = path.expanduser()
        path = path / f"{file_name(tool)}{pack.SUFFIX}" if path.is_dir() else path
        return tool, path, pack.write_pack(self._store, tool, path)

    def import_pack(
        self,
        pack: Pack,
        *,
        name: str | None = None,
        description: str | None = None,
        source: Path | None = None,
        replace_existing: bool = False,
        observer: Observer = NO_OBSERVER,
    ) -> tuple[Tool, Report]:
        """Import a tool from another library in one atomic step; if that fails, the library is unchanged.

        The tool follows no folder unless `source` is given. Name and description are the pack's unless they are given;
        assistants read them, so ask the user first.
        """
        store, config, name = self._store, self._tool_config, name or pack.tool.name
        with self._importer.write_lock(observer, tools=[name]):
            tool = catalog.adapt_foreign_tool(
                store,
                pack.tool,
                name=name,
                description=description,
                source=source,
                replace_existing=replace_existing,
            )
            chunker, built = config.new_chunker_settings(tool), config.new_build_info(tool)
            embedder = config.embedder() if has_vectors(tool) else None
            chunker.build()  # raises for wrong settings before anything is written
            for leftover in store.tools.all():
                if leftover.name == f"{catalog.SHADOW_PREFIX}{name}":
                    store.tools.drop(leftover.id)
            # No rebuild has these facts, so none resumes from what a killed import left behind.
            shadow = store.tools.put(
                Tool(f"{catalog.SHADOW_PREFIX}{name}", tool.kind, active=False, built=BuildInfo(other={"pack": name}))
            )
            try:
                report = load_pack(store, shadow, pack, chunker, embedder, built, observer=observer)
                tool = store.tools.adopt_documents(replace(tool, built=built, imported_at=now()), shadow)
            except BaseException:
                with suppress(BunkoError):
                    store.tools.drop(shadow.id)
                    if not as_remote(embedder):  # paid vectors stay for the next attempt
                        store.vectors.delete_orphans()
                raise
            store.vectors.delete_orphans()
            return tool, self._importer.update_index(tool, report)
