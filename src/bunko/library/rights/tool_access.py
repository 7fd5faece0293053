"""Let a caller add, change, import and delete the tools of a library, as far as its rights allow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from bunko.errors import AccessDenied, SettingsError
from bunko.library.rights.access import ASK_HINT
from bunko.library.tools import catalog
from bunko.library.tools.add import describe_from_documents, first_description
from bunko.runtime.observer import NO_OBSERVER, Observer
from bunko.search.request import is_tool_search_setting
from bunko.types import Report, Tool
from bunko.types.tool_options import Extract, ToolOptions

if TYPE_CHECKING:
    from bunko.library.admin.status import ToolDetails
    from bunko.library.library import Library
    from bunko.library.rights.access import LibraryAccess
    from bunko.library.tools.routing import RoutingReport


class ToolAccess:
    """The tools of a library as one caller may change them; what it may not read does not exist."""

    def __init__(self, access: LibraryAccess, library: Library) -> None:
        self._access, self._library = access, library

    def get(self, name: str) -> Tool:
        """Return a tool that the caller may read, by its name or the one that assistants see."""
        tool = catalog.find_tool(self._access.tools(), name)
        if tool is None:
            names = ", ".join(tool.name for tool in self._access.tools()) or "none yet"
            raise catalog.unknown_tool_error(name, names)
        return tool

    def details(self, name: str, *, page: int = 1, page_size: int = 20) -> ToolDetails:
        """Return the details of a tool with a page of its documents; its source is checked for changes."""
        details = self._library.tool_status(self.get(name).name, page=page, page_size=page_size)
        return replace(details, status=self._access.without_secrets(details.status))

    def routing(self) -> RoutingReport:
        """Measure whether descriptions distinguish the active tools that the caller may read."""
        report, hide = (
            self._library.maintenance.measure_routing(self._access.caller.rights.can_read),
            self._access.hidden_places().text,
        )
        warnings = [
            replace(warning, message=hide(warning.message), hint=hide(warning.hint)) for warning in report.warnings
        ]
        return replace(report, warnings=warnings)

    def add(
        self,
        name: str,
        description: str,
        source: str | None,
        *,
        kind: str = "folder",
        include: Sequence[str] = (),
        exclude: Sequence[str] = (),
        extract: Extract | None = None,
    ) -> Tool:
        """Add a folder or file of this machine as a tool, or a tool of web pages; nothing is imported yet.

        The first import of a folder or file without a description makes one from the documents.
        """
        if not self._access.caller.rights.writes_all:
            raise AccessDenied("This token may not add tools", hint=ASK_HINT)
        path = self._check_source(source)
        options = ToolOptions(tuple(include), tuple(exclude), extract)
        if path is not None and not description.strip():
            description = first_description(kind, path.resolve())
        with self._access.record("tool add", [name], {"source": path, "kind": kind}):
            return self._library.tools.add(name, description, path, kind=kind, options=options)

    def update(
        self,
        name: str,
        *,
        description: str | None = None,
        source: str | None = None,
        include: Sequence[str] | None = None,
        exclude: Sequence[str] | None = None,
        extract: Extract | None = None,
        search: Mapping[str, Any] | None = None,
    ) -> Tool:
        """Change the description, source, options or search settings of a tool; the next import applies them."""
        tool = self._writable(name)
        path = self._check_source(source)
        if search is not None:
            _check_search_settings(search)
        arguments: dict[str, Any] = {"description": description, "source": path, "include": include, "exclude": exclude}
        arguments |= {"extract": extract, "search": search and [f"{key}={value}" for key, value in search.items()]}
        with self._access.record("tool update", [tool.name], arguments):
            if search is not None:
                self._library.maintenance.set_search_settings(tool.name, search)
            updated = self._library.tools.update(tool.name, description=description, source=path, include=include,
                exclude=exclude, extract=extract,
            )  # fmt: skip
            if include is not None:
                self._library.maintenance.remember_include(updated)
            return updated

    def set_active(self, name: str, *, active: bool) -> Tool:
        """Show a tool to assistants or hide it."""
        tool = self._writable(name)
        with self._access.record("tool enable" if active else "tool disable", [tool.name], {}):
            return self._library.tools.set_active(tool.name, active=active)

    def delete(self, name: str, *, observer: Observer = NO_OBSERVER) -> Tool:
        """Delete a tool and its index; its folder is not touched."""
        tool = self._writable(name)
        with self._access.record("tool delete", [tool.name], {}):
            self._library.delete_tool(tool.name, observer=observer)
        return tool

    def import_tool(
        self, name: str, *, mode: Literal["update", "replace"] = "update", observer: Observer = NO_OBSERVER
    ) -> Report:
        """Import the changes of a tool, or all of it anew."""
        tool = self._writable(name)
        with self._access.record("import", [tool.name], {"mode": mode}) as record:
            report = self._library.import_tools([tool.name], mode, observer=observer)
            record.add_report(report)
            is_undescribed = bool(tool.source) and tool.description == first_description(tool.kind, Path(tool.source))
            if is_undescribed and not report.interrupted:
                describe_from_documents(self._library, tool)
        return self._access.hidden_places().report(report)

    def check_import(self, name: str) -> Tool:
        """Return a tool that the caller may import, or raise an error."""
        return self._writable(name)

    def _writable(self, name: str) -> Tool:
        tool = self.get(name)
        self._access.check_write(tool.name)
        return tool

    def _check_source(self, source: str | None) -> Path | None:
        if source is None:
            return None
        if not self._access.caller.is_owner:
            # Whoever can search a folder can read it, and the server can read more than its tokens should.
            raise AccessDenied(
                "This token may not name folders of the server",
                hint="Ask whoever runs this server to add the folder.",
            )
        path = Path(source).expanduser()
        if not path.is_absolute():
            raise SettingsError(f"{source[:200]!r} is not an absolute path", hint="Give the whole path.")
        return path


def _check_search_settings(search: Mapping[str, Any]) -> None:
    for name, value in search.items():
        if not is_tool_search_setting(name, value):
            raise SettingsError(
                f"A tool cannot have the search setting {str(name)[:80]} = {str(value)[:80]}",
                hint="See the ranking parameters of a search.",
            )
