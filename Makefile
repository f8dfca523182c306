# `make demo` and `make test` set up everything they need in .venv; a second run is quick.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check --quiet

# Compiled kernels are kept between runs and shared by all test processes.
export NUMBA_CACHE_DIR ?= $(CURDIR)/$(VENV)/numba

# The cost that the demo is measured against, produced after `make demo` by
#   .venv/bin/python examples/reference.py out/demo.tsp 60
DEMO_REFERENCE ?= 23025755
DEMO_SECONDS   ?= 8

.PHONY: help demo pictures docs linkcheck wheel newcomer test lint soak coverage mutants bench-gate bench-quick bench-network clean

help:
	@echo "make demo        install, solve 1,000 cities and 60 addresses, draw and map them, all in out/"
	@echo "make pictures    draw the pictures of the documentation again"
	@echo "make docs        build this documentation with its notebooks, into build/docs"
	@echo "make linkcheck   do the addresses in it answer? (needs a network)"
	@echo "make wheel       build the wheel, install it in an empty environment, solve with it"
	@echo "make newcomer    from a fresh clone to solved addresses and a map, by the clock"
	@echo "make test        install, then lint, types and tests"
	@echo "make lint        lint and types only"
	@echo "make soak        the long forms of the tests of docs/reliability.md (hours)"
	@echo "make coverage    which lines the tests reach, with kernels interpreted (20 minutes)"
	@echo "make mutants     do the tests notice small changes of the code? (hours)"
	@echo "make bench-gate  is the solver as good as the committed baseline? (two minutes)"
	@echo "make bench-quick the paper's tables on their fixed subsets, then RESULTS.md (one to two hours)"
	@echo "make bench-network the network's rows of the paper's tables (hours; NETWORK=... says how)"
	@echo "make clean       remove everything that was built"

demo: $(VENV)/.demo
	@mkdir -p out
	$(BIN)/drhg generate uniform-tsp -n 1000 -s 1 -o out/demo.tsp
	$(BIN)/drhg warmup tsp cvrp
	$(BIN)/drhg solve out/demo.tsp -t $(DEMO_SECONDS) -s 1 --threads 2 -o out/demo.tour --plot out/demo.png -f json > out/demo.json
	@$(BIN)/drhg generate uniform-tsp -n 100 -s 5 -o out/film.tsp > out/demo.log
	@$(BIN)/drhg plot out/film.tsp --film -s 5 -o out/film.png >> out/demo.log
	@$(BIN)/drhg solve examples/stops.csv --capacity 120 -t 3 -s 1 --threads 2 -q --routes \
		-o out/routes.csv --map out/map.html --plot out/stops.png
	@echo
	@$(BIN)/python examples/gap.py out/demo.json $(DEMO_REFERENCE)
	@echo "the tour   out/demo.png"
	@echo "one step   out/film.png: destroy, reduce to a hyper-graph, repair, restore"
	@echo "60 stops   out/routes.csv, drawn in out/stops.png"
	@echo "the map    out/map.html: open it in a browser"
	@echo "next       .venv/bin/drhg solve YOUR.csv --capacity LOAD -o routes.csv --map map.html"

pictures: $(VENV)/.demo
	@mkdir -p out
	$(BIN)/drhg generate uniform-tsp -n 100 -s 5 -o out/film.tsp
	$(BIN)/drhg plot out/film.tsp --film -s 5 -o docs/film.png
	$(BIN)/drhg generate uniform-cvrp -n 80 -s 26 -o out/film-cvrp.vrp
	$(BIN)/drhg plot out/film-cvrp.vrp --film -s 26 -o docs/film-cvrp.png
	$(BIN)/python docs/pictures.py docs

# A warning is an error, and so is a link that leads nowhere or a notebook that fails.
SPHINX = $(BIN)/python -m sphinx --fail-on-warning --keep-going --jobs auto
docs: $(VENV)/.docs
	$(BIN)/drhg warmup
	$(SPHINX) -q -b html docs build/docs
	@echo "open build/docs/index.html"

linkcheck: $(VENV)/.docs
	DRHG_NOTEBOOKS=off $(SPHINX) -b linkcheck docs build/linkcheck

wheel: | $(BIN)/python
	rm -rf dist
	$(PIP) wheel --no-deps --wheel-dir dist .
	$(BIN)/python tests/try_wheel.py dist/drhg-*.whl --index

newcomer: | $(BIN)/python
	$(BIN)/python tests/newcomer.py

test: lint
	$(BIN)/drhg warmup
	$(BIN)/python -m pytest -n 2 --dist loadfile -m "not soak"

# One after the other, because some of them measure time.
SOAK ?= tests/test_reliability_*.py tests/test_service.py tests/test_page.py tests/test_io.py tests/test_exchange.py tests/test_stops.py tests/test_globe.py tests/test_model.py tests/test_training.py
soak: $(VENV)/.dev
	DRHG_SOAK=1 $(BIN)/python -m pytest $(SOAK)

# Random numbers wrap around, of which interpreted NumPy warns.
INTERPRETED := NUMBA_DISABLE_JIT=1 PYTEST_ADDOPTS="-W ignore::RuntimeWarning"

# The tests of kernels a second time without compiling, where lines can be counted.
KERNELS ?= tests/test_candidates.py tests/test_construct.py tests/test_edge_assembly.py \
	tests/test_hypergraph.py tests/test_kopt.py tests/test_neural.py tests/test_regions.py \
	tests/test_repair.py tests/test_routes_local_search.py tests/test_routes_sequences.py \
	tests/test_routes_ruin_recreate.py tests/test_tours.py tests/test_training.py
coverage: $(VENV)/.dev
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest -n 2 --dist loadfile -m "not soak"
	$(INTERPRETED) HYPOTHESIS_PROFILE=least $(BIN)/coverage run -m pytest -n 2 --dist loadfile $(KERNELS) -m "not slow and not soak"
	$(BIN)/coverage combine
	$(BIN)/coverage report

MUTANTS ?= drhg.problem* drhg.files* drhg.hypergraph* drhg.search.criteria*
mutants: $(VENV)/.dev
	$(PIP) install 'mutmut>=3.3'
	$(INTERPRETED) HYPOTHESIS_PROFILE=few $(BIN)/mutmut run $(MUTANTS)
	$(BIN)/mutmut results

bench-gate: $(VENV)/.dev
	$(BIN)/drhg bench gate

SUITES  ?= tsp equal-time cvrp tsplib cvrplib train-size destroy-degree non-optimal
AGAINST ?= fast_tsp,ortools,pyvrp,hygese
bench-quick: $(VENV)/.dev
	for suite in $(SUITES); do $(BIN)/drhg bench $$suite --quick --against $(AGAINST) || exit 1; done
	$(BIN)/drhg bench report

NETWORK ?= --instances 32
bench-network: $(VENV)/.dev
	for suite in tsp cvrp tsplib cvrplib; do \
		$(BIN)/drhg bench $$suite --method paper,neural --against "" $(NETWORK) || exit 1; done
	$(BIN)/drhg bench report

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

clean:
	rm -rf $(VENV) out build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis .benchmarks

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) install -e '.[plot]' -c constraints.txt
	@touch $@

$(VENV)/.docs: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) install -e '.[docs]' -c constraints.txt
	@touch $@

$(VENV)/.dev: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) install -e '.[dev]' -c constraints.txt
	@touch $@ $(VENV)/.demo
