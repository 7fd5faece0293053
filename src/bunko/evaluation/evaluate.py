"""A judged set and settings in, the whole evaluation out: runs, how sure they are, and what was compared."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bunko.errors import SettingsError, SourceError
from bunko.evaluation.compare import Comparison, compare
from bunko.evaluation.dataset import JudgedSet
from bunko.evaluation.eval_library import JUDGED_TOOL, judged_library, same_index, with_settings
from bunko.evaluation.run import Run, may_abstain, run_queries
from bunko.ingest.pipeline import ImportProgress
from bunko.library.library import Library
from bunko.search.rank import tool_search_settings
from bunko.settings import Settings
from bunko.types import Mode

# Whoever watches is told what goes on, how much of it is done, and how much there is.
ProgressCallback = Callable[[str, int, int], None]
# Measure → question → value: what can be compared.
MeasureValues = Mapping[str, Mapping[str, float]]


@dataclass(frozen=True, slots=True)
class EvaluationPlan:
    """How the questions are asked."""

    modes: tuple[Mode, ...]  # empty: as the settings say
    n_results: int
    n_chunks: int | None = None  # asked for in each search; not given: as many as it takes to find the documents


@dataclass(frozen=True, slots=True)
class AlternativeSettings:
    """A second way of asking, to compare with the first."""

    name: str
    settings: Settings
    mode: Mode | None = None  # not given: every mode of the plan


@dataclass(frozen=True, slots=True)
class ExistingTool:
    """A tool of a library in use, whose documents the questions are about; it is only searched."""

    library: Library
    name: str

    def search_overrides(self) -> dict[str, object]:
        """Return what the tool says about its own searches, as flags of the settings."""
        own = tool_search_settings(self.library.resolve_tool(self.name).options.get("search"))
        return {f"search.{name}": value for name, value in own.items()}

    def uris(self) -> set[str]:
        """Return the names of its documents."""
        return set(self.library.store.fingerprints(self.library.resolve_tool(self.name).id))


@dataclass(frozen=True, slots=True)
class PreviousReport:
    """What a former report says."""

    name: str
    modes: Mapping[str, MeasureValues]
    digest: str  # of its questions
    n_results: int | None = None  # not given: it does not say


@dataclass(slots=True)
class Evaluation:
    """What an evaluation found."""

    judged_set: JudgedSet
    plan: EvaluationPlan
    settings: dict[str, Any]
    documents: int
    chunks: int
    runs: list[Run]
    comparisons: list[Comparison] = field(default_factory=list)

    @property
    def main_run(self) -> Run:
        """Return the run that stands for the evaluation: the first that was asked for."""
        return self.runs[0]


def evaluate(
    judged_set: JudgedSet,
    settings: Settings,
    plan: EvaluationPlan,
    *,
    persist_dir: Path | None = None,
    tool: ExistingTool | None = None,
    alternative: AlternativeSettings | None = None,
    previous: PreviousReport | None = None,
    report_progress: ProgressCallback = lambda _what, _done, _total: None,
) -> Evaluation:
    """Ask all questions in each mode; compare modes with the first, with `other` settings, and with a former report.

    The set's own documents are imported to be asked about, unless the questions are about an existing tool.
    """

    def importing(done: ImportProgress) -> None:
        report_progress("Importing", done.files, done.total_files)

    with _open_library(judged_set, settings, tool, persist_dir, importing) as library:
        modes = plan.modes or (library.build_request("").mode,)
        asked = tool.name if tool is not None else JUDGED_TOOL
        _check_measurable(library, judged_set, modes)
        wanted = () if alternative is None else (alternative.mode,) if alternative.mode else modes
        named = (
            {mode: f"{mode}, {alternative.name}" if len(wanted) > 1 else alternative.name for mode in wanted}
            if alternative
            else {}
        )
        if previous is not None:
            _check_previous(previous, judged_set, (*modes, *named.values()))
        done = Evaluation(judged_set, plan, reported_settings(settings, library), *_tool_size(library, asked), [])
        done.runs = [_run_mode(library, asked, judged_set, plan, mode, mode, report_progress) for mode in modes]
        done.comparisons = [compare_runs(done.main_run, one) for one in done.runs[1:]]
        if alternative is not None:
            with _open_alternative(
                library, judged_set, settings, alternative.settings, importing, can_rebuild=tool is None
            ) as second:
                for mode, name in named.items():
                    changed = _run_mode(second, asked, judged_set, plan, mode, name, report_progress)
                    same = next((one for one in done.runs if one.mode == mode), done.main_run)
                    done.comparisons.append(compare_runs(same, changed))
                    done.runs.append(changed)
    if previous is not None:
        for one in done.runs:
            if one.name in previous.modes:
                done.comparisons.append(compare(previous.modes[one.name], one.values, names=(previous.name, one.name)))
    return done


def _check_measurable(library: Library, judged_set: JudgedSet, modes: Sequence[Mode]) -> None:
    if any(query.is_answerable or query.negatives or query.keywords for query in judged_set.queries):
        return
    if not any(may_abstain(library.build_request("", mode=mode)) for mode in modes):
        raise SourceError(
            f"Nothing can be measured: no question of {judged_set.name} names a document that answers it",
            hint="Give each its expected_sources, or qrels with a grade above 0; that nothing comes back can be"
            " measured with --threshold.",
        )


def _check_previous(previous: PreviousReport, judged_set: JudgedSet, names: Sequence[str]) -> None:
    shared = [name for name in names if name in previous.modes]
    if not shared:
        raise SourceError(
            f"{previous.name} says nothing about {', '.join(names)}, only about {', '.join(previous.modes) or 'nothing'}",  # noqa: E501
            hint="Choose its modes with --mode.",
        )
    ids = {query.id for query in judged_set.queries}
    if all(ids.isdisjoint(values) for name in shared for values in previous.modes[name].values()):
        raise SourceError(
            f"{previous.name} shares no question with {judged_set.name}",
            hint="Name a report.json of the same questions.",
        )


def compare_runs(first: Run, second: Run) -> Comparison:
    """Compare two runs over the same questions."""
    return compare(first.values, second.values, names=(first.name, second.name))


def usable_modes(modes: Sequence[Mode], settings: Settings) -> tuple[Mode, ...]:
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


def reported_settings(settings: Settings, library: Library) -> dict[str, Any]:
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
def _open_library(
    judged_set: JudgedSet,
    settings: Settings,
    tool: ExistingTool | None,
    persist_dir: Path | None,
    progress: Callable[[ImportProgress], None],
) -> Iterator[Library]:
    if tool is not None:
        yield with_settings(tool.library, settings)
        return
    with judged_library(judged_set.documents, settings, persist_dir=persist_dir, progress=progress) as library:
        yield library


@contextmanager
def _open_alternative(
    library: Library,
    judged_set: JudgedSet,
    settings: Settings,
    alternative: Settings,
    progress: Callable[[ImportProgress], None],
    *,
    can_rebuild: bool,
) -> Iterator[Library]:
    """Open what the second side searches: the same library where that will do."""
    if same_index(settings, alternative):
        yield with_settings(library, alternative)
        return
    if not can_rebuild:
        raise SettingsError(
            "An existing tool is measured as it is, and this setting would make another index",
            hint="Compare settings of the search, or import the documents again under another name.",
        )
    with judged_library(judged_set.documents, alternative, progress=progress) as rebuilt:
        yield rebuilt


def _run_mode(
    library: Library,
    tool: str,
    judged_set: JudgedSet,
    plan: EvaluationPlan,
    mode: Mode,
    name: str,
    report_progress: ProgressCallback,
) -> Run:
    return run_queries(
        library,
        judged_set.queries,
        mode=mode,
        n_results=plan.n_results,
        n_chunks=plan.n_chunks,
        name=name,
        tool=tool,
        progress=lambda done, total: report_progress(f"Asking, {name}", done, total),
    )


def _tool_size(library: Library, name: str) -> tuple[int, int]:
    totals = [library.store.totals(tool.id) for tool in library.tools() if tool.name == name]
    return sum(one.documents for one in totals), sum(one.chunks for one in totals)
