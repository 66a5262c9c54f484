# The two commands of the README, and what developers run beside them.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test lint types slow bench clean

demo: .venv/installed-view
	$(BIN)/zoo demo

test: .venv/installed-test
	$(BIN)/python -m pytest -n 2

slow: .venv/installed-test
	$(BIN)/python -m pytest -m slow

lint: .venv/installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/installed-test
	$(BIN)/mypy

bench: .venv/installed-test
	$(BIN)/python benchmarks/startup.py
	$(BIN)/python benchmarks/large_spec.py
	$(BIN)/python benchmarks/generation.py
	$(BIN)/python benchmarks/word2vec.py
	$(BIN)/python benchmarks/load.py
	$(BIN)/python benchmarks/save.py
	$(BIN)/python benchmarks/headers.py

clean:
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis zoo-demo

.venv/bin/python:
	$(PYTHON) -m venv .venv

# One marker an extra: `make demo` installs less than `make test`.
.venv/installed-%: pyproject.toml constraints.txt | .venv/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[$*]'
	touch $@
