"""Evaluate settings on a judged set and compare the runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bunko.errors import SettingsError, SourceError
from bunko.evaluation.compare import Comparison, compare
from bunko.evaluation.dataset import JudgedSet
from bunko.evaluation.eval_library import JUDGED_TOOL, judged_library, same_index, with_settings
from bunko.evaluation.run import Run, may_abstain, run_queries
from bunko.library.library import Library
from bunko.runtime.observer import NO_OBSERVER, Observer
from bunko.search.request import tool_search_settings
from bunko.settings import Settings
from bunko.types import Mode
from bunko.types.ranking import OPTIONS

# Receives the current step, how many items are done, and how many there are.
# Measure → query id → value.
MeasureValues = Mapping[str, Mapping[str, float]]


@dataclass(frozen=True, slots=True)
class EvaluationPlan:
    """How queries are searched and judged."""

    modes: tuple[Mode, ...]  # empty: the mode of the settings
    n_results: int
    n_chunks: int | None = None  # chunks fetched by each search; None: as many as needed to get n_results documents


@dataclass(frozen=True, slots=True)
class AlternativeSettings:
    """Other settings, to compare with the first."""

    name: str
    settings: Settings
    mode: Mode | None = None  # None: every mode of the plan


@dataclass(frozen=True, slots=True)
class ExistingTool:
    """A tool of an existing library that the queries are about; it is only searched, never changed."""

    library: Library
    name: str

    def search_overrides(self) -> dict[str, object]:
        """Return the tool's own search settings as setting overrides."""
        search_settings = tool_search_settings(self.library.resolve_tool(self.name).options.search)
        return {f"search.{name}": value for name, value in search_settings.items()}

    def uris(self) -> set[str]:
        """Return the URIs of its documents."""
        return set(self.library.documents.stored.fingerprints(self.library.resolve_tool(self.name).id))


@dataclass(frozen=True, slots=True)
class PreviousReport:
    """The values of an earlier report."""

    name: str
    modes: Mapping[str, MeasureValues]
    digest: str  # of its judged set
    n_results: int | None = None  # None: the report does not contain it


@dataclass(slots=True)
class Evaluation:
    """The runs of an evaluation and their comparisons."""

    judged_set: JudgedSet
    plan: EvaluationPlan
    settings: dict[str, Any]
    documents: int
    chunks: int
    runs: list[Run]
    comparisons: list[Comparison] = field(default_factory=list)

    @property
    def main_run(self) -> Run:
        """Return the first run, whose measures are the headline of the reports."""
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
    observer: Observer = NO_OBSERVER,
) -> Evaluation:
    """Run all queries in each mode; compare with the first mode, with alternative settings and a previous report.

    The documents of the judged set are imported first, unless the queries are about an existing tool.
    """
    import_observer = observer.for_step("Importing")
    with _open_library(judged_set, settings, tool, persist_dir, import_observer) as library:
        modes = plan.modes or (library.build_request("").mode,)
        tool_name = tool.name if tool is not None else JUDGED_TOOL
        _check_measurable(library, judged_set, modes)
        alternative_names = _alternative_run_names(alternative, modes)
        if previous is not None:
            _check_previous(previous, judged_set, (*modes, *alternative_names.values()))
        evaluation = Evaluation(
            judged_set, plan, reported_settings(settings, library), *_tool_size(library, tool_name), []
        )
        evaluation.runs = [_run_mode(library, tool_name, judged_set, plan, mode, mode, observer) for mode in modes]
        evaluation.comparisons = [compare_runs(evaluation.main_run, run) for run in evaluation.runs[1:]]
        if any(query.also or query.passage for query in judged_set.queries):
            for alone in tuple(evaluation.runs):
                name = f"{alone.name}, with wordings"
                reworded = _run_mode(
                    library, tool_name, judged_set, plan, alone.mode, name, observer, with_wordings=True
                )
                evaluation.comparisons.append(compare_runs(alone, reworded))
                evaluation.runs.append(reworded)
        if alternative is not None:
            with _open_alternative(
                library, judged_set, settings, alternative.settings, import_observer, can_rebuild=tool is None
            ) as second_library:
                for mode, name in alternative_names.items():
                    second = _run_mode(second_library, tool_name, judged_set, plan, mode, name, observer)
                    first = next((run for run in evaluation.runs if run.mode == mode), evaluation.main_run)
                    evaluation.comparisons.append(compare_runs(first, second))
                    evaluation.runs.append(second)
    if previous is not None:
        evaluation.comparisons += [
            compare(previous.modes[run.name], run.values, names=(previous.name, run.name))
            for run in evaluation.runs
            if run.name in previous.modes
        ]
    return evaluation


