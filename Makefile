# One command each; every one does its own set-up. `make` alone lists them.
#   PYTHON=/path/to/python make lab    to choose the interpreter (3.11 or later)
#   PIP_ARGS="--index-url ..." make lab    to choose where packages come from

SHELL := /bin/sh
VENV := .venv
PY := $(VENV)/bin/python
# Set-up is done once for each state of pyproject.toml: an empty file in .venv says so.
RUN_READY := $(VENV)/.ready-run
TEST_READY := $(VENV)/.ready-test
PIP := $(PY) -m pip install --disable-pip-version-check $(PIP_ARGS)

.DEFAULT_GOAL := help
.PHONY: help lab test lint build bench clean

help:
	@echo "make lab     open the course in JupyterLab"
	@echo "make test    run the test suite (without the tests marked slow)"
	@echo "make lint    ruff, mypy and the notebook build check"
	@echo "make build   make exercises/ from solutions/"
	@echo "make bench   run the benchmarks"
	@echo "make clean   remove .venv"

lab: $(RUN_READY)
	@$(PY) -m course.cli lab $(LAB_ARGS)

test: $(TEST_READY)
	$(PY) -m pytest -m "not slow" $(PYTEST_ARGS)

lint: $(TEST_READY)
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy
	$(PY) -m course.cli build --check

build: $(RUN_READY)
	@$(PY) -m course.cli build $(BUILD_ARGS)

bench: $(TEST_READY)
	$(PY) -m pytest tests/benchmarks -s $(PYTEST_ARGS)

clean:
	rm -rf $(VENV)

$(RUN_READY): pyproject.toml | $(PY)
	@echo "==> Installing the course into $(VENV): a few minutes the first time, PyTorch is the big part"
	@$(PIP) -e . || { echo "Installing failed: see the lines above. Once that is mended, the same command goes on."; exit 1; }
	@touch $@

$(TEST_READY): pyproject.toml | $(PY)
	@echo "==> Installing the course and its test tools into $(VENV): a few minutes the first time"
	@$(PIP) -e '.[test]' || { echo "Installing failed: see the lines above. Once that is mended, the same command goes on."; exit 1; }
	@touch $(RUN_READY) $@

# The first Python that is new enough makes .venv. Debian splits ensurepip off into python3-venv: where only that part is
# missing and the system has pip, pip is put into .venv from outside.
$(PY):
	@found=; asked="$(PYTHON)"; \
	for python in $${asked:-python3 python3.13 python3.12 python3.11 python}; do \
	    "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { found=$$python; break; }; \
	done; \
	[ -n "$$found" ] || { echo "The course needs Python 3.11 or later and found $$($${asked:-python3} --version 2>&1 || true). Install one, or name it: make PYTHON=/path/to/python3.11 lab"; exit 1; }; \
	echo "==> Making $(VENV) with $$("$$found" --version) ($$found)"; \
	if "$$found" -c 'import venv, ensurepip' 2>/dev/null; then \
	    "$$found" -m venv $(VENV); \
	elif "$$found" -c 'import venv, pip' 2>/dev/null; then \
	    "$$found" -m venv --without-pip $(VENV) && "$$found" -m pip --python $(VENV)/bin/python install pip; \
	else \
	    echo "This Python has no venv module. On Debian or Ubuntu: sudo apt-get install python3-venv, then the same command again."; exit 1; \
	fi || { rm -rf $(VENV); exit 1; }
