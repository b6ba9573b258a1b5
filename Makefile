# One command each: `make run`, `make demo`, `make test`. Python 3.11 or newer is all they need.

PYTHON ?= python3
PORT ?= 8501
BIN = .venv/bin

.PHONY: run demo test lint format screenshots

run: .venv/installed
	@$(BIN)/streamlit run app.py --server.port $(PORT)

# The same app against the scripted Claude of the tests, with a data folder that is thrown away.
demo: .venv/installed
	@$(BIN)/python -m tests.demo --port $(PORT)

# Two at a time, the tests of a file one after the other: those of the browser share an app.
test: lint
	@$(BIN)/python -m pytest -n 2 --dist loadfile

lint: .venv/installed-dev
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy

# Pictures of the pages to look at, and the two of the README.
screenshots: .venv/installed-dev
	@$(BIN)/python -m tests.screenshots

format: .venv/installed-dev
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "JARVIS needs Python 3.11 or newer. Another one is named so: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@echo "Setting up .venv (the first time only, about two minutes) ..."
	@$(PYTHON) -m venv .venv || \
		{ echo "On Debian and Ubuntu: sudo apt install python3-venv"; rm -rf .venv; exit 1; }

.venv/installed: .venv/bin/python requirements.txt
	@$(BIN)/pip install --quiet --disable-pip-version-check -r requirements.txt
	@touch $@

.venv/installed-dev: .venv/installed requirements-dev.txt
	@$(BIN)/pip install --quiet --disable-pip-version-check -r requirements-dev.txt
	@touch $@