def _alternative_run_names(alternative: AlternativeSettings | None, modes: Sequence[Mode]) -> dict[Mode, str]:
    """Return the modes to run with the alternative settings, and the name of each run."""
    if alternative is None:
        return {}
    if alternative.mode:
        modes = (alternative.mode,)
    return {mode: f"{mode}, {alternative.name}" if len(modes) > 1 else alternative.name for mode in modes}


def _check_measurable(library: Library, judged_set: JudgedSet, modes: Sequence[Mode]) -> None:
    if any(query.is_answerable or query.negatives or query.keywords for query in judged_set.queries):
        return
    if not any(may_abstain(library.build_request("", mode=mode)) for mode in modes):
        raise SourceError(
            f"Nothing can be measured: no question of {judged_set.name} names a document that answers it",
            hint="Add expected_sources, or qrels with a grade above 0. To measure that nothing is returned,"
            " set --threshold.",
        )


def _check_previous(previous: PreviousReport, judged_set: JudgedSet, names: Sequence[str]) -> None:
    shared = [name for name in names if name in previous.modes]
    if not shared:
        raise SourceError(
            f"{previous.name} has no scores for {', '.join(names)}, only for {', '.join(previous.modes) or 'no mode'}",
            hint="Choose one of its modes with --mode.",
        )
    ids = {query.id for query in judged_set.queries}
    if all(ids.isdisjoint(values) for name in shared for values in previous.modes[name].values()):
        raise SourceError(
            f"{previous.name} shares no question with {judged_set.name}",
            hint="Name a report.json with the same questions.",
        )


def compare_runs(first: Run, second: Run) -> Comparison:
    """Compare two runs over the same queries."""
    return compare(first.values, second.values, names=(first.name, second.name))


def usable_modes(modes: Sequence[Mode], settings: Settings) -> tuple[Mode, ...]:
    """Return the modes that work with these settings: without an embedder only bm25."""
    if settings.embedding.provider != "none":
        return tuple(modes)
    usable = tuple(mode for mode in modes if mode == "bm25")
    if not usable:
        raise SettingsError(
            "These modes need vectors, and embedding.provider is none",
            hint="Use --mode bm25, or set embedding.provider.",
        )
    return usable


def reported_settings(settings: Settings, library: Library) -> dict[str, Any]:
    """Return the settings that scores depend on, as shown in reports."""
    chunker, search = settings.chunker, settings.search
    embedder = library.embedder()
    return {
        "chunker": chunker.kind,
        "chunk_size": chunker.chunk_size,
        "chunk_overlap": chunker.chunk_overlap,
        "max_chunk_chars": chunker.max_chunk_chars,
        "embedder": embedder.name if embedder else "none",
        "threshold": search.similarity_threshold,
    } | {name: getattr(search, name) for name in OPTIONS if name != "similarity_threshold"}


@contextmanager
def _open_library(
    judged_set: JudgedSet,
    settings: Settings,
    tool: ExistingTool | None,
    persist_dir: Path | None,
    observer: Observer,
) -> Iterator[Library]:
    if tool is not None:
        yield with_settings(tool.library, settings)
        return
    with judged_library(judged_set.documents, settings, persist_dir=persist_dir, observer=observer) as library:
        yield library


@contextmanager
def _open_alternative(
    library: Library,
    judged_set: JudgedSet,
    settings: Settings,
    alternative: Settings,
    observer: Observer,
    *,
    can_rebuild: bool,
) -> Iterator[Library]:
    """Open the library for the alternative settings: the same one if its index fits, else a rebuilt one."""
    if same_index(settings, alternative):
        yield with_settings(library, alternative)
        return
    if not can_rebuild:
        raise SettingsError(
            "This setting needs another index, and the index of an existing tool is not rebuilt",
            hint="Compare search settings, or import the documents again under another name.",
        )
    with judged_library(judged_set.documents, alternative, observer=observer) as rebuilt:
        yield rebuilt


def _run_mode(
    library: Library,
    tool: str,
    judged_set: JudgedSet,
    plan: EvaluationPlan,
    mode: Mode,
    name: str,
    observer: Observer,
    *,
    with_wordings: bool = False,
) -> Run:
    return run_queries(
        library,
        judged_set.queries,
        mode=mode,
        n_results=plan.n_results,
        n_chunks=plan.n_chunks,
        name=name,
        tool=tool,
        with_wordings=with_wordings,
        observer=observer,
    )


def _tool_size(library: Library, name: str) -> tuple[int, int]:
    totals = [library.stats.totals(tool.id) for tool in library.tools() if tool.name == name]
    return sum(total.documents for total in totals), sum(total.chunks for total in totals)
