"""Know the folders of Obsidian and Logseq: where a vault is, and which of its folders hold no notes."""

from __future__ import annotations

from pathlib import Path

# What a program keeps for itself, by the name of its folder, and that of the folder above it where the name is common.
_INTERNAL_FOLDERS = {
    ".obsidian": "", ".trash": "",
    "bak": "logseq", ".recycle": "logseq", "version-files": "logseq", ".logseq": "",
}  # fmt: skip


def is_vault_internal(uri: str) -> bool:
    """Return whether a folder holds settings, backups or deleted notes of a vault."""
    above, _, name = uri.rpartition("/")
    parent = _INTERNAL_FOLDERS.get(name)
    return parent is not None and (not parent or above == parent or above.endswith(f"/{parent}"))


def is_vault(folder: Path) -> bool:
    """Return whether a folder is a vault of Obsidian or a graph of Logseq."""
    return bool(vault_program(folder))


def vault_program(folder: Path) -> str:
    """Return the program whose vault a folder is: Obsidian, Logseq, or an empty string."""
    try:
        if (folder / ".obsidian").is_dir():
            return "Obsidian"
        return "Logseq" if (folder / "logseq" / "config.edn").is_file() else ""
    except OSError:
        return ""
