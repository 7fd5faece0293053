"""The `bunko tune` command: find and adopt better search settings for a tool."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from bunko.evaluation.tune import MEASURE, relevant_options, tune_tool
from bunko.interfaces.cli.options import SharedOptions, complete_tool_names, shared_options
from bunko.interfaces.cli.terminal.evaluation_output import print_table
from bunko.interfaces.cli.terminal.printing import print_json, replace_controls
from bunko.interfaces.cli.terminal.progress import show_evaluation_progress

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bunko.evaluation.compare import Difference
    from bunko.evaluation.tune import Tuning
    from bunko.evaluation.wording_weights import WordingTuning


@click.command()
@click.option("--name", "-n", metavar="TOOL", help="Tool name. [the only tool]", shell_complete=complete_tool_names)
@click.option("--dry-run", is_flag=True, help="Show the result without changing anything.")
@click.option("--undo", is_flag=True, help="Remove the search settings of the tool.")
@shared_options
def command(name: str | None, dry_run: bool, undo: bool, shared: SharedOptions) -> None:
    """Find the best search settings for a tool, without judgements.

    Questions are made from the titles, headings and key phrases, varied as people type them: in another form, order or
    script, with a typo, or in part. One half chooses the settings, the other half checks them; settings that are not
    proven better are not adopted. The index is never changed.

    The weights of other wordings are tried too if questions judged with bunko judge have some.

    \b
    Example:
      bunko tune -n notes --dry-run
      bunko tune -n notes
      bunko tune -n notes --undo
    """
    if undo and dry_run:
        raise click.UsageError("--undo and --dry-run cannot be used together")
    with shared.open(create=False) as library:
        tool = library.resolve_tool(name)
        if undo:
            removed = dict(tool.options.search)
            library.maintenance.set_search_settings(tool.name, {})
            if shared.as_json:
                print_json({"tool": tool.name, "removed": removed})
            elif removed:
                click.echo(replace_controls(f"Removed the search settings of {tool.name}: {format_settings(removed)}."))
            else:
                click.echo(replace_controls(f"{tool.name} has no search settings of its own."))
            return
        with show_evaluation_progress() as observer:
            tuning = tune_tool(library, tool.name, observer=observer)
        adopted = tuning.is_better and not dry_run
        if adopted:
            library.maintenance.set_search_settings(tool.name, tuning.tool_options)
    if shared.as_json:
        print_json(tuning_to_dict(tuning, adopted=adopted))
    else:
        _print_tuning(tuning, adopted=adopted)


def tuning_to_dict(tuning: Tuning, *, adopted: bool) -> dict[str, object]:
    """Return the result of tuning as a plain dictionary."""
    chosen_on: dict[str, object] = {"questions": tuning.query_counts[0], "documents": tuning.document_counts[0]}
    checked_on: dict[str, object] = {"questions": tuning.query_counts[1], "documents": tuning.document_counts[1]}
    result: dict[str, object] = {
        "tool": tuning.tool.name,
        "adopted": adopted,
        "better": tuning.is_better,
        "reason": tuning.reason,
        "measure": MEASURE,
        "before": relevant_options(tuning.current),
        "best": relevant_options(tuning.best),
        "tried": tuning.trial_count,
        "questions": tuning.queries_by_kind,
        "chosen_on": chosen_on,
        "checked_on": checked_on,
    }
    if tuning.trial_count:
        chosen_on |= {"before": round(tuning.choice_scores[0], 6), "after": round(tuning.choice_scores[1], 6)}
    if tuning.holdout_difference is not None:
        checked_on |= _difference_to_dict(tuning.holdout_difference)
        result["kinds"] = [
            {
                "kind": score.name,
                "questions": score.query_count,
                "before": round(score.before, 6),
                "after": round(score.after, 6),
            }
            for score in (*tuning.kind_scores, *tuning.family_scores)
        ]
    if tuning.wordings is not None:
        result["wordings"] = _wordings_to_dict(tuning.wordings)
    return result


def _wordings_to_dict(tuning: WordingTuning) -> dict[str, object]:
    chosen_on: dict[str, object] = {"questions": tuning.query_counts[0]}
    checked_on: dict[str, object] = {"questions": tuning.query_counts[1]}
    if any(tuning.choice_scores):
        chosen_on |= {"before": round(tuning.choice_scores[0], 6), "after": round(tuning.choice_scores[1], 6)}
    if tuning.holdout_difference is not None:
        checked_on |= _difference_to_dict(tuning.holdout_difference)
    return {
        "better": not tuning.reason,
        "reason": tuning.reason,
        "before": tuning.current,
        "best": tuning.best,
        "chosen_on": chosen_on,
        "checked_on": checked_on,
    }


def _difference_to_dict(row: Difference) -> dict[str, object]:
    return {
        "before": round(row.first, 6), "after": round(row.second, 6), "difference": round(row.difference, 6),
        "interval": [round(row.low, 6), round(row.high, 6)], "p": round(row.p, 6),
        "wins": row.wins, "losses": row.losses, "ties": row.ties,
    }  # fmt: skip


def _print_tuning(tuning: Tuning, *, adopted: bool) -> None:
    kinds = ", ".join(f"{kind} {count}" for kind, count in tuning.queries_by_kind.items())
    click.echo(f"Questions: {sum(tuning.query_counts)}{f' ({kinds})' if kinds else ''}")
    if tuning.trial_count:
        click.echo(f"Current: {format_settings(relevant_options(tuning.current))}")
        click.echo(f"Best of {tuning.trial_count} tried: {format_settings(relevant_options(tuning.best))}\n")
        halves = [["chosen on", *_half_counts(tuning, 0), *_format_change(*tuning.choice_scores), ""]]
        if tuning.holdout_difference is not None:
            halves.append(["checked on", *_half_counts(tuning, 1), *_format_difference(tuning.holdout_difference)])
        columns = ["half", "questions", "documents", "before", "after", "gain", "95 % interval"]
        print_table(f"{MEASURE}, interval by resampling documents", columns, halves)
    if tuning.kind_scores:
        rows = [
            [score.name, str(score.query_count), *_format_change(score.before, score.after)]
            for score in (*tuning.kind_scores, *tuning.family_scores)
        ]
        print_table("Checking half, by kind", ["kind", "questions", "before", "after", "gain"], rows)
    if tuning.wordings is not None:
        _print_wordings(tuning.wordings)
    _print_conclusion(tuning, adopted=adopted)


def _print_wordings(tuning: WordingTuning) -> None:
    """Print the weights of other wordings that were tried on judged questions."""
    click.echo(f"Weights of wordings: {format_settings(tuning.current)}")
    if any(tuning.choice_scores):
        click.echo(f"Best weights: {format_settings(tuning.best)}\n")
        halves = [["chosen on", str(tuning.query_counts[0]), *_format_change(*tuning.choice_scores), ""]]
        if tuning.holdout_difference is not None:
            halves.append(["checked on", str(tuning.query_counts[1]), *_format_difference(tuning.holdout_difference)])
        columns = ["half", "questions", "before", "after", "gain", "95 % interval"]
        print_table(f"{MEASURE}, judged questions with other wordings", columns, halves)
    if tuning.reason:
        click.echo(f"These weights stay: {tuning.reason}.")


def _print_conclusion(tuning: Tuning, *, adopted: bool) -> None:
    name = replace_controls(tuning.tool.name)
    if adopted and not tuning.tool_options:
        click.echo(f"Adopted: {name} uses the search settings of the library again.")
    elif adopted:
        click.echo(f"Adopted: {name} uses these settings from now on. Undo with: bunko tune -n {name} --undo")
    elif tuning.is_better:
        click.echo(f"Nothing was changed. Without --dry-run, {name} would use these settings from now on.")
    else:
        click.echo(replace_controls(f"Nothing was adopted: {tuning.reason}."))


def _half_counts(tuning: Tuning, half: int) -> tuple[str, str]:
    return str(tuning.query_counts[half]), str(tuning.document_counts[half])


def _format_change(before: float, after: float) -> tuple[str, str, str]:
    return f"{before:.4f}", f"{after:.4f}", f"{after - before:+.4f}"


def _format_difference(row: Difference) -> tuple[str, ...]:
    return *_format_change(row.first, row.second), f"[{row.low:+.4f}, {row.high:+.4f}]"


def format_settings(settings: Mapping[str, object]) -> str:
    """Return settings in one line."""
    return ", ".join(f"{key} {str(value).lower()}" for key, value in settings.items())
