"""Give a caller the part of a library that its rights allow; every call of an assistant goes through here."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from bunko.errors import AccessDenied, BunkoError
from bunko.library.opening.paths import LibraryPaths
from bunko.library.rights.audit import AuditRecord
from bunko.library.rights.hidden_places import HiddenPlaces
from bunko.runtime.observer import NO_OBSERVER, Observer
from bunko.search.paging import hide_generation
from bunko.search.request import SearchRequest
from bunko.settings import LoadedSettings, Settings
from bunko.types import Report, Tool
from bunko.types.access import Caller
from bunko.types.records import ListedDocument, StoredDocument, VectorRoom
from bunko.version import __version__

if TYPE_CHECKING:
    from bunko.library.admin.chat_status import ChatStatus
    from bunko.library.admin.embedder_status import ProviderStatus
    from bunko.library.admin.model_status import ModelStatus, RerankerStatus
    from bunko.library.admin.status import LibraryStatus, ToolStatus
    from bunko.library.library import Library
    from bunko.library.reading.documents import Documents
    from bunko.library.rights.settings_access import SettingsAccess
    from bunko.library.rights.tool_access import ToolAccess
    from bunko.library.searching.page import Page
    from bunko.library.tools.assistant_names import AssistantNames
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
        from bunko.library.admin.embedder_status import provider_statuses

        if not self.caller.rights.reads_all:
            raise AccessDenied("This token may not see the embedders", hint=ASK_HINT)
        hide = self.hidden_places().text
        return [
            replace(status, unavailable_reason=hide(status.unavailable_reason), model=hide(status.model))
            for status in provider_statuses(self.settings)
        ]

    def chat_models(self) -> list[ChatStatus]:
        """Return the chat providers and what each lacks, to whoever may read everything."""
        from bunko.library.admin.chat_status import chat_statuses

        if not self.caller.rights.reads_all:
            raise AccessDenied("This token may not see the chat models", hint=ASK_HINT)
        return chat_statuses(self.settings)

    def local_models(self) -> list[ModelStatus]:
        """Return the known local models and what each lacks, to whoever may read everything."""
        from bunko.library.admin.model_status import model_statuses

        if not self.caller.rights.reads_all:
            raise AccessDenied("This token may not see the local models", hint=ASK_HINT)
        hide = self.hidden_places().text
        return [
            replace(status, unavailable_reason=hide(status.unavailable_reason))
            for status in model_statuses(self.settings)
        ]

    def reranker(self) -> RerankerStatus | None:
        """Return the reranker of the settings and what it lacks, to whoever may read everything."""
        from bunko.library.admin.model_status import reranker_status

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
        from bunko.library.rights.tool_access import ToolAccess

        return ToolAccess(self, self._library)

    @property
    def settings_care(self) -> SettingsAccess:
        """What changes settings."""
        from bunko.library.rights.settings_access import SettingsAccess

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
