# SPDX-License-Identifier: Apache-2.0
# `make demo` and `make test` do everything; the other targets are their parts. Nothing is rebuilt that did not change.

SHELL := /bin/bash
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory
export PATH := $(CURDIR)/.venv/bin:$(PATH)
export CARGO_TERM_PROGRESS_WHEN := never
# The same random choices in every run. Another number gives others; `VIA_SEED= make test` new ones each time, as plain pytest does.
export VIA_SEED ?= 1
PY := .venv/bin/python
FUZZ_SECONDS ?= 300
# Of the C library, whose SONAME has it.
ABI = $(shell sed -nE 's/^.define VIADUCT_ABI_VERSION ([0-9]+)u$$/\1/p' host/viaduct-capi/include/viaduct.h)
C_FILES = $$(git ls-files '*.c' '*.cpp' '*.h' | grep -v -e /templates/ -e ^kernel/)

.PHONY: announce-demo announce-test help setup system regs card functions cli host apps build demo check test test-long test-rtl test-host test-e2e checked checked-card test-checked lint lint-rtl lint-geometries lint-rust lint-python \
	lint-c lint-kernel formal formal-short fuzz fuzz-short fmt drawings conformance synth synth-short synth-functions place coverage bench install uninstall clean

help: ## list the targets
	@sed -nE 's/^([a-z0-9-]+):.*## (.*)/\1\t\2/p' $(MAKEFILE_LIST) | expand -t 17

setup: ## install the dependencies of the build and the tests
	@tools/setup.sh

system: # compilers and system packages only: enough for the Rust code
	@tools/setup.sh --system

regs: setup ## registers: RTL, C header, Rust constants, reference page
	@$(PY) tools/gen_regs.py --out build/regs

card: regs ## the simulated card: the Verilated shell and its models; without functions
	@$(PY) tools/verilate.py card

functions: card ## the simulated card with its functions
	@$(PY) tools/verilate.py card --functions

cli: system # only the command line tool
	@echo "host: building the command line tool (about 1 minute the first time)"
	@cargo build --release --quiet --package viaduct-cli
	@ln -sf target/release/viaduct viaduct

host: system ## the command line tool, the libraries
	@echo "host: building the Rust workspace (about 2 minutes the first time)"
	@cargo build --release --quiet $(HOST_TARGETS)
	@ln -sf target/release/viaduct viaduct
	@ln -sf libviaduct.so target/release/libviaduct.so.$(ABI)

apps: host card ## the images of all apps
	@./viaduct build --all

build: system ## everything above
	@# What waits for downloads or runs on one core leaves the other to the rest.
	@$(MAKE) --jobs=2 functions host
	@$(MAKE) apps

announce-demo:
	@echo "demo: sets up the tools, builds the card and the command line tool, encrypts and hashes a file (about 3 minutes the first time on two cores)"

# No more than the job needs: its two apps are built when they are run, the card's functions when one is used.
demo: announce-demo system ## the main job on a real file, checked
	@$(MAKE) --jobs=2 card cli
	@tools/demo.sh

announce-test:
	@echo "test: sets up the tools, builds everything and checks it: about 25 minutes the first time on two cores"

# The tests' own dependencies enable features of libraries that everything uses: built without the tests first, half of it would be built twice.
test: export HOST_TARGETS := --all-targets
# Two lanes for two cores. Checks of the sources come first: their errors are the quickest to find and to fix.
test: announce-test build ## everything CI checks
	@$(MAKE) --jobs=2 --output-sync=target lint
	@$(PY) tools/lanes.py "test-host test-e2e" checked test-rtl synth-short formal-short fuzz-short
	@echo "all tests passed"

# Nothing here is needed to find most errors: other geometries, kernels and kinds of function than those that `make test` has.
test-long: build ## the long form of `make test`: every geometry, every kernel, every function, coverage (hours)
	$(PY) -m pytest -q -m long rtl apps sim
	$(PY) -m pytest -q -m long tests python
	@# Every part at every edge: a wrong report of a part that it is still ends the card.
	VIADUCT_SIM_CHECK=1 $(PY) -m pytest -q tests/test_random_traffic.py tests/test_hostile.py
	VIADUCT_SIM_CHECK=1 cargo test --release --quiet -p viaduct --test hostile
	@# Each proof fails on RTL with a fault.
	$(PY) formal/run.py --break
	$(MAKE) lint-geometries lint-kernel test-checked coverage synth

check: build ## check changed files, in minutes: lint, the closest tests, one app end to end
	@$(PY) tools/check.py

test-host: build ## Rust unit and property tests
	@# With a folder that is named, tests of a card that is not there fail; they are left out otherwise.
	VIADUCT_BUILD=$(CURDIR)/build cargo test --release --quiet --workspace

test-rtl: regs ## unit tests of every RTL block and app, and of the models
	@# End-to-end tests in the other lane create apps of these names and remove them again.
	$(PY) -m pytest -q --durations=10 --durations-min=5 rtl apps sim --ignore-glob='apps/test_*'

test-e2e: build ## end to end through the command line, C and Python
	$(PY) -m pytest -q --durations=15 --durations-min=5 tests python

checked-card: build
	@$(PY) tools/verilate.py card --assert $(CHECKED_FUNCTIONS)
	@rm -rf build/checked && mkdir -p build/checked/card && ln -s ../apps build/checked/apps
	@for name in card card_functions; do ln -s ../../card-assert/libviaduct_card.so build/checked/card/libviaduct_$$name.so; done

