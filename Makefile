# Vitrine: `make run` and `make test` are the two commands of a fresh machine.
PYTHON ?= python3
VENV   ?= .venv
PIP_FLAGS ?=
BIN    := $(VENV)/bin
# The playwright wheel brings a Node.js, so the machine needs none.
NODE    = "$$($(BIN)/python -c 'import pathlib, playwright as p; print(pathlib.Path(p.__file__).parent)')/driver/node"
PIP    := $(BIN)/python -m pip --disable-pip-version-check

.PHONY: run test lint bench clean

run: $(VENV)/.installed
	@exec $(BIN)/python manage.py serve

test: lint
	@.ci/system-packages
	$(NODE) --test --test-reporter=dot tests/js/*.test.js
	@.ci/pytest $(BIN)/python

lint: $(VENV)/.installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/.installed-test
	$(BIN)/python -m benchmarks.first

$(VENV)/bin/python:
	@.ci/make-venv $(PYTHON) $(VENV)

$(VENV)/.installed: $(VENV)/bin/python pyproject.toml constraints.txt
	$(PIP) install --quiet $(PIP_FLAGS) -c constraints.txt -e .
	@touch $@

$(VENV)/.installed-test: $(VENV)/.installed
	$(PIP) install --quiet $(PIP_FLAGS) -c constraints.txt -e '.[test]'
	@touch $@

clean:
	rm -rf $(VENV) build *.egg-info
