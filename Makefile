# Everything a user or a developer calls. Each target sets up what it needs.
#   make run    the whole chain on the embedded demo, in .venv/
#   make test   the tests that run anywhere: no root, no network after set-up
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/pip install --quiet --disable-pip-version-check -c envs/constraints.txt

.PHONY: run test test-all lint clean

run: .venv/run
	$(BIN)/snakemake --cores all all

test: .venv/test
	$(BIN)/pytest -m "not long and not peers and not cluster and not page"

test-all: .venv/test
	$(BIN)/pytest -m "not peers and not cluster and not page"

lint: .venv/test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/snakefmt --check workflow
	$(BIN)/snakemake --lint

.venv/run: envs/constraints.txt envs/data.txt envs/train.txt pyproject.toml
	$(PYTHON) -m venv .venv
	$(PIP) -r envs/data.txt -r envs/train.txt
	$(PIP) --no-deps --editable .
	touch $@

.venv/test: .venv/run envs/dev.txt
	$(PIP) -r envs/dev.txt
	touch $@

clean:
	rm -rf results resources
