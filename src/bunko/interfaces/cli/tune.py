"""`bunko tune`: a tool in, the settings that find its documents best out, kept if they prove themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from bunko.interfaces.cli.evaluation_output import print_table, watching
from bunko.interfaces.cli.options import chosen, print_json, shared, tool_names, visible

if TYPE_CHECKING:
    from bunko.evaluation.tune import Tuning


@click.command()
@click.option("--name", "-n", metavar="TOOL", help="The tool. [the only one]", shell_complete=tool_names)
@click.option("--dry-run", is_flag=True, help="Only show what would be done.")
@click.option("--undo", is_flag=True, help="Search the tool as the settings say again.")
@shared
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
    asked = chosen(options)
    if undo and dry_run:
        raise click.UsageError("--undo and --dry-run do not go together.")
    with asked.open(create=False) as library:
        tool = library.only(name)
        if undo:
            own = tool.options.get("search")
            library.tune(tool.name, {})
            if asked.as_json:
                print_json({"tool": tool.name, "removed": own or {}})
            elif own:
                click.echo(visible(f"{tool.name} is searched as the settings say again; its own were {told(own)}."))
            else:
                click.echo(visible(f"{tool.name} has no settings of its own."))
            return
        from bunko.evaluation.tune import tune

        with watching() as watch:
            done = tune(library, tool.name, watch=watch)
        adopted = done.better and not dry_run
        if adopted:
            library.tune(tool.name, done.own)
    if asked.as_json:
        print_json(payload(done, adopted=adopted))
    else:
        _show(done, adopted=adopted)


def payload(done: Tuning, *, adopted: bool) -> dict[str, Any]:
    """Return what was tried and found as a plain dictionary."""
    from bunko.evaluation.tune import MEASURE, settled

    result: dict[str, Any] = {
        "tool": done.tool.name,
        "adopted": adopted,
        "better": done.better,
        "reason": done.why_not,
        "measure": MEASURE,
        "before": settled(done.now),
        "best": settled(done.best),
        "tried": done.tried,
        "questions": done.made,
        "chosen_on": {"questions": done.questions[0], "documents": done.documents[0]},
        "checked_on": {"questions": done.questions[1], "documents": done.documents[1]},
    }
    if done.tried:
        result["chosen_on"] |= {"before": round(done.chosen[0], 6), "after": round(done.chosen[1], 6)}
    if done.checked is not None:
        row = done.checked
        result["checked_on"] |= {
            "before": round(row.first, 6), "after": round(row.second, 6), "difference": round(row.difference, 6),
            "interval": [round(row.low, 6), round(row.high, 6)], "p": round(row.p, 6),
            "wins": row.wins, "losses": row.losses, "ties": row.ties,
        }  # fmt: skip
        result["kinds"] = [
            {"kind": one.name, "questions": one.questions, "before": round(one.before, 6), "after": round(one.after, 6)}
            for one in (*done.kinds, *done.families)
        ]
    return result


def _show(done: Tuning, *, adopted: bool) -> None:
    from bunko.evaluation.tune import MEASURE, settled

    made = ", ".join(f"{kind} {number}" for kind, number in done.made.items())
    click.echo(f"Questions: {sum(done.questions)}{f' ({made})' if made else ''}")
    if done.tried:
        click.echo(f"Now: {told(settled(done.now))}")
        click.echo(f"Best of {done.tried} tried: {told(settled(done.best))}\n")
        halves = [["chosen on", *_size(done, 0), *_change(*done.chosen), ""]]
        if done.checked is not None:
            row = done.checked
            interval = f"[{row.low:+.4f}, {row.high:+.4f}]"
            halves.append(["checked on", *_size(done, 1), *_change(row.first, row.second), interval])
        head = ["half", "questions", "documents", "before", "after", "gain", "95 % interval"]
        print_table(f"{MEASURE}, documents drawn anew for the interval", head, halves)
    if done.kinds:
        rows = [
            [one.name, str(one.questions), *_change(one.before, one.after)] for one in (*done.kinds, *done.families)
        ]
        print_table("The half that checked, by kind", ["kind", "questions", "before", "after", "gain"], rows)
    name = visible(done.tool.name)
    if adopted and not done.own:
        click.echo(f"Adopted: {name} is searched as the settings say again.")
    elif adopted:
        click.echo(f"Adopted: {name} is searched so from now on. Undo it with: bunko tune -n {name} --undo")
    elif done.better:
        click.echo(f"Nothing was changed. Without --dry-run {name} would be searched so from now on.")
    else:
        click.echo(visible(f"Nothing is adopted: {done.why_not}."))


def _size(done: Tuning, half: int) -> tuple[str, str]:
    return str(done.questions[half]), str(done.documents[half])


def _change(before: float, after: float) -> tuple[str, str, str]:
    return f"{before:.4f}", f"{after:.4f}", f"{after - before:+.4f}"


def told(options: dict[str, Any]) -> str:
    """Return settings in one line."""
    return ", ".join(f"{key} {str(value).lower()}" for key, value in options.items())
