"""Run the demo and the fast tests in clean clones, in every environment that bunko promises, and write a table of it.

usage: python scripts/everywhere.py [ROW …]

The table is in CONTRIBUTING.md; without arguments every row of it is run, which takes about half an hour on two cores.
Some rows need root, on Debian. What each row printed is in build/everywhere/.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from datetime import date
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "CONTRIBUTING.md"
LOGS = ROOT / "build" / "everywhere"
BEGIN, END = "<!-- test-everywhere: begin -->\n", "<!-- test-everywhere: end -->"
# Each row runs in a clone of its own, as a newcomer has it.
ROWS = {
    "root": "make demo test",
    "an ordinary user": "chown -R nobody . && setpriv --reuid=nobody --clear-groups env HOME=$PWD make demo test",
    # Where the locale is missing, all programs would quietly use another one.
    "Tokyo, Japanese locale": "mkdir build && localedef -i ja_JP -f UTF-8 build/ja_JP.UTF-8 && "
    "LOCPATH=$PWD/build TZ=Asia/Tokyo LC_ALL=ja_JP.UTF-8 make demo test",
    "the first Python": "make demo test PYTHON=/usr/bin/python3.11",
    "Python of Debian 13": "make test-python PYTHON=python3.13",
    "the last Python": "make test-python PYTHON=python3.14",
    "oldest packages": "make test-lowest",
    "newest packages": "make test-newest",
    "without each package": "make test-packages",
}
PYTHON_VERSION = re.compile(r"^platform \w+ -- Python ([\d.]+)", re.MULTILINE)
TEST_COUNTS = re.compile(r"^=*\s*(\d+ (?:passed|failed|error).*?) in [\d.]+s", re.MULTILINE)
DEMO_END = "More: README.md"


def main(names: list[str]) -> None:
    """Run the rows, and write those that ran into the table."""
    table = read_table()
    for name in names or ROWS:
        print(f"{name}: {ROWS[name]}", flush=True)
        table[name] = run_row(ROWS[name], LOGS / f"{name}.log")
        print(f"  {table[name]}", flush=True)
        write_table(table)


def run_row(command: str, log: Path) -> str:
    """Run a command in a clean clone, with its output in a log, and return the cells of its row."""
    log.parent.mkdir(parents=True, exist_ok=True)
    # Outside /tmp's usual rights: an ordinary user must be able to enter the clone.
    folder = Path(tempfile.mkdtemp(prefix="bunko-everywhere-"))
    try:
        folder.chmod(0o755)
        clone = folder / "bunko"
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
        with log.open("w", encoding="utf-8") as stream:
            run = subprocess.run(["sh", "-c", command], cwd=clone, stdout=stream, stderr=subprocess.STDOUT)
        output = log.read_text("utf-8", errors="replace")
        if run.returncode:
            print(output[-4000:])
        version, counts = PYTHON_VERSION.search(output), TEST_COUNTS.findall(output)
        demo = "runs" if DEMO_END in output else "–"
        tests = counts[-1] if counts else f"failed with exit code {run.returncode}"
        return f"{version[1] if version else '–'} | {demo} | {tests} | {date.today()}"
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def read_table() -> dict[str, str]:
    """Return the rows of the table by their names."""
    lines = PAGE.read_text("utf-8").partition(BEGIN)[2].partition(END)[0].splitlines()
    rows = (re.fullmatch(r"\| (.+?) \| `.+?` \| (.+) \|", line) for line in lines)
    return {row[1]: row[2] for row in rows if row and row[1] in ROWS}


def write_table(table: dict[str, str]) -> None:
    """Write the table into CONTRIBUTING.md."""
    before, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    head = "| environment | in a clean clone | Python | demo | tests | on |\n|---|---|---|---|---|---|\n"
    rows = "".join(f"| {name} | `{ROWS[name]}` | {table[name]} |\n" for name in ROWS if name in table)
    PAGE.write_text(before + BEGIN + head + rows + END + after, "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
