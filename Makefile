# `make demo` and `make test` are all a newcomer needs; each makes its own environment in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: demo test test-slow check format bench docs clean

$(VENV)/.installed: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $@

$(VENV)/.bench: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --editable '.[bench]'
	touch $@

## A small bilingual library, real searches, and how to go on.
demo: $(VENV)/.installed
	$(BIN)/python examples/demo.py

## The test suite, without the slow proofs.
test: $(VENV)/.installed
	$(BIN)/python -m pytest -n auto

## kill -9, many processes, a full disk: minutes, not seconds.
test-slow: $(VENV)/.installed
	$(BIN)/python -m pytest -n 2 -m slow

## Format, lint, types, layers, then the tests.
check: $(VENV)/.installed
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(MAKE) test

format: $(VENV)/.installed
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

## Every figure of docs/performance.md, against peers in the same run.
bench: $(VENV)/.bench
	$(BIN)/python -m bench

clean:
	rm -rf $(VENV) .demo build dist
