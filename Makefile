# `make grade` grades the examples, and `make test` checks the project. `make` lists all targets.

PYTHON ?= python3
BIN := .venv/bin
EXAMPLES := build/examples
LABS := trace_shapes three_norms rope_distance positions attention_map residual_ablation \
  kv_cache_speed

.PHONY: help grade test prove mutation bench bench.step tour labs lint fixtures figures clean

help:  ## List the targets.
	@grep -hE '^[a-z.]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'

.venv: pyproject.toml constraints.txt  ## Create the environment, with all packages that staff need.
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[staff]'
	@touch .venv

grade: .venv  ## Grade the three example submissions and show the table.
	@$(BIN)/cs336 examples --out $(EXAMPLES)
	@$(BIN)/cs336 grade $(EXAMPLES)/stubs $(EXAMPLES)/first-week $(EXAMPLES)/solution --out grades

test: .venv lint  ## Check style, types, import contracts, stubs, saved cases, staff tests, the suite.
	$(BIN)/cs336 stubs --check
	$(BIN)/cs336 fixtures check --sample 12
	$(BIN)/pytest -c staff/tests/pytest.ini staff/tests
	$(BIN)/pytest --submission=staff/solution

mutation: .venv  ## Run the graded suite on general mutants of the solution (an hour).
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[staff,mutation]'
	$(BIN)/cs336 audit --mutants

lint: .venv
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy staff tests adapters.py cs336_basics benchmarks labs
	cd staff/solution && ../../$(BIN)/mypy --config-file ../../pyproject.toml \
	  --cache-dir ../../.mypy_cache/solution adapters.py cs336_basics
	$(BIN)/lint-imports

prove: .venv  ## Run the whole validation except the mutants, and write the result into docs/.
	$(BIN)/cs336 audit --all --proof docs/proof.md --figure docs/figures/margins.svg

bench: .venv  ## Measure the speed of the suite, the tokenizer and the grader.
	$(BIN)/python -m benchmarks.suite
	$(BIN)/python -m benchmarks.tokenizer
	$(BIN)/python -m benchmarks.grading

bench.step: .venv  ## Compare the speed of a training step with Hugging Face transformers.
	$(BIN)/python -m benchmarks.training_step

tour: .venv  ## Train a tokenizer and a model with the solution, then generate text.
	@cd staff/solution && ../../$(BIN)/python -m labs.tour --out ../../build/tour

labs: .venv  ## Run every lab with the solution, and redraw the pictures of docs/labs.md.
	@cd staff/solution && for lab in $(LABS); do \
	  ../../$(BIN)/python -m labs.$$lab --out ../../docs/figures/labs || exit; done

fixtures: .venv  ## Rebuild the saved cases of all tasks.
	$(BIN)/cs336 fixtures build --all

figures: .venv  ## Redraw the figures of the handout and the docs (the last one needs Chromium).
	$(BIN)/python -m staff.figures.handout
	$(BIN)/python -m staff.figures.architecture
	$(BIN)/python -m staff.figures.report

clean:  ## Remove the environment and all generated files outside docs/.
	rm -rf .venv build grades .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache *.egg-info