checked: checked-card ## end-to-end tests on a card with a checker at every port of every block
	VIADUCT_CHECKED=1 $(PY) -m pytest -q --durations=10 --durations-min=5 tests/test_random_traffic.py tests/test_broken_rule.py
	VIADUCT_BUILD=$(CURDIR)/build/checked cargo test --release --quiet --workspace --test hostile -- ::net

test-checked: CHECKED_FUNCTIONS := --define VIA_FN_MASK=126
test-checked: checked-card ## the same for all functions (long)
	VIADUCT_BUILD=$(CURDIR)/build/checked cargo test --release --quiet -p viaduct --test disk --test hostile

lint: lint-rtl lint-rust lint-python lint-c ## formatters and linters, all languages

lint-rtl: regs apps
	tools/lint_rtl.sh --short

lint-geometries: regs ## the linters of the RTL on every geometry
	tools/lint_rtl.sh via_shell

lint-rust: setup
	cargo fmt --check
	cargo fmt --check --manifest-path fuzz/Cargo.toml
	$(PY) tools/module_circles.py
	cargo clippy --release --quiet --workspace --all-targets -- -D warnings
	@# Links in comments lead somewhere.
	RUSTDOCFLAGS="-D warnings" cargo doc --release --quiet --no-deps --workspace --exclude viaduct-capi --lib --document-private-items
	@# Nothing is linked, so the fuzzer itself, which takes long to compile, need not be there.
	CUSTOM_LIBFUZZER_PATH=./libfuzzer.a cargo clippy --release --quiet --manifest-path fuzz/Cargo.toml --target-dir target -- -D warnings

lint-python: setup
	ruff check -q .
	ruff format -q --check .
	basedpyright -p pyproject.toml

lint-c: setup
	clang-format --dry-run -Werror $(C_FILES)

lint-kernel: ## kernel/ by compiler, sparse and checkpatch (fetches 160 MB of Debian packages once)
	tools/lint_kernel.sh

fmt: setup ## format every source file
	verible-verilog-format --flagfile=tools/verible.flags --inplace $$(git ls-files '*.sv')
	cargo fmt
	cargo fmt --manifest-path fuzz/Cargo.toml
	ruff format -q . && ruff check -q --fix .
	clang-format -i $(C_FILES)

drawings: setup ## the drawings of the documents, from their sources in docs/drawings
	@$(PY) tools/draw.py

formal-short: setup
	@$(PY) formal/run.py --short

formal: setup ## proofs: no write outside a granted buffer, no address outside the card, used index never ahead of data, the gate of a function, shares of the crossbar, credit of its queues
	@$(PY) formal/run.py

fuzz: setup ## coverage-guided fuzzing of everything that parses untrusted bytes, FUZZ_SECONDS=300 for each target
	@$(PY) tools/fuzz.py --seconds $(FUZZ_SECONDS)

fuzz-short: setup ## the same with the kept inputs and a few thousand new ones
	@$(PY) tools/fuzz.py --short

coverage: build ## line and toggle coverage of the RTL under end-to-end tests (long)
	$(PY) tools/coverage.py

SYNTH := $(PY) synth/synth.py --ceilings synth/ceilings.json
SMALL := --width 64 --slots 1 --channels 1
MEDIUM := --width 128 --slots 2 --channels 1
# Blocks, blocks of the functions, and the whole card, at 64, 128 and 512 bits. Virtio functions are in cards of 512 bits.
define synthesise
	$(SYNTH) $(SMALL) $(1)
	$(SYNTH) $(SMALL) --functions $(1)
	$(SYNTH) $(SMALL) --whole $(1)
	$(SYNTH) $(MEDIUM) $(1)
	$(SYNTH) $(MEDIUM) --functions $(1)
	$(SYNTH) $(MEDIUM) --whole $(1)
	$(SYNTH) --json build/synth/area.json $(1)
	$(SYNTH) --functions --only 'via_vq_*' --only 'via_vdev_select*' --only via_virtio_pci --only via_fn_gate $(1)
	$(SYNTH) --whole $(1)
endef

synth-short: regs # as synth, but only what has changed since then is mapped
	$(call synthesise,--recorded synth/record.json)

synth: regs ## LUT, FF, BRAM and URAM of every block, UltraScale+, and the longest paths of blocks and whole cards, which must not grow (long)
	$(call synthesise,--record synth/record.json)

conformance: build ## all tests of the functions in one boot of each kernel, 50,000 round trips of each size (long)
	VIA_VM_ROUNDS=50000 $(PY) -m pytest -q -s -m 'long or not long' tests/test_vm_functions.py -k one_boot

synth-functions: regs ## LUT, FF, BRAM and URAM of the card's functions at 512 bits, virtio functions among them (long)
	$(PY) synth/synth.py --functions --json build/synth/functions.json

place: regs ## maximum clock of each block alone, placed and routed for Artix-7 with nextpnr, 64 bits (long)
	$(PY) synth/place.py --json build/place/table.json

bench: build ## figures of docs/results.md: copies, memory, apps, virtio, simulator, boards, FSRF's workloads, a guest
	./viaduct bench
	./viaduct bench share
	./viaduct bench calibrate
	./viaduct bench fsrf
	./viaduct bench guest

# Needs no network and builds nothing, so that only this has to be done as root.
install: ## install what `make build` has built: programs, libraries, manual pages; PREFIX=/usr/local DESTDIR=
	@DESTDIR='$(DESTDIR)' PREFIX='$(PREFIX)' tools/install.sh install

uninstall: ## remove it again, with the same PREFIX and DESTDIR
	@DESTDIR='$(DESTDIR)' PREFIX='$(PREFIX)' tools/install.sh uninstall

clean: ## remove build results (the installed tools stay in their cache)
	rm -rf build target viaduct
