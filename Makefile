# `make demo` and `make test` are all a newcomer needs; both use one environment of their own, .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
MODELS := .venv-models
# The clients of PostgreSQL, Chroma and Milvus, Ray, and a Milvus server, whose packages clash with the client's.
SCALE := .venv-scale
MILVUS := .venv-milvus
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# The pip of this machine installs into .venv if it can (22.3 and later); a pip of its own costs time and disk.
HAS_PIP := $(shell $(PYTHON) -m pip --python "$$($(PYTHON) -c 'import sys; print(sys.executable)')" --version >/dev/null 2>&1 && echo yes)
PIP := $(if $(HAS_PIP),$(PYTHON) -m pip --python $(BIN)/python,$(BIN)/python -m pip)

.PHONY: demo test test-slow test-models test-scale check check-page format bench bench-scale docs mcpb node node-page chromium clean

# Two installers in one environment would get in each other's way.
.NOTPARALLEL:

# What developers need more than doubles the environment, so the demo does without. It compiles no package either: most
# modules are never imported. The tests start many processes, so for them everything is compiled once.
$(VENV)/.installed: pyproject.toml | $(BIN)/python
	$(PIP) install --quiet --no-compile --editable '.[dev]'
	-$(BIN)/python -m compileall -q -j 0 $(VENV)/lib
	touch $(VENV)/.product $@

$(VENV)/.product: pyproject.toml | $(BIN)/python
	$(PIP) install --quiet --no-compile --editable .
	touch $@

$(BIN)/python:
	$(PYTHON) -m venv $(if $(HAS_PIP),--without-pip) $(VENV)

$(VENV)/.bench: $(VENV)/.installed
	$(PIP) install --quiet --editable '.[bench]'
	touch $@

## A small bilingual library, real searches, and how to go on.
demo: $(VENV)/.product
	$(BIN)/python examples/demo.py

## The test suite, without the slow proofs.
test: $(VENV)/.installed
	$(BIN)/python -m pytest -n auto

## kill -9, many processes, a full disk, MCP's own conformance suite: minutes, not seconds.
test-slow: $(VENV)/.installed
	-$(MAKE) node
	-$(MAKE) node-page
	-$(MAKE) chromium
	$(BIN)/python -m pytest -n 2 -m slow

## Local models through torch, in .venv-models: torch is large, and nothing else needs it. This version of it is the one
## that is tested. For a build without CUDA, name PyTorch's own index in PIP_EXTRA_INDEX_URL, or a folder in PIP_FIND_LINKS.
test-models: $(MODELS)/.installed
	$(MODELS)/bin/python -m pytest -m models tests/models

$(MODELS)/.installed: pyproject.toml
	test -x $(MODELS)/bin/python || $(PYTHON) -m venv $(MODELS)
	$(MODELS)/bin/python -m pip install --quiet torch==2.13.0
	$(MODELS)/bin/python -m pip install --quiet --editable '.[transformers]' 'pytest>=8.3'
	touch $@

## Real servers of other engines on loopback: PostgreSQL of this machine, Chroma, Milvus and Ray. A part that is missing or
## cannot be installed is skipped with a sentence.
test-scale: $(SCALE)/.installed
	-$(MAKE) $(MILVUS)/.installed
	$(SCALE)/bin/python -m pytest -n 2 -m scale --ignore tests/scale/test_ray.py
# Clusters of one machine choose the ports of their clients from the same range, so one runs at a time.
	$(SCALE)/bin/python -m pytest -m scale tests/scale/test_ray.py

$(SCALE)/.installed: pyproject.toml
	test -x $(SCALE)/bin/python || $(PYTHON) -m venv $(SCALE)
	$(SCALE)/bin/python -m pip install --quiet --editable '.[dev,postgres]'
	-$(SCALE)/bin/python -m pip install --quiet --editable '.[chroma]'
	-$(SCALE)/bin/python -m pip install --quiet --editable '.[milvus-lite]' 'pymilvus==2.6.6' 'milvus-lite==2.5.1'
	-$(SCALE)/bin/python -m pip install --quiet --editable '.[ray]'
	touch $@

