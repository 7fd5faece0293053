"""What every reader of a file format promises."""

from __future__ import annotations

import pkgutil
import re
import subprocess
import sys
import tomllib
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bunko import readers
from bunko.errors import SourceError
from bunko.readers import code, office
from bunko.settings import load_settings
from bunko.types import Text

READERS = readers.builtin_readers()


def test_every_module_declares_a_reader_or_is_a_helper() -> None:
    modules = {module.name for module in pkgutil.iter_modules(readers.__path__)}
    assert modules == {
        *(READERS.keys() - code.READERS.keys() - office.READERS.keys()),
        "code",
        "office",
        *readers.HELPER_MODULES,
    }


@pytest.mark.parametrize("name", READERS)
def test_a_reader_declares_its_suffixes_its_type_and_an_extra_that_exists(name: str) -> None:
    reader = READERS[name]
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert reader.suffixes
    assert all(suffix.startswith(".") and suffix == suffix.casefold() for suffix in reader.suffixes)
    assert set(reader.default_suffixes) <= set(reader.suffixes)
    assert "/" in reader.media_type
    assert reader.extra in ("", *project["optional-dependencies"])
    dependencies = {re.split(r"[<>=\[]", requirement)[0] for requirement in project["dependencies"]}
    assert bool(reader.package) == (bool(reader.extra) or reader.package in dependencies)


def test_a_suffix_has_one_reader() -> None:
    suffixes = [suffix for reader in READERS.values() for suffix in reader.suffixes]
    assert len(suffixes) == len(set(suffixes))


@pytest.mark.parametrize("name", READERS)
@settings(deadline=None, max_examples=30)
@given(data=st.binary(max_size=300) | st.text(max_size=100).map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_any_bytes_are_read_as_text_of_the_declared_type_or_refused(name: str, data: bytes) -> None:
    reader = READERS[name]
    with suppress(SourceError):
        text = readers.read(data, f"Folder.d/FILE{reader.suffixes[-1].upper()}")
        assert isinstance(text, Text)
        assert text.media_type == reader.media_type


def test_a_folder_imports_what_is_read_by_default() -> None:
    documents = {".md", ".txt", ".html", ".pdf", ".docx", ".pptx", ".xlsx", ".epub"}
    texts = {".eml", ".mbox", ".ipynb", ".org", ".rst"}
    assert documents | texts <= set(readers.default_suffixes())
    assert readers.default_suffixes() == tuple(
        suffix for reader in READERS.values() for suffix in reader.default_suffixes
    )
    assert load_settings(environ={}).settings.scanner.file_extensions == readers.default_suffixes()


@pytest.mark.slow
def test_finding_the_readers_loads_no_parser() -> None:
    heavy = {
        "selectolax", "pypdfium2", "yaml", "numpy", "importlib.metadata", "zipfile", "subprocess",
        "xml.etree.ElementTree", "bunko.readers.html.blocks", "bunko.readers.office.docx", "bunko.readers.pdf.layout",
        "email", "json", "tree_sitter", "bunko.readers.definitions", "bunko.readers.mime",
    }  # fmt: skip
    code = (
        "import sys; from bunko import readers; readers.read(b'text', 'a.md'); readers.read(b'text', 'ChangeLog')\n"
        f"print({heavy} & sys.modules.keys())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


@pytest.mark.slow
def test_an_installed_package_adds_a_reader(tmp_path: Path) -> None:
    metadata = tmp_path / "bunko_shout-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: bunko-shout\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[bunko.readers]\nshout = bunko_shout\n")
    (tmp_path / "bunko_shout.py").write_text(
        '"""Read files of shouts."""\n'
        "from bunko.readers.reader import Reader\n"
        "from bunko.types import Text\n"
        "def read(data):\n"
        "    return Text(data.decode().upper(), 'text/plain', 'utf-8')\n"
        "READER = Reader(read, suffixes=('.shout', '.md'), media_type='text/plain')\n"
    )
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r}); from bunko import readers\n"
        "print([readers.read(b'hello', name).text for name in ('a.shout', 'a.md', 'a.rst')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "['HELLO', 'hello', 'hello']\n", "a built-in suffix cannot be replaced"
