"""A judged set and settings in, the whole evaluation out: runs, how sure they are, and what was compared."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bunko.errors import SettingsError, SourceError
from bunko.evaluation.compare import Comparison, compare
from bunko.evaluation.dataset import Judged
from bunko.evaluation.eval_library import TOOL, alike, holding, seen_through
from bunko.evaluation.run import Run, may_abstain, run
from bunko.ingest.pipeline import Progress
from bunko.library.library import Library
from bunko.search.rank import owned
from bunko.settings import Settings
from bunko.types import Mode

# Whoever watches is told what goes on, how much of it is done, and how much there is.
Watch = Callable[[str, int, int], None]
# Measure → question → value: what can be compared.
Values = Mapping[str, Mapping[str, float]]


@dataclass(frozen=True, slots=True)
class Plan:
    """How the questions are asked."""

    modes: tuple[Mode, ...]  # empty: as the settings say
    n_results: int
    chunks: int | None = None  # asked for in each search; not given: as many as it takes to find the documents


@dataclass(frozen=True, slots=True)
class Side:
    """A second way of asking, to compare with the first."""

    name: str
    settings: Settings
    mode: Mode | None = None  # not given: every mode of the plan


@dataclass(frozen=True, slots=True)
class ExistingTool:
    """A tool of a library in use, whose documents the questions are about; it is only searched."""

    library: Library
    name: str

    def own(self) -> dict[str, object]:
        """Return what the tool says about its own searches, as flags of the settings."""
        own = owned(self.library.only(self.name).options.get("search"))
        return {f"search.{name}": value for name, value in own.items()}

    def uris(self) -> set[str]:
        """Return the names of its documents."""
        return set(self.library.store.known(self.library.only(self.name).id))


@dataclass(frozen=True, slots=True)
class Former:
    """What a former report says."""

    name: str
    modes: Mapping[str, Values]
    digest: str  # of its questions
    n_results: int | None = None  # not given: it does not say


@dataclass(slots=True)
class Evaluation:
    """What an evaluation found."""

    judged: Judged
    plan: Plan
    settings: dict[str, Any]
    documents: int
    chunks: int
    runs: list[Run]
    comparisons: list[Comparison] = field(default_factory=list)

    @property
    def main(self) -> Run:
        """Return the run that stands for the evaluation: the first that was asked for."""
        return self.runs[0]


def evaluate(
    judged: Judged,
    settings: Settings,
    plan: Plan,
    *,
    persist_dir: Path | None = None,
    tool: ExistingTool | None = None,
    other: Side | None = None,
    against: Former | None = None,
    watch: Watch = lambda _what, _done, _total: None,
) -> Evaluation:
    """Ask all questions in each mode; compare modes with the first, with `other` settings, and with a former report.

    The set's own documents are imported to be asked about, unless the questions are about an existing tool.
    """

    def importing(done: Progress) -> None:
        watch("Importing", done.files, done.total_files)

    with _searched(judged, settings, tool, persist_dir, importing) as library:
        modes = plan.modes or (library.request("").mode,)
        asked = tool.name if tool is not None else TOOL
        _check_measurable(library, judged, modes)
        wanted = () if other is None else (other.mode,) if other.mode else modes
        named = {mode: f"{mode}, {other.name}" if len(wanted) > 1 else other.name for mode in wanted} if other else {}
        if against is not None:
            _check_shared(against, judged, (*modes, *named.values()))
        done = Evaluation(judged, plan, shown(settings, library), *_size(library, asked), [])
        done.runs = [_run(library, asked, judged, plan, mode, mode, watch) for mode in modes]
        done.comparisons = [compared(done.main, one) for one in done.runs[1:]]
        if other is not None:
            with _other(library, judged, settings, other.settings, importing, rebuilding=tool is None) as second:
                for mode, name in named.items():
                    changed = _run(second, asked, judged, plan, mode, name, watch)
                    same = next((one for one in done.runs if one.mode == mode), done.main)
                    done.comparisons.append(compared(same, changed))
                    done.runs.append(changed)
    if against is not None:
        for one in done.runs:
            if one.name in against.modes:
                done.comparisons.append(compare(against.modes[one.name], one.values, names=(against.name, one.name)))
    return done


def _check_measurable(library: Library, judged: Judged, modes: Sequence[Mode]) -> None:
    if any(query.answerable or query.negatives or query.keywords for query in judged.queries):
        return
    if not any(may_abstain(library.request("", mode=mode)) for mode in modes):
        raise SourceError(
            f"Nothing can be measured: no question of {judged.name} names a document that answers it",
            hint="Give each its expected_sources, or qrels with a grade above 0; that nothing comes back can be"
            " measured with --threshold.",
        )


def _check_shared(against: Former, judged: Judged, names: Sequence[str]) -> None:
    shared = [name for name in names if name in against.modes]
    if not shared:
        raise SourceError(
            f"{against.name} says nothing about {', '.join(names)}, only about {', '.join(against.modes) or 'nothing'}",
            hint="Choose its modes with --mode.",
        )
    ids = {query.id for query in judged.queries}
    if all(ids.isdisjoint(values) for name in shared for values in against.modes[name].values()):
        raise SourceError(
            f"{against.name} shares no question with {judged.name}", hint="Name a report.json of the same questions."
        )


def compared(first: Run, second: Run) -> Comparison:
    """Compare two runs over the same questions."""
    return compare(first.values, second.values, names=(first.name, second.name))


def possible(modes: Sequence[Mode], settings: Settings) -> tuple[Mode, ...]:
    """Return those modes that need no vectors where there are none."""
    if settings.embedding.provider != "none":
        return tuple(modes)
    found = tuple(mode for mode in modes if mode == "bm25")
    if not found:
        raise SettingsError(
            "These modes need vectors, and embedding.provider is none",
            hint="Use --mode bm25, or set embedding.provider.",
        )
    return found


def shown(settings: Settings, library: Library) -> dict[str, Any]:
    """Return the settings that a score depends on."""
    chunker, search = settings.chunker, settings.search
    embedder = library.embedder()
    return {
        "chunker": chunker.kind,
        "chunk_size": chunker.chunk_size,
        "chunk_overlap": chunker.chunk_overlap,
        "max_chunk_chars": chunker.max_chunk_chars,
        "embedder": embedder.name if embedder else "none",
        "fusion": search.fusion,
        "vector_weight": search.vector_weight,
        "k1": search.k1,
        "b": search.b,
        "threshold": search.similarity_threshold,
        "min_combined_score": search.min_combined_score,
    }


@contextmanager
def _searched(
    judged: Judged,
    settings: Settings,
    tool: ExistingTool | None,
    persist_dir: Path | None,
    importing: Callable[[Progress], None],
) -> Iterator[Library]:
    if tool is not None:
        yield seen_through(tool.library, settings)
        return
    with holding(judged.documents, settings, persist_dir=persist_dir, progress=importing) as library:
        yield library


@contextmanager
def _other(
    library: Library,
    judged: Judged,
    settings: Settings,
    changed: Settings,
    importing: Callable[[Progress], None],
    *,
    rebuilding: bool,
) -> Iterator[Library]:
    """Open what the second side searches: the same library where that will do."""
    if alike(settings, changed):
        yield seen_through(library, changed)
        return
    if not rebuilding:
        raise SettingsError(
            "An existing tool is measured as it is, and this setting would make another index",
            hint="Compare settings of the search, or import the documents again under another name.",
        )
    with holding(judged.documents, changed, progress=importing) as rebuilt:
        yield rebuilt


def _run(library: Library, tool: str, judged: Judged, plan: Plan, mode: Mode, name: str, watch: Watch) -> Run:
    return run(
        library,
        judged.queries,
        mode=mode,
        n_results=plan.n_results,
        chunks=plan.chunks,
        name=name,
        tool=tool,
        progress=lambda done, total: watch(f"Asking, {name}", done, total),
    )


def _size(library: Library, name: str) -> tuple[int, int]:
    totals = [library.store.totals(tool.id) for tool in library.tools() if tool.name == name]
    return sum(one.documents for one in totals), sum(one.chunks for one in totals)
