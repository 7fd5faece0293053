"""The commands, a file for each or for a family; `bunko.interfaces.cli.main` names them and imports one at a time."""
