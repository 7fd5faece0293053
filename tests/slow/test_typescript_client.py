"""A client in TypeScript that is generated from the OpenAPI description compiles and works."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from bunko.interfaces.api.openapi import describe_api
from tests.http.server import TOKEN, serve_site
from tests.slow import npm

pytestmark = pytest.mark.slow

PROGRAM = Path(__file__).parent / "node" / "api_client.ts"


def generate(folder: Path) -> None:
    npm.require()
    (folder / "node_modules").symlink_to(npm.FOLDER / "node_modules")
    (folder / "package.json").write_text('{"type": "module"}', "utf-8")
    (folder / "openapi.json").write_text(json.dumps(describe_api()), "utf-8")
    done = npm.run("openapi-typescript", folder / "openapi.json", "-o", folder / "api.d.ts")
    assert done.returncode == 0, done.stdout + done.stderr
    (folder / "node.d.ts").write_text("declare const process: { argv: string[] };\n", "utf-8")


def compile_program(folder: Path, program: Path) -> str:
    """Return what the compiler says of a program, which is nothing if all is well."""
    options = {
        "strict": True, "noUncheckedIndexedAccess": True, "target": "es2022", "lib": ["es2022", "dom"],
        "module": "nodenext", "types": [],
    }  # fmt: skip
    project = {"compilerOptions": options, "files": ["node.d.ts", program.name]}
    (folder / "tsconfig.json").write_text(json.dumps(project), "utf-8")
    return npm.run("tsc", "--project", folder).stdout


def test_a_generated_client_searches_reads_and_imports(tmp_path: Path) -> None:
    generate(tmp_path)
    program = Path(shutil.copy(PROGRAM, tmp_path))
    assert compile_program(tmp_path, program) == ""
    with serve_site(tmp_path / "site") as site:
        done = npm.run("node", program.with_suffix(".js"), site.address, TOKEN)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "path": "handbook/休暇と働き方.md",
        "text": "# 休暇と働き方",
        "parameter": "top_k",
        "job": "done",
    }


def test_the_compiler_notices_a_field_an_address_and_a_value_that_cannot_be(tmp_path: Path) -> None:
    generate(tmp_path)
    text = PROGRAM.read_text("utf-8")
    mistakes = (
        ("first.file_path,", "first.filename,", "'filename' does not exist"),
        ("top_k: 1", 'top_k: "one"', "'string' is not assignable to type 'number'"),
        ("/api/v1/search", "/api/v1/find", "/api/v1/find"),
    )
    for right, wrong, message in mistakes:
        assert right in text
        program = tmp_path / "wrong.ts"
        program.write_text(text.replace(right, wrong, 1), "utf-8")
        said = compile_program(tmp_path, program)
        assert "error TS" in said
        assert message in said
