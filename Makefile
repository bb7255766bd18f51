# SPDX-License-Identifier: Apache-2.0
# `make demo` and `make test` do everything; the other targets are their parts. Nothing is rebuilt that did not change.

SHELL := /bin/bash
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory
export PATH := $(CURDIR)/.venv/bin:$(PATH)
export CARGO_TERM_PROGRESS_WHEN := never
# The same random choices in every run. Another number makes others; `VIA_SEED= make test` new ones, as plain pytest does.
export VIA_SEED ?= 1
PY := .venv/bin/python
C_FILES = $$(git ls-files '*.c' '*.cpp' '*.h' | grep -v -e /templates/ -e ^kernel/)

.PHONY: announce-demo announce-test help setup regs card host apps build demo test test-rtl test-host test-e2e lint lint-rtl lint-rust lint-python \
	lint-c formal fmt conformance synth synth-functions coverage bench clean

help: ## what there is to make
	@sed -nE 's/^([a-z0-9-]+):.*## (.*)/\1\t\2/p' $(MAKEFILE_LIST) | expand -t 14

setup: ## install what the build and the tests need
	@tools/setup.sh

regs: setup ## registers: RTL, C header, Rust constants, reference page
	@$(PY) tools/gen_regs.py --out build/regs

card: regs ## the simulated card: the Verilated shell and its models
	@$(PY) tools/verilate.py card

host: setup ## the command line tool, the libraries
	@echo "host: building the Rust workspace (about 2 minutes the first time)"
	@cargo build --release --quiet
	@ln -sf target/release/viaduct viaduct

apps: host card ## the images of all apps
	@./viaduct build --all

build: card host apps ## everything above

announce-demo:
	@echo "demo: sets up the tools, builds card, apps and host tools (about 5 minutes the first time on two cores), then runs for half a minute"

demo: announce-demo build ## the main job on a real file, checked
	@tools/demo.sh

announce-test:
	@echo "test: sets up the tools, builds everything and checks it: about 40 minutes the first time on two cores"

test: announce-test build lint test-host test-rtl formal test-e2e coverage synth ## everything CI checks
	@echo "all tests passed"

test-host: build ## Rust unit and property tests
	cargo test --release --quiet --workspace

test-rtl: regs ## unit tests of every RTL block and app, and of the models
	$(PY) -m pytest -q rtl apps sim

test-e2e: build ## end to end through the command line, C and Python
	$(PY) -m pytest -q tests python

lint: lint-rtl lint-rust lint-python lint-c ## formatters and linters, all languages

lint-rtl: regs apps
	tools/lint_rtl.sh

lint-rust: setup
	cargo fmt --check
	cargo clippy --release --quiet --workspace --all-targets -- -D warnings

lint-python: setup
	ruff check -q .
	ruff format -q --check .
	basedpyright -p pyproject.toml

lint-c: setup
	clang-format --dry-run -Werror $(C_FILES)

fmt: setup ## format every source file
	verible-verilog-format --flagfile=tools/verible.flags --inplace $$(git ls-files '*.sv')
	cargo fmt
	ruff format -q . && ruff check -q --fix .
	clang-format -i $(C_FILES)

formal: setup ## proofs: no write outside a granted buffer, used index never ahead of data, the gate of a function
	@$(PY) formal/run.py

coverage: build ## line and toggle coverage of the RTL under the end-to-end tests
	$(PY) tools/coverage.py

synth: regs ## LUT, FF, BRAM and URAM of every block, UltraScale+
	$(PY) synth/synth.py --json build/synth/area.json

conformance: build ## all the functions can do in one boot of each kernel, 50,000 round trips of each size (long)
	VIA_VM_ROUNDS=50000 $(PY) -m pytest -q -s tests/test_vm_functions.py -k one_boot

synth-functions: regs ## the same for the card's functions (long)
	$(PY) synth/synth.py --functions --json build/synth/functions.json

bench: build ## every figure in docs/results.md
	./viaduct bench
	./viaduct bench guest

clean: ## remove what was built (the installed tools stay in their cache)
	rm -rf build target viaduct
