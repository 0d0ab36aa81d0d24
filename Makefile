# Run `make help` for the list of targets. Each target installs what it needs.
PYTHON ?= python3
BIN = .venv/bin
GPU_PYTHON = $(if $(filter file,$(origin PYTHON)),$(firstword $(wildcard $(BIN)/python) $(PYTHON)),$(PYTHON))
STAMP = .venv/installed
MKDOCS = NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs  # its makers' notice is not a warning of the build
FAST = $(BIN)/python -m pytest -q --numprocesses auto --maxprocesses 4 --dist worksteal

.PHONY: help scan test check lint types slow chaos engines docs docs-serve dist bench gpu yoyodyne clean

help:
	@echo "make scan        train and evaluate a Transformer on SCAN simple (a few minutes on a laptop CPU)"
	@echo "make test        the fast tests"
	@echo "make check       ruff, mypy and the fast tests, as in CI"
	@echo "make lint        ruff, as in make check"
	@echo "make types       mypy, as in make check"
	@echo "make slow        the slow tests, as every week in CI (minutes)"
	@echo "make chaos       200 kills at random over grids of 10 tiny runs, compared with an undisturbed one (a quarter of an hour)"
	@echo "make engines     grids on Ray and Slurm clusters of two nodes, set up and removed here (minutes; Slurm: Debian, root)"
	@echo "make docs        the documentation as a site, in site/"
	@echo "make docs-serve  the site on a local port, following changes"
	@echo "make dist        build the wheel and the sdist in dist/, and check them"
	@echo "make bench       every benchmark, as ratios to a baseline"
	@echo "make gpu         tests and benchmarks that need a CUDA device, in .venv or PYTHON (8 minutes; results in OUT)"
	@echo "make yoyodyne    training and decoding speed against yoyodyne, installed in .venv-yoyodyne; ARGS (a quarter of an hour)"
	@echo "make clean       remove what the other targets make: environments, caches, site/, dist/, results of smoke runs"
	@echo "make help        this list"

# Install torch first, in its exact version: packages that depend on it then use this build.
$(STAMP): pyproject.toml constraints.txt
	@echo "installing PyTorch and the other packages into .venv (one to three minutes)"
	@$(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet "$$(grep '^torch==' constraints.txt)"
	@$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	@touch $(STAMP)

scan: $(STAMP)
	$(BIN)/tfstudy run scan --arch transformer

test: $(STAMP)
	$(FAST)

check: lint types test

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)
	$(BIN)/mypy

slow: $(STAMP)
	$(BIN)/python -m pytest -q -m slow

chaos: $(STAMP)
	KILLS=200 $(BIN)/python -m pytest -q -s -m slow tests/launchers/test_chaos.py -k random

engines: $(STAMP)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev,ray,slurm]'
	$(BIN)/python -m pytest -q -rs -m slow tests/launchers/test_clusters.py

docs: $(STAMP)
	$(MKDOCS) build --strict
	@echo "site/index.html"

docs-serve: $(STAMP)
	$(MKDOCS) serve

dist: $(STAMP)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt twine
	rm -rf dist
	$(BIN)/python -m hatchling build
	$(BIN)/python -m twine check --strict dist/*
	$(BIN)/python -m pytest -q tests/test_packages.py

bench: $(STAMP)
	for name in against_plain_lightning decoding startup error_rates; do \
	  echo "== $$name"; $(BIN)/python -m benchmarks.$$name || exit 1; done

# No environment of its own: PyTorch for CUDA is part of the machine. OUT names the folder of the results.
gpu:
	@$(GPU_PYTHON) -m benchmarks.gpu $(ARGS)

yoyodyne: $(STAMP)
	$(BIN)/python -m benchmarks.peers.yoyodyne $(ARGS)

clean:
	rm -rf site dist build .venv .venv-yoyodyne results-smoke \
	  .mypy_cache .ruff_cache .pytest_cache .hypothesis