$(MILVUS)/.installed: Makefile
	test -x $(MILVUS)/bin/python || $(PYTHON) -m venv $(MILVUS)
	$(MILVUS)/bin/python -m pip install --quiet 'milvus-lite>=3.2,<4' 'pymilvus>=3,<4'
	touch $@

## What the slow tests take from npm, at pinned versions, with a Node >= 22 of its own; needs any npm on the machine.
node: .node/.installed

.node/.installed: tests/slow/node/package.json tests/slow/node/package-lock.json
	@command -v npm >/dev/null || { echo "There is no npm here: tests that need Node are skipped."; exit 1; }
	mkdir -p .node
	cp $^ .node/
	cd .node && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
	touch $@

## What checks the page, at pinned versions: axe-core, TypeScript and Biome.
node-page: .node-page/.installed

.node-page/.installed: tests/browser/node/package.json tests/browser/node/package-lock.json
	@command -v npm >/dev/null || { echo "There is no npm here: checks of the page that need it are skipped."; exit 1; }
	mkdir -p .node-page
	cp $^ .node-page/
	cd .node-page && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
	touch $@

## The browser that the slow tests look at the page with, and a font for Japanese; needs apt-get and root.
chromium:
	@command -v chromium chromium-browser >/dev/null || { \
		command -v apt-get >/dev/null && test "$$(id -u)" = 0 \
		|| { echo "Chromium is missing, and only root can install it, with apt-get: tests of the page are skipped."; exit 1; }; \
		apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium fonts-noto-cjk; }

## dist/bunko.mcpb, which desktop assistants install with a double click.
mcpb: .node/.installed
	rm -rf build/mcpb && mkdir -p build/mcpb dist
	cp -R mcpb/. src pyproject.toml README.md LICENSE build/mcpb/
	find build/mcpb -name __pycache__ -prune -exec rm -rf {} +
	PATH="$(CURDIR)/.node/node_modules/.bin:$$PATH" mcpb pack build/mcpb dist/bunko.mcpb

## Format, lint, types, layers, then the tests.
check: $(VENV)/.installed
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(MAKE) check-page
	$(MAKE) test

## The types and the style of the page's scripts and styles. Where npm is missing, this is skipped, except in CI.
PAGE_CHECKS := .node-page/node_modules/.bin
PAGE_ASSETS := src/bunko/interfaces/page/assets
check-page:
	@if $(MAKE) node-page; then \
		$(PAGE_CHECKS)/tsc --project tests/browser/node \
		&& $(PAGE_CHECKS)/biome lint --error-on-warnings --config-path=tests/browser/node/biome.json $(PAGE_ASSETS)/js $(PAGE_ASSETS)/css; \
	else \
		echo "The scripts of the page were not checked: TypeScript and Biome come from npm."; test -z "$$CI"; \
	fi

format: $(VENV)/.installed
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

## Every figure of docs/performance.md, against peers in the same run.
bench: $(VENV)/.bench
	$(BIN)/python -m bench
	-$(MAKE) bench-scale

## What every store and index costs. An engine that is missing is left out with a sentence.
bench-scale: $(SCALE)/.bench
	-$(MAKE) $(MILVUS)/.installed
	$(SCALE)/bin/python -m bench engines --write

$(SCALE)/.bench: $(SCALE)/.installed
	$(SCALE)/bin/python -m pip install --quiet 'psutil>=6'
	touch $@

## The pages that are written from the code itself; tests fail while one is stale.
docs: $(VENV)/.installed
	$(BIN)/python docs/generate.py
	$(BIN)/python docs/tools.py

clean:
	rm -rf $(VENV) $(MODELS) $(SCALE) $(MILVUS) .node .node-page .demo build dist
