# The manual of the project: `make scan` runs the main job, `make test` the tests. Both install what they need.
PYTHON ?= python3
BIN = .venv/bin
STAMP = .venv/installed
FAST = $(BIN)/python -m pytest -q --numprocesses auto --maxprocesses 4 --dist worksteal

.PHONY: help scan test check slow engines bench scan-first tasks-first clean

help:
	@echo "make scan        train and evaluate a Transformer on SCAN simple (some minutes on a laptop's CPU)"
	@echo "make test        the fast tests"
	@echo "make check       ruff, mypy and the fast tests, as in CI"
	@echo "make slow        the tests that take minutes"
	@echo "make engines     grids on a Ray and a Slurm of two nodes, which are set up here and removed (minutes; Slurm: Debian, root)"
	@echo "make bench       every benchmark, as ratios against a baseline"
	@echo "make scan-first  the runs of results/scan-first; SCAN=DIR names a copy of the SCAN repository (an hour)"
	@echo "make tasks-first the runs of results/tasks-first; MULTI30K=DIR names a copy of the corpus (an hour)"

# torch comes first and by its exact version: whatever asks for it later is then satisfied with this build.
$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet "$$(grep '^torch==' constraints.txt)"
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $(STAMP)

scan: $(STAMP)
	$(BIN)/tfstudy run scan --arch transformer

test: $(STAMP)
	$(FAST)

check: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(FAST)

slow: $(STAMP)
	$(BIN)/python -m pytest -q -m slow

engines: $(STAMP)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev,ray,slurm]'
	$(BIN)/python -m pytest -q -rs -m slow tests/launchers/test_clusters.py

bench: $(STAMP)
	for script in $$(ls benchmarks/*/*.py); do \
	  echo "== $$script"; $(BIN)/python -m $$(echo $${script%.py} | tr / .) || exit 1; done

tasks-first: $(STAMP)
	PATH="$(abspath $(BIN)):$$PATH" MULTI30K="$(MULTI30K)" bash results/tasks-first/runs.sh

scan-first: $(STAMP)
	PATH="$(abspath $(BIN)):$$PATH" SCAN="$(SCAN)" bash results/scan-first/runs.sh

clean:
	rm -rf .venv results-smoke .mypy_cache .ruff_cache .pytest_cache
