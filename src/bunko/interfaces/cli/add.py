import click


@click.command()
def command() -> None:
    """Add a folder, a file or a web page, and import it.

    Example:
    """
