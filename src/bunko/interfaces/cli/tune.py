"""`bunko tune`: a tool in, the settings that find its documents best out, kept if they prove themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from bunko.interfaces.cli.evaluation_output import print_table, show_evaluation_progress
from bunko.interfaces.cli.options import (
    complete_tool_names,
    pop_shared_options,
    print_json,
    replace_controls,
    shared_options,
)

if TYPE_CHECKING:
    from bunko.evaluation.tune import Tuning


@click.command()
@click.option("--name", "-n", metavar="TOOL", help="The tool. [the only one]", shell_complete=complete_tool_names)
@click.option("--dry-run", is_flag=True, help="Only show what would be done.")
@click.option("--undo", is_flag=True, help="Search the tool as the settings say again.")
@shared_options
def command(name: str | None, dry_run: bool, undo: bool, **options: Any) -> None:
    """Find the settings that search a tool best, without judgements.

    Questions are made from its titles, headings and key phrases, typed as people type: another form, order or script,
    a slip, a part. One half of them chooses, the other half checks; what does not prove itself there is not kept.
    Only how it is searched changes, never its index.

    \b
    Example:
      bunko tune -n notes --dry-run
      bunko tune -n notes
      bunko tune -n notes --undo
    """
    asked = pop_shared_options(options)
    if undo and dry_run:
        raise click.UsageError("--undo and --dry-run do not go together.")
    with asked.open(create=False) as library:
        tool = library.resolve_tool(name)
        if undo:
            own = tool.options.get("search")
            library.set_search_settings(tool.name, {})
            if asked.as_json:
                print_json({"tool": tool.name, "removed": own or {}})
            elif own:
                click.echo(
                    replace_controls(
                        f"{tool.name} is searched as the settings say again; its own were {format_settings(own)}."
                    )
                )
            else:
                click.echo(replace_controls(f"{tool.name} has no settings of its own."))
            return
        from bunko.evaluation.tune import tune_tool

        with show_evaluation_progress() as watch:
            done = tune_tool(library, tool.name, report_progress=watch)
        adopted = done.is_better and not dry_run
        if adopted:
            library.set_search_settings(tool.name, done.tool_options)
    if asked.as_json:
        print_json(tuning_to_dict(done, adopted=adopted))
    else:
        _print_tuning(done, adopted=adopted)


def tuning_to_dict(tuning: Tuning, *, adopted: bool) -> dict[str, Any]:
    """Return what was tried and found as a plain dictionary."""
    from bunko.evaluation.tune import MEASURE, relevant_options

    result: dict[str, Any] = {
        "tool": tuning.tool.name,
        "adopted": adopted,
        "better": tuning.is_better,
        "reason": tuning.reason,
        "measure": MEASURE,
        "before": relevant_options(tuning.current),
        "best": relevant_options(tuning.best),
        "tried": tuning.trial_count,
        "questions": tuning.queries_by_kind,
        "chosen_on": {"questions": tuning.query_counts[0], "documents": tuning.document_counts[0]},
        "checked_on": {"questions": tuning.query_counts[1], "documents": tuning.document_counts[1]},
    }
    if tuning.trial_count:
        result["chosen_on"] |= {"before": round(tuning.choice_scores[0], 6), "after": round(tuning.choice_scores[1], 6)}
    if tuning.holdout_difference is not None:
        row = tuning.holdout_difference
        result["checked_on"] |= {
            "before": round(row.first, 6), "after": round(row.second, 6), "difference": round(row.difference, 6),
            "interval": [round(row.low, 6), round(row.high, 6)], "p": round(row.p, 6),
            "wins": row.wins, "losses": row.losses, "ties": row.ties,
        }  # fmt: skip
        result["kinds"] = [
            {
                "kind": one.name,
                "questions": one.query_count,
                "before": round(one.before, 6),
                "after": round(one.after, 6),
            }
            for one in (*tuning.kind_scores, *tuning.family_scores)
        ]
    return result


def _print_tuning(tuning: Tuning, *, adopted: bool) -> None:
    from bunko.evaluation.tune import MEASURE, relevant_options

    made = ", ".join(f"{kind} {number}" for kind, number in tuning.queries_by_kind.items())
    click.echo(f"Questions: {sum(tuning.query_counts)}{f' ({made})' if made else ''}")
    if tuning.trial_count:
        click.echo(f"Now: {format_settings(relevant_options(tuning.current))}")
        click.echo(f"Best of {tuning.trial_count} tried: {format_settings(relevant_options(tuning.best))}\n")
        halves = [["chosen on", *_half_counts(tuning, 0), *_format_change(*tuning.choice_scores), ""]]
        if tuning.holdout_difference is not None:
            row = tuning.holdout_difference
            interval = f"[{row.low:+.4f}, {row.high:+.4f}]"
            halves.append(["checked on", *_half_counts(tuning, 1), *_format_change(row.first, row.second), interval])
        head = ["half", "questions", "documents", "before", "after", "gain", "95 % interval"]
        print_table(f"{MEASURE}, documents drawn anew for the interval", head, halves)
    if tuning.kind_scores:
        rows = [
            [one.name, str(one.query_count), *_format_change(one.before, one.after)]
            for one in (*tuning.kind_scores, *tuning.family_scores)
        ]
        print_table("The half that checked, by kind", ["kind", "questions", "before", "after", "gain"], rows)
    name = replace_controls(tuning.tool.name)
    if adopted and not tuning.tool_options:
        click.echo(f"Adopted: {name} is searched as the settings say again.")
    elif adopted:
        click.echo(f"Adopted: {name} is searched so from now on. Undo it with: bunko tune -n {name} --undo")
    elif tuning.is_better:
        click.echo(f"Nothing was changed. Without --dry-run {name} would be searched so from now on.")
    else:
        click.echo(replace_controls(f"Nothing is adopted: {tuning.reason}."))


def _half_counts(tuning: Tuning, half: int) -> tuple[str, str]:
    return str(tuning.query_counts[half]), str(tuning.document_counts[half])


def _format_change(before: float, after: float) -> tuple[str, str, str]:
    return f"{before:.4f}", f"{after:.4f}", f"{after - before:+.4f}"


def format_settings(settings: dict[str, Any]) -> str:
    """Return settings in one line."""
    return ", ".join(f"{key} {str(value).lower()}" for key, value in settings.items())
