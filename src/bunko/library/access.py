"""Give a caller the part of a library that its rights allow; every call of an assistant goes through here."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from bunko.errors import AccessDenied, BunkoError, QueryError, SettingsError
from bunko.library.add import Addition, describe_from_documents, first_description, plan_addition
from bunko.library.admin.model_status import chat_statuses, get_model, model_statuses, reranker_status
from bunko.library.admin.provider_status import provider_statuses
from bunko.library.opening.paths import LibraryPaths
from bunko.library.opening.user_settings import describe_override, set_setting, unset_setting, user_config_file
from bunko.library.rights.audit import AuditRecord
from bunko.library.tools import catalog
from bunko.runtime.observer import NO_OBSERVER, Observer
from bunko.search.paging import hide_generation
from bunko.search.request import SearchRequest, is_tool_search_setting
from bunko.settings import LoadedSettings, Settings
from bunko.sources import all_kinds
from bunko.sources.detect import detect_sources, read_as
from bunko.types import Problem, Report, Tool
from bunko.types.access import Caller
from bunko.types.records import IndexState, ListedDocument, StoredDocument, VectorRoom
from bunko.types.tool_options import Extract, ToolOptions
from bunko.version import __version__

if TYPE_CHECKING:
    from bunko.library.admin.model_status import ChatStatus, ModelStatus, RerankerStatus
    from bunko.library.admin.provider_status import ProviderStatus
    from bunko.library.admin.status import LibraryStatus, ToolDetails, ToolStatus
    from bunko.library.library import Library
    from bunko.library.reading.documents import Documents
    from bunko.library.searching.page import Page
    from bunko.library.tools.assistant_names import AssistantNames
    from bunko.library.tools.routing import RoutingReport
    from bunko.library.web.collector import CollectResult, WebToolStatus
    from bunko.search.passages import Passage
    from bunko.types.answers import CheckedAnswer


ASK_HINT = "Ask whoever runs this server for a token with more rights."


class LibraryAccess:
    """A library as one caller may use it: without the tools that it may not read, and with a record of its changes.

    What is not here, no assistant can do. A method that reads uses `_visible`; one that writes checks the right and
    records the change.
    """

    def __init__(self, library: Library, caller: Caller) -> None:
        self._library, self.caller = library, caller
        # Who may not change everything gets a store that cannot be changed, also where all of it may be read.
        self._visible = library if caller.rights.writes_all else library.limited_to(caller.rights.can_read)

    @property
    def settings(self) -> Settings:
        """The settings of the library."""
        return self._library.settings

    @property
    def paths(self) -> LibraryPaths:
        """Where the library is."""
        return self._library.paths

    # Reading

    @property
    def readable(self) -> Library:
        """The same door with what the caller may read behind it, and nothing that the caller could write."""
        return self._visible

    @property
    def documents(self) -> Documents:
        """The documents that the caller may read."""
        return self._visible.documents

    def tools(self) -> list[Tool]:
        """Return the tools that the caller may read, sorted by name."""
        with self.hiding_places():
            return self._visible.tools()

    def assistant_names(self) -> AssistantNames:
        """Return the name of each tool that assistants see, by its real one."""
        return self._visible.assistant_names()

    def page(self, request: SearchRequest, *, overhead_tokens: Callable[[Passage], int] = lambda _: 0) -> Page:
        """Answer a search request with one page of passages."""
        page = self._visible.page(request, overhead_tokens=overhead_tokens)
        page = replace(page, notices=self._notices(page.notices))
        if self.caller.rights.reads_all:
            return page
        freshness = replace(page.freshness, generation=self.generation())
        return replace(page, freshness=freshness, next_cursor=hide_generation(page.next_cursor))

    def document_page(self, tool: Tool, *, after: str, limit: int) -> list[ListedDocument]:
        """Return the documents of a tool whose URIs come after a given one, sorted by URI."""
        self._check_read(tool.name)
        with self.hiding_places():
            return self._visible.documents.stored.page(tool.id, after=after, limit=limit)

    def document(self, tool: Tool, uri: str) -> StoredDocument | None:
        """Return the document of a tool with this URI, or None."""
        self._check_read(tool.name)
        with self.hiding_places():
            return self._visible.documents.stored.get(tool.id, uri)

    def status(self) -> LibraryStatus:
        """Return the status of the tools that the caller may read; without the numbers of all unless it may know them.

        Where the documents and the library are, only those learn who may change them.
        """
        rights = self.caller.rights
        status = self._library.maintenance.status(rights.can_read)
        status = replace(status, tools=[self.without_secrets(tool_status) for tool_status in status.tools])
        if not rights.writes_all:
            status = replace(status, location="", index_location="")
        if rights.reads_all:
            return status
        return replace(
            status,
            generation=self.generation(),
            bytes=sum(tool_status.bytes for tool_status in status.tools),
            derived_bytes=sum(tool_status.derived_bytes for tool_status in status.tools),
            embedding_usage={},
            unused_vectors=VectorRoom(0, 0),
        )

    def without_secrets(self, status: ToolStatus) -> ToolStatus:
        """Return the status of a tool without what the caller may not know."""
        if not self.caller.rights.can_write(status.tool.name):
            status = replace(status, tool=replace(status.tool, source=""))
        if not self.caller.rights.reads_all:
            status = replace(status, index=replace(status.index, generation=0))
        places = self.hidden_places()
        return replace(status, index=places.index_state(status.index), problems=places.problems(status.problems))

    def generation(self) -> int:
        """Return a number that changes with the documents that the caller may read, and with nothing else.

        It is the library's own for whoever may read all of it. Another number would tell how much else has changed.
        """
        if self.caller.rights.reads_all:
            return self._library.storage.generation()
        changes = self._library.store.changes
        visible = [(tool.id, changes.last_generation(tool.id)) for tool in self.tools()]
        return int.from_bytes(hashlib.sha256(repr(visible).encode()).digest()[:6], "big")

    def state(self) -> str:
        """Return a digest that changes with everything that a search by the caller depends on, besides the request."""
        settings = self.settings
        tools = [(tool.name, tool.kind, tool.description, tool.active, repr(tool.options)) for tool in self.tools()]
        # A day is a part of it, because `2w` is another date tomorrow.
        parts = (
            self.generation(), tools, self.caller.rights, self._visible.local_time().date(),
            settings.search, settings.memos, settings.web, __version__,
        )  # fmt: skip
        return hashlib.sha256(repr(parts).encode()).hexdigest()[:24]

    def ask(self, question: str, *, tool: str | tuple[str, ...] | None = None, use_model: bool = True) -> CheckedAnswer:
        """Answer a question from the documents that the caller may read: by the chat model of the settings, if any."""
        answer = self._visible.answers.ask(SearchRequest(question, tool), use_model=use_model)
        answer.notices = self._notices(answer.notices)
        return answer

    def setting_rows(self) -> list[tuple[str, str, str]]:
        """Return key, value and origin of every setting, secrets masked, to whoever may change everything."""
        if not self.caller.rights.writes_all:
            raise AccessDenied("This token may not see the settings", hint=ASK_HINT)
        return LoadedSettings(self.settings, dict(self._library.setting_origins), [], None).rows()

    def embedders(self) -> list[ProviderStatus]:
        """Return the embedders and what each lacks, to whoever may read everything."""
        if not self.caller.rights.reads_all:
            raise AccessDenied("This token may not see the embedders", hint=ASK_HINT)
        hide = self.hidden_places().text
        return [
            replace(status, unavailable_reason=hide(status.unavailable_reason), model=hide(status.model))
            for status in provider_statuses(self.settings)
        ]

    def chat_models(self) -> list[ChatStatus]:
        """Return the chat providers and what each lacks, to whoever may read everything."""
        if not self.caller.rights.reads_all:
            raise AccessDenied("This token may not see the chat models", hint=ASK_HINT)
        return chat_statuses(self.settings)

    def local_models(self) -> list[ModelStatus]:
        """Return the known local models and what each lacks, to whoever may read everything."""
        if not self.caller.rights.reads_all:
            raise AccessDenied("This token may not see the local models", hint=ASK_HINT)
        hide = self.hidden_places().text
        return [
            replace(status, unavailable_reason=hide(status.unavailable_reason))
            for status in model_statuses(self.settings)
        ]

    def reranker(self) -> RerankerStatus | None:
        """Return the reranker of the settings and what it lacks, to whoever may read everything."""
        if not self.caller.rights.reads_all:
            raise AccessDenied("This token may not see the local models", hint=ASK_HINT)
        status, hide = reranker_status(self.settings), self.hidden_places().text
        return status and replace(status, name=hide(status.name), unavailable_reason=hide(status.unavailable_reason))

    def hidden_places(self) -> HiddenPlaces:
        """Return what leaves the places of files out of messages, unless the caller may change everything.

        What `status` does not show must not be in a notice, a hint or an error either.
        """
        library, rights = self._library, self.caller.rights
        if rights.writes_all:
            return HiddenPlaces(hides_nothing=True)
        tools: list[Tool] = []
        with suppress(BunkoError):  # an error of the library itself is being told
            tools = library.tools()
        paths, settings = library.paths, library.settings
        hidden = [library.storage.location, settings.milvus.uri or "", settings.chromadb.url or ""]
        hidden += [str(paths.database), str(paths.folder)]
        hidden += [tool.source for tool in tools if not rights.can_write(tool.name)]
        return HiddenPlaces(hidden, [tool.source for tool in tools if rights.can_write(tool.name)])

    @contextmanager
    def hiding_places(self) -> Iterator[None]:
        """Leave out of the errors of a block what the caller may not know."""
        try:
            yield
        except BunkoError as error:
            self.hidden_places().hide_in_error(error)
            raise

    def _notices(self, notices: Sequence[str]) -> list[str]:
        """Return notices without those for whoever runs the server, about its settings and secrets."""
        if not self.caller.rights.writes_all:
            notices = [notice for notice in notices if notice not in self._library.notices]
        return self.hidden_places().texts(notices) if notices else []

    def _check_read(self, tool: str) -> None:
        if not self.caller.rights.can_read(tool):
            raise AccessDenied("This token may not read that tool", hint=ASK_HINT)

    # Writing

    @property
    def tool_care(self) -> ToolAccess:
        """What adds, changes, imports and deletes tools."""
        return ToolAccess(self, self._library)

    @property
    def settings_care(self) -> SettingsAccess:
        """What changes settings."""
        return SettingsAccess(self, self._library)

    @property
    def web(self) -> WebAccess:
        """The collected web pages."""
        return WebAccess(self, self._library)

    def reindex(self, *, rebuild: bool = False, observer: Observer = NO_OBSERVER) -> Report:
        """Bring all tools that the caller may write up to date with their sources, or rebuild their indexes."""
        rights = self.caller.rights
        if not rights.writes_all and not any(rights.can_write(tool.name) for tool in self._library.tools()):
            raise AccessDenied("This token may not update any tool", hint=ASK_HINT)
        tools = [tool.name for tool in self._library.local_tools() if rights.can_write(tool.name)]
        with self.record("reindex", tools, {"rebuild": rebuild}) as record:
            if rights.writes_all:
                report = self._library.reindex(rebuild=rebuild, observer=observer)
            else:
                report = self._library.import_tools(tools, "replace" if rebuild else "update", observer=observer)
            record.add_report(report)
        return self.hidden_places().report(report)

    def tools_to_reembed(self) -> list[str]:
        """Return the tools whose vectors are not of the embedder of the settings, to whoever may change everything."""
        return self._library.maintenance.tools_of_other_embedders() if self.caller.rights.writes_all else []

    def reembed(self, *, observer: Observer = NO_OBSERVER) -> Report:
        """Compute the vectors of these tools with the embedder of the settings."""
        self.check_reembed()
        tools = self.tools_to_reembed()
        with self.record("reembed", tools, {}) as record:
            report = self._library.reembed(tools, observer=observer, keep_going=True)
            record.add_report(report)
        return report

    def check_reembed(self) -> None:
        """Raise an error if the caller may not compute vectors again."""
        if not self.caller.rights.writes_all:
            raise AccessDenied("This token may not update any tool", hint=ASK_HINT)

    def check_write(self, tool: str) -> None:
        """Raise an error if the caller may not change a tool, without its name if the caller may not know of it."""
        if self.caller.rights.can_write(tool):
            return
        name = f"change {tool}" if self.caller.rights.can_read(tool) else "do that"
        raise AccessDenied(f"This token may not {name}", hint=ASK_HINT)

    def record(
        self, action: str, tools: Sequence[str], arguments: Mapping[str, Any]
    ) -> AbstractContextManager[AuditRecord]:
        """Record the change that the block makes in the audit log."""
        return self._library.audit.record(self.caller, action, tools=tools, arguments=arguments)


class WebAccess:
    """The web pages of a library as one caller may collect and delete them."""

    def __init__(self, access: LibraryAccess, library: Library) -> None:
        self._access, self._library = access, library

    def add_pages(self, urls: Sequence[str], *, observer: Observer = NO_OBSERVER) -> CollectResult:
        """Fetch and import pages."""
        tool = self._target()
        with self._access.record("web add", [tool], {"urls": list(urls)}) as record:
            result = self._library.web.add_pages(urls, tool=tool, observer=observer)
            record.add_pages(result)
        return result

    def crawl_site(self, url: str, pattern: str = "", *, observer: Observer = NO_OBSERVER) -> CollectResult:
        """Fetch a page and the pages it links to on its site, and import them."""
        tool = self._target()
        with self._access.record("web crawl", [tool], {"url": url, "pattern": pattern}) as record:
            result = self._library.web.crawl_site(url, pattern, tool=tool, observer=observer)
            record.add_pages(result)
        return result

    def delete_page(self, url: str, *, observer: Observer = NO_OBSERVER) -> tuple[str, int]:
        """Delete a page from the first tool that has it; return its URL and number of chunks."""
        can_write = self._access.caller.rights.can_write
        names = sorted((tool.name for tool in self._web_tools()), key=lambda name: not can_write(name))
        tool = self._library.web.page_owner(url, names)
        self._access.check_write(tool)
        with self._access.record("web delete", [tool], {"url": url}) as record:
            deleted_url, chunk_count = self._library.web.delete_page(url, tool=tool, observer=observer)
            record.details["chunks"] = chunk_count
        return deleted_url, chunk_count

    def check_add(self) -> None:
        """Raise an error if the caller may not add pages."""
        self._target()

    def status(self) -> list[WebToolStatus]:
        """Return the status of each tool of web pages that the caller may read."""
        return [status for tool in self._web_tools() for status in self._library.web.status(tool.name)]

    def _web_tools(self) -> list[Tool]:
        return [tool for tool in self._access.tools() if tool.kind == "web"]

    def _target(self) -> str:
        """Return the tool that pages are added to."""
        default, rights = self._library.web.default_tool(), self._access.caller.rights
        if rights.can_write(default):
            return default
        writable = [tool.name for tool in self._web_tools() if rights.can_write(tool.name)]
        if len(writable) != 1:
            raise AccessDenied("This token may not add web pages", hint=ASK_HINT)
        return writable[0]


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

    def plan(
        self, source: str, *, kind: str = "", is_reserved: Callable[[str], bool] = lambda name: False
    ) -> tuple[Addition, list[str]]:
        """Return what adding a folder or file of this machine would do, and which tools read some of it already.

        Nothing is stored. Without a kind it is recognised.
        """
        self._check_add()
        _check_kind(kind or "folder")
        path = self._check_source(source)
        assert path is not None
        [detected] = detect_sources([path])
        addition = plan_addition(self._library, read_as(detected, kind or detected.kind), is_reserved=is_reserved)
        return addition, self._library.maintenance.overlap_notices(addition.tool) if addition.is_new else []

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
        self._check_add()
        _check_kind(kind)
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

    def _check_add(self) -> None:
        if not self._access.caller.rights.writes_all:
            raise AccessDenied("This token may not add tools", hint=ASK_HINT)

    def _check_source(self, source: str | None) -> Path | None:
        if source is None:
            return None
        if not self._access.caller.is_owner:
            # Whoever can search a folder can read it, and the server can read more than its tokens should.
            raise AccessDenied(
                "This token may not name folders of the server",
                hint="Ask whoever runs this server to add the folder.",
            )
        try:
            path = Path(source).expanduser()
        except RuntimeError:  # ~ of nobody
            path = Path(source)
        if not path.is_absolute() or "\0" in source:
            raise SettingsError(f"{source[:200]!r} is not an absolute path", hint="Give the whole path.")
        return path


def _check_kind(kind: str) -> None:
    if kind not in all_kinds():
        raise QueryError(f"There is no kind {kind[:80]!r}", hint=f"Use one of: {', '.join(all_kinds())}.")


def _check_search_settings(search: Mapping[str, Any]) -> None:
    for name, value in search.items():
        if not is_tool_search_setting(name, value):
            raise SettingsError(
                f"A tool cannot have the search setting {str(name)[:80]} = {str(value)[:80]}",
                hint="See the ranking parameters of a search.",
            )


class SettingsAccess:
    """The settings of a library as one caller may change them: settings name files and services of the machine."""

    def __init__(self, access: LibraryAccess, library: Library) -> None:
        self._access, self._library = access, library

    @property
    def can_change(self) -> bool:
        """Whether the caller runs this process, and what it was started with is known."""
        caller = self._access.caller
        return caller.is_owner and caller.rights.writes_all and self._library.reload_settings is not None

    @property
    def file(self) -> Path:
        """The file that is changed, as by `bunko config set`."""
        return self._library.settings_file or user_config_file()

    def get_model(self, name: str, progress: Callable[[str, int, int], None]) -> None:
        """Download a known model to this machine."""
        self.check_change()
        with self._access.record("models get", [], {"model": name}):
            get_model(name, progress)

    def check_change(self) -> None:
        """Raise an error if the caller may not change settings."""
        if not self.can_change:
            raise AccessDenied("This token may not change the settings", hint=ASK_HINT)

    def change(self, key: str, text: str | None) -> None:
        """Set a setting in the file, or remove it from there; open libraries keep what they were opened with."""
        self.check_change()
        with self._access.record("config set" if text is not None else "config unset", [], {"setting": key}):
            if text is None:
                unset_setting(key, self.file)
                return
            try:
                loaded = self._load()
            except SettingsError:  # the change may be what mends them
                set_setting(key, text, self.file, None)
            else:
                set_setting(key, text, self.file, loaded)

    def next_rows(self) -> list[tuple[str, str, str]]:
        """Return key, value and origin of every setting as a new start would have them."""
        return self._load().rows()

    def override(self, key: str) -> str:
        """Return what comes before the file for a setting, in a sentence; empty if nothing does."""
        return describe_override(key, self.file, self._load())

    def _load(self) -> LoadedSettings:
        if not self.can_change or self._library.reload_settings is None:
            raise AccessDenied("This token may not change the settings", hint=ASK_HINT)
        return self._library.reload_settings()


_HIDDEN = "…"
_FLAG = r" --(?:library|database|docs-dir|data-dir|config)"
_QUOTED = r"(?P<quote>['\"])(?:~?/|[A-Za-z]:[\\/]|\\\\)(?:(?!(?P=quote)).)*(?P=quote)"
# An absolute path. In an address, its slashes follow a colon, a slash or a letter; /api is an address of this server.
_BARE = r"(?<![\w.:/\\~…])(?:~?/(?!api/)[^\s'\"/]+/|~/|[A-Za-z]:[\\/]|\\\\)[^\s'\",;]*"
_PLACE = re.compile(rf"{_FLAG} (?:{_QUOTED}|\S+)|{_QUOTED.replace('quote', 'mark')}|{_BARE}")


class HiddenPlaces:
    """What a caller may not know of the places of files, in what is said to it."""

    def __init__(self, hidden: Sequence[str] = (), visible: Sequence[str] = (), *, hides_nothing: bool = False) -> None:
        # Paths without quotes may have blanks, so those that are known are looked for as they are.
        self._hidden = sorted((place for place in hidden if re.search(r"[/\\].", place)), key=len, reverse=True)
        self._visible, self._hides_nothing = tuple(filter(None, visible)), hides_nothing

    def text(self, text: str) -> str:
        """Return a message without these places."""
        if self._hides_nothing or not text:
            return text
        for place in self._hidden:
            text = text.replace(place, f"/{_HIDDEN}/")
        return _PLACE.sub(self._hide, text)

    def texts(self, texts: Sequence[str]) -> list[str]:
        """Return messages without these places."""
        return [self.text(text) for text in texts]

    def problems(self, problems: Sequence[Problem]) -> list[Problem]:
        """Return problems without these places."""
        return [replace(problem, uri=self.text(problem.uri), reason=self.text(problem.reason)) for problem in problems]

    def index_state(self, state: IndexState) -> IndexState:
        """Return the state of an index without these places."""
        return replace(state, problem=self.text(state.problem), hint=self.text(state.hint))

    def report(self, report: Report) -> Report:
        """Return the report of an import without these places."""
        failures = [
            replace(failure, message=self.text(failure.message), hint=self.text(failure.hint))
            for failure in report.failures
        ]
        return replace(
            report,
            problems=self.problems(report.problems),
            notices=self.texts(report.notices),
            skipped_folders=self.texts(report.skipped_folders),
            failures=failures,
        )

    def hide_in_error(self, error: BunkoError) -> None:
        """Leave these places out of an error."""
        error.message, error.hint = self.text(error.message), self.text(error.hint)
        error.args = (error.message,)

    def _hide(self, match: re.Match[str]) -> str:
        if match[0].startswith(" --"):
            return ""
        if match[0].strip("'\"").startswith(self._visible):
            return match[0]
        mark = match["mark"] or ""
        end = "" if mark else match[0][len(match[0].rstrip(".:)")) :]  # of the sentence
        return f"{mark}{_HIDDEN}{mark}{end}"
