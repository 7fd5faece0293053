"""The classes that the docs recommend for LangChain and LlamaIndex, with the packages of both and bunko together."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PYTHON = ROOT / ".venv-retrievers" / "bin" / "python"
LANGCHAIN, LLAMA_INDEX = re.findall(
    r"^```python\n(.*?)^```", (ROOT / "docs" / "retrievers.md").read_text(encoding="utf-8"), re.M | re.S
)
SHOWN = ["handbook/oncall.md:L16-L19 On-call guide"]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not (PYTHON.parents[1] / ".installed").exists(),
        reason="LangChain and LlamaIndex are not in .venv-retrievers: make test-slow installs them",
    ),
]
# What a framework does with a retriever: alone, at the same time, and as a part of something else.
USES_OF_LANGCHAIN = """
import asyncio
from langchain_core.runnables import RunnableLambda
with bunko.open("notes") as library:
    retriever = BunkoRetriever(library=library, options={"top_k": 2, "tool": "documents"})
    queries = ["走る", "shiomi-ctl rollback", 'print("a") -x']
    one_by_one = [retriever.invoke(query) for query in queries]
    assert retriever.batch(queries) == asyncio.run(retriever.abatch(queries)) == one_by_one
    chain = retriever | RunnableLambda(lambda documents: [document.metadata["source"] for document in documents])
    assert chain.invoke("shiomi-ctl rollback")[0].startswith("handbook/oncall.md:L")
    for document in one_by_one[0]:
        assert document.page_content == library.read(document.metadata["source"]).strip()
    assert [len(documents) for documents in one_by_one[:2]] == [2, 2]
    assert document.id.startswith("documents/")
"""
USES_OF_LLAMA_INDEX = """
import asyncio
from llama_index.core import get_response_synthesizer
from llama_index.core.llms import MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine
with bunko.open("notes") as library:
    retriever = BunkoRetriever(library, top_k=2)
    results = retriever.retrieve("走る")
    assert [r.node.node_id for r in asyncio.run(retriever.aretrieve("走る"))] == [r.node.node_id for r in results]
    assert len(results) == 2 and results[0].score >= results[1].score > 0
    for result in results:
        assert result.node.get_content() == library.read(result.node.metadata["source"]).strip()
    engine = RetrieverQueryEngine(retriever, get_response_synthesizer(llm=MockLLM(), response_mode="compact"))
    response = engine.query("shiomi-ctl rollback")
    assert response.source_nodes[0].node.metadata["source"].startswith("handbook/oncall.md:L")
    assert "shiomi-ctl rollback" in str(response)  # this model repeats the prompt with the passages
"""


@pytest.mark.parametrize(
    ("recipe", "uses"),
    [
        pytest.param(LANGCHAIN, USES_OF_LANGCHAIN, id="LangChain"),
        pytest.param(LLAMA_INDEX, USES_OF_LLAMA_INDEX, id="LlamaIndex"),
    ],
)
def test_a_library_is_a_retriever(recipe: str, uses: str, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples" / "library", tmp_path / "notes")
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTHONUTF8": "1", "LANGSMITH_TRACING": "false"}
    done = subprocess.run(
        [PYTHON, "-c", recipe + uses], cwd=tmp_path, env=environ, capture_output=True, text=True, encoding="utf-8"
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 3
    assert lines[:1] == SHOWN
