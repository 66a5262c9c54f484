# Each target creates the virtual environment .venv first.
PYTHON ?= python3
BIN := .venv/bin

# Compiled modules are written even where the variable is set: without them each process of the
# tests that imports torch compiles it again, which takes 7 s.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo test slow nightly lint types hooks bench docs dist clean

demo: .venv/installed-text,view
	$(BIN)/zoo demo

test: .venv/installed-test
	$(BIN)/python -m pytest -n 3 --dist worksteal --cases sample

slow: .venv/installed-test
	$(BIN)/python -m pytest -m slow

nightly: .venv/installed-test
	$(BIN)/python -m pytest -n 2 -m 'not gpu'

lint: .venv/installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/installed-test
	$(BIN)/mypy

hooks: .venv/installed-test
	$(BIN)/python -m pip install --quiet --disable-pip-version-check pre-commit
	$(BIN)/pre-commit install

bench: .venv/installed-test
	$(BIN)/python lab/benchmarks/startup.py
	$(BIN)/python lab/benchmarks/large_spec.py
	$(BIN)/python lab/benchmarks/generation.py
	$(BIN)/python -m zoo bench --device cpu
	$(BIN)/python lab/benchmarks/load.py
	$(BIN)/python lab/benchmarks/save.py
	$(BIN)/python lab/benchmarks/headers.py
	$(BIN)/python lab/benchmarks/joint_ctc.py
	$(BIN)/python lab/benchmarks/parameters.py
	$(BIN)/python lab/benchmarks/metrics.py

docs: .venv/installed-docs
	$(BIN)/python docs/site/build_site.py

dist: .venv/installed-test
	rm -rf dist
	$(BIN)/python -m hatchling build
	cd weights && ../$(BIN)/python -m hatchling build -d ../dist

clean:
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis dist zoo-demo

.venv/bin/python:
	$(PYTHON) -m venv .venv

# One marker file per list of extras, so that `make demo` installs less than `make test`. Modules are compiled
# on first import: compiling all of them takes longer than the download. The pip of older versions of Python
# takes twice the time.
PIP_INSTALL = $(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check -c constraints.txt
.venv/installed-%: pyproject.toml constraints.txt | .venv/bin/python
	$(PIP_INSTALL) --upgrade pip
	$(PIP_INSTALL) -e '.[$*]'
	touch $@
