# Two commands do everything on a fresh machine: `make demo` runs the main job, `make test` passes the tests.
SHELL := /bin/bash
.DEFAULT_GOAL := help

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STORE  ?= sqlite
ARGS   ?=

# llama.cpp's library alone, built for this machine; `make LLAMA_FLAGS=-DGGML_CUDA=on venv` builds it for a GPU.
LLAMA_FLAGS ?=
export CMAKE_ARGS := -DLLAVA_BUILD=OFF -DGGML_OPENMP=OFF -DGGML_LLAMAFILE=OFF \
	-DCMAKE_PROJECT_INCLUDE=$(CURDIR)/requirements/llama.cmake $(LLAMA_FLAGS)

help: ## show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1	/' | expand -t 18

venv: $(VENV)/.run ## .venv with the project installed
$(VENV)/.run: requirements/run.txt requirements/cuda.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("regraph needs Python 3.11 or newer; set PYTHON=…") if sys.version_info < (3, 11) else 0'
	@command -v c++ >/dev/null || { echo "a C++ compiler is missing (Debian: apt-get install g++)" >&2; exit 3; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing; llama.cpp is compiled here, which takes about two minutes on two cores."
	$(BIN)/pip install --quiet --require-hashes -r requirements/run.txt
	@if command -v nvcc >/dev/null || test -x /usr/local/cuda/bin/nvcc; then echo "Using this machine's nvcc."; \
	 else $(BIN)/pip install --quiet --require-hashes -r requirements/cuda.txt; fi
	$(BIN)/pip install --quiet --no-deps --editable .
	@touch $@

$(VENV)/.dev: $(VENV)/.run requirements/dev.txt
	$(BIN)/pip install --quiet --require-hashes -r requirements/dev.txt
	@touch $@

demo: $(VENV)/.run ## ingest the shipped trajectories and search two tasks (STORE=neo4j for a real Neo4j)
	@$(BIN)/python -m slm.demo $(STORE)

test: $(VENV)/.dev ## every test that a machine without a GPU can run (ARGS="-k name" for some)
	$(BIN)/python -m pytest -n 2 --dist loadfile -m "not gpu and not slow" $(ARGS)

test-slow: $(VENV)/.dev ## the long ones: hundreds of kills, every step of every trajectory, every mutant
	$(BIN)/python -m pytest -m slow $(ARGS)

test-gpu: $(VENV)/.dev ## the tests that need a GPU
	$(BIN)/python -m pytest -m gpu $(ARGS)

check: $(VENV)/.dev ## lint, format and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/.dev ## every benchmark, as JSON lines
	@for script in benchmarks/*.py; do $(BIN)/python $$script || exit 1; done

lock: ## write requirements/*.txt anew from pyproject.toml (needs uv)
	uv pip compile pyproject.toml --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header -q --extra llama -o requirements/run.txt
	uv pip compile pyproject.toml --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header -q --extra llama --extra cuda -o requirements/cuda.txt
	uv pip compile pyproject.toml --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header -q --extra llama --extra cuda --extra langchain --extra report --extra slm --extra dev -o requirements/dev.txt

clean: ## remove everything that these commands wrote, the cache included
	-NEO4J_SERVER_HOME=$(CURDIR)/.demo/neo4j docker/neo4j-server stop 2>/dev/null
	rm -rf $(VENV) .demo build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	rm -rf "$${REGRAPH_CACHE:-$$HOME/.cache/regraph}"
	find . -name __pycache__ -prune -exec rm -rf {} +

.PHONY: help venv demo test test-slow test-gpu check bench lock clean
