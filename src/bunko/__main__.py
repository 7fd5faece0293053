"""Run the command line with `python -m bunko`."""

from bunko.interfaces.cli.main import main

if __name__ == "__main__":
    main()
