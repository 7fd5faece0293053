"""Choose and run the program that opens a document: the editor, the program of the desktop, or the browser."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from bunko.errors import BunkoError, SettingsError, SourceError

if TYPE_CHECKING:
    from bunko.library.reading.find_document import FoundDocument

# How editors are told the line of a file.
_LINE_ARGUMENTS: tuple[tuple[str, Callable[[str, int], list[str]]], ...] = (
    (
        "vi vim nvim gvim mvim view emacs emacsclient nano pico micro joe ne mg kak gedit bbedit",
        lambda file, line: [f"+{line}", file],
    ),
    ("code code-insiders codium vscodium cursor windsurf", lambda file, line: ["-g", f"{file}:{line}"]),
    ("subl sublime_text hx helix zed zeditor", lambda file, line: [f"{file}:{line}"]),
    ("kate kwrite mate", lambda file, line: ["-l", str(line), file]),
    (
        "idea pycharm webstorm phpstorm rubymine goland clion rider rustrover",
        lambda file, line: ["--line", str(line), file],
    ),
    ("notepad++", lambda file, line: [f"-n{line}", file]),
)
_PROGRAM_SUFFIXES = (".exe", ".cmd", ".bat", ".appimage")
# Tried if no editor is set and there is no desktop; the first is the easiest to leave.
_TERMINAL_EDITORS = ("nano", "vi", "vim")
_NEED_TERMINAL = frozenset("vi vim nvim view nano pico micro joe ne mg kak hx helix ed less more".split())
_EDITOR_HINT = "Set $EDITOR to the command of your editor, for example: export EDITOR=nano"
_BROWSER_HINT = "Set $BROWSER to the command of your browser, for example: export BROWSER=firefox"


def open_command(target: FoundDocument, environ: Mapping[str, str], *, library_flags: str = "") -> list[str]:
    """Return the command that opens a document; raise an error if it has no file."""
    if target.url:
        if browsers := environ.get("BROWSER"):
            words = _split(browsers.split(os.pathsep)[0], "BROWSER", _BROWSER_HINT)
            if any("%s" in word for word in words):
                return [word.replace("%s", target.url) for word in words]
            return [*words, target.url]
        if command := _desktop_command(target.url, environ):
            return command
        raise SettingsError("There is no browser", hint=_BROWSER_HINT)
    file = target.file
    get_command = f"bunko get {shlex.quote(target.uri)} -n {shlex.quote(target.tool.name)}{library_flags}"
    if file is None:
        raise SourceError(
            f"{target.tool.name} has the text of {target.uri}, but no file",
            hint=f"Read it with: {get_command}",
        )
    if not file.exists():
        raise SourceError(f"{file} does not exist", hint=f"Restore it, or read its text with: {get_command}")
    if not target.is_text:
        command = _desktop_command(str(file), environ)
        if command is None:
            raise SettingsError(
                f"There is no program to open {file}",
                hint=f"Install xdg-open, or read the text of the file with: {get_command}",
            )
        return command
    if editor := environ.get("VISUAL") or environ.get("EDITOR"):
        return editor_command(editor, file, target.line)
    if command := _desktop_command(str(file), environ, needs_display=True):
        return command
    for editor in _TERMINAL_EDITORS:
        if shutil.which(editor, path=environ.get("PATH")):
            return editor_command(editor, file, target.line)
    raise SettingsError("There is no editor", hint=_EDITOR_HINT)


def editor_command(editor: str, file: Path, line: int) -> list[str]:
    """Return the command that opens a file in an editor, at a line if it is not 0 and the editor is known."""
    command = _split(editor, "EDITOR", _EDITOR_HINT)
    name = PurePath(command[0]).name.lower()
    for suffix in _PROGRAM_SUFFIXES:
        name = name.removesuffix(suffix)
    for editors, line_arguments in _LINE_ARGUMENTS:
        if line and name in editors.split():
            return [*command, *line_arguments(str(file), line)]
    return [*command, str(file)]


def run_program(command: Sequence[str], *, is_browser: bool = False) -> None:
    """Run a program to its end, without a shell; its output goes to the terminal even if ours goes to a pipe."""
    program = shutil.which(command[0])
    if program is None:
        raise SettingsError(f"There is no program {command[0]!r}", hint=_BROWSER_HINT if is_browser else _EDITOR_HINT)
    stdout = sys.stderr if sys.stderr.isatty() and not sys.stdout.isatty() else None
    try:
        exit_code = subprocess.run([program, *command[1:]], stdout=stdout, check=False).returncode
    except OSError as error:
        raise SettingsError(f"{program} cannot be run: {error.strerror}", hint=_EDITOR_HINT) from error
    if exit_code:
        raise BunkoError(f"{command[0]} ended with exit code {exit_code}", hint=f"It was run as: {shlex.join(command)}")


def start_program(command: Sequence[str], *, is_browser: bool = False) -> None:
    """Start a program with a window of its own, and do not wait for it; one that needs a terminal is an error."""
    name = PurePath(command[0]).name.lower()
    if name in _NEED_TERMINAL:
        raise SettingsError(
            f"{command[0]} needs a terminal",
            hint="Set $VISUAL to an editor with a window, for example: code, gedit or kate.",
        )
    program = shutil.which(command[0])
    if program is None:
        raise SettingsError(f"There is no program {command[0]!r}", hint=_BROWSER_HINT if is_browser else _EDITOR_HINT)
    nothing = subprocess.DEVNULL
    try:
        process = subprocess.Popen(
            [program, *command[1:]], stdin=nothing, stdout=nothing, stderr=nothing, start_new_session=True
        )
    except OSError as error:
        raise SettingsError(f"{program} cannot be run: {error.strerror}", hint=_EDITOR_HINT) from error
    # Without a wait, its end would leave a zombie.
    threading.Thread(target=process.wait, name="bunko-editor", daemon=True).start()


def _desktop_command(target: str, environ: Mapping[str, str], *, needs_display: bool = False) -> list[str] | None:
    """Return the command that opens a file or an address with the program the user has chosen for it."""
    if sys.platform == "darwin":
        return ["open", target]
    if sys.platform == "win32":
        return ["rundll32", "url.dll,FileProtocolHandler", target]  # unlike `start`, not a command of the shell
    if needs_display and not (environ.get("DISPLAY") or environ.get("WAYLAND_DISPLAY")):
        return None
    return ["xdg-open", target] if shutil.which("xdg-open", path=environ.get("PATH")) else None


def _split(command: str, variable: str, hint: str) -> list[str]:
    try:
        # A path on Windows has backslashes, which do not escape anything there.
        words = shlex.split(command, posix=os.name != "nt")
    except ValueError as error:
        raise SettingsError(f"${variable} cannot be understood: {command}", hint=hint) from error
    words = [word.strip('"') for word in words] if os.name == "nt" else words
    if not words:
        raise SettingsError(f"${variable} is empty", hint=hint)
    return words
