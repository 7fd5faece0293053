"""The `bunko completion` command: print a shell completion script."""

from __future__ import annotations

import click

from bunko.interfaces.cli.options import print_json

SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(shell: str, as_json: bool) -> None:
    """Print a script that completes commands in your shell.

    \b
    To install it permanently, run one of these and open a new terminal:
      bash  echo 'eval "$(bunko completion bash)"' >> ~/.bashrc     (bash 4.4 or newer)
      zsh   echo 'eval "$(bunko completion zsh)"' >> ~/.zshrc       (after compinit)
      fish  bunko completion fish > ~/.config/fish/completions/bunko.fish

    \b
    Example:
      eval "$(bunko completion bash)"
    """
    from click.shell_completion import get_completion_class

    from bunko.interfaces.cli.main import bunko

    completion_class = get_completion_class(shell)
    assert completion_class is not None
    script = completion_class(bunko, {}, "bunko", "_BUNKO_COMPLETE").source()
    if as_json:
        print_json({"shell": shell, "script": script})
    else:
        click.echo(script)
