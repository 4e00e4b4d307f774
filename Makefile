# The one way in. Each target sets up what it needs, says what it does, and is quick the second time.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.ONESHELL:
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules

# What `make demo` may be told; unset, mininet/src/frontage_demo/settings.py says.
export DEMO_SECONDS LOAD SEED SERVERS TARGET

BUILD := build
STAMPS := $(BUILD)/stamps
VENV := $(BUILD)/venv
PYTHON := $(VENV)/bin/python
BIN := target/release
P4 := $(BUILD)/p4/frontage.json
P4INFO := $(BUILD)/p4/frontage.p4info.txtpb
NGINX_MODULE := $(BUILD)/cclb7/ngx_http_cloudcookie_filter_module.so
WORLD := $(STAMPS)/venv $(STAMPS)/rust $(P4) $(NGINX_MODULE)

say = @printf '\033[1m==\033[0m %s\n'

.PHONY: help setup demo test test-rust test-python test-packets test-world bench fuzz lint format docs lock clean

help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 22
	@echo
	@echo '  make demo takes DEMO_SECONDS (per policy), LOAD (0.05 to 0.95), SEED, SERVERS, TARGET (softswitch or bmv2)'
	@echo '  Example: make demo DEMO_SECONDS=60 LOAD=0.6 SERVERS=8'

setup: $(WORLD) ## install and build everything

demo: $(WORLD) ## run the data centre: every policy on the same arrivals, then build/demo/report.html
	@$(PYTHON) -m frontage_demo

test: test-rust test-python test-packets test-world ## every test; those that need what is not here say so

test-rust: | $(STAMPS)/debian
	$(say) 'Rust tests'
	@cargo test --workspace --locked --quiet

test-python: $(STAMPS)/venv $(STAMPS)/rust $(P4)
	$(say) 'Controller tests'
	@$(VENV)/bin/pytest -q controller/tests

test-packets: $(STAMPS)/venv $(STAMPS)/rust $(P4)
	$(say) 'Packet tests (PTF)'
	@$(PYTHON) ptf-tests/run

test-world: $(WORLD)
	$(say) 'Whole data centre'
	@$(VENV)/bin/pytest -q mininet/tests

bench: $(WORLD) ## measure: build/bench/result.json; ONLY=name runs one
	@$(PYTHON) bench/run.py $(if $(ONLY),--only $(ONLY))

fuzz: ## run the fuzzers of softswitch, FUZZ_SECONDS each (3600); ONLY=name runs one
	@tools/fuzz --seconds $(or $(FUZZ_SECONDS),3600) $(ONLY)

lint: $(STAMPS)/venv ## formatters (checking only) and linters of every language
	$(say) 'Rust: rustfmt, clippy'
	@cargo fmt --all --check
	@cargo clippy --workspace --all-targets --locked --quiet -- -D warnings
	$(say) 'Python: ruff, mypy'
	@$(VENV)/bin/ruff check .
	@$(VENV)/bin/ruff format --check .
	@for room in controller mininet ptf-tests bench tools; do (cd $$room && $(abspath $(VENV))/bin/mypy); done
	$(say) 'C: clang-format'
	@find host-agents -name '*.[ch]' -print0 | xargs -0 -r clang-format --dry-run --Werror
	$(say) 'P4: the compiler'
	@$(MAKE) --no-print-directory $(P4)
	$(say) 'docs/tables.md: as `make docs` writes it'
	@$(PYTHON) tools/table_reference.py $(P4INFO) | diff docs/tables.md -

format: $(STAMPS)/venv ## rewrite the sources as the formatters want them
	@cargo fmt --all
	@$(VENV)/bin/ruff format .
	@$(VENV)/bin/ruff check --fix .
	@find host-agents -name '*.[ch]' -print0 | xargs -0 -r clang-format -i

docs: $(STAMPS)/venv $(P4) ## regenerate what is generated in docs/: the table reference
	@$(PYTHON) tools/table_reference.py $(P4INFO) > docs/tables.md
	$(say) 'docs/tables.md'

lock: $(STAMPS)/venv ## renew requirements.lock from the pyproject files
	@$(PYTHON) -m piptools compile --quiet --generate-hashes --allow-unsafe --strip-extras --no-emit-index-url --no-emit-find-links --no-emit-trusted-host \
		--no-header --output-file requirements.lock requirements.in controller/pyproject.toml mininet/pyproject.toml

clean: ## remove everything that was built
	@rm -rf $(BUILD) target

# Set-up, each step once.

$(STAMPS)/debian: tools/packages.txt tools/setup-debian
	$(say) 'Debian packages'
	@mkdir -p $(STAMPS)
	@tools/setup-debian
	@touch $@

$(STAMPS)/venv: requirements.lock controller/pyproject.toml mininet/pyproject.toml | $(STAMPS)/debian
	$(say) 'Python packages'
	@[ -x $(PYTHON) ] || /usr/bin/python3 -m venv $(VENV)
	@$(PYTHON) -m pip install --quiet --disable-pip-version-check --use-pep517 --require-hashes -r requirements.lock
	@$(PYTHON) -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e controller -e mininet
	@ln -sfn /usr/lib/python3/dist-packages/mininet $$($(PYTHON) -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/mininet
	@touch $@

RUST_SOURCES := $(shell find softswitch host-agents bench -name '*.rs' -o -name '*.toml' -o -name '*.proto' -o -name '*.[ch]' -o -name '*.p4' 2>/dev/null | grep -v /target/)
$(STAMPS)/rust: Cargo.toml Cargo.lock $(RUST_SOURCES) | $(STAMPS)/debian
	$(say) 'Rust: compiler, switch, agents (a few minutes the first time)'
	@mkdir -p $(STAMPS)
	@cargo build --release --workspace --locked --quiet
	@touch $@

$(NGINX_MODULE): $(shell find host-agents/cclb7/nginx host-agents/cclb7/lib host-agents/cclb7/include -type f 2>/dev/null) | $(STAMPS)/debian
	$(say) 'C: module for nginx, library send_cc'
	@$(MAKE) --no-print-directory -C host-agents/cclb7 BUILD=$(abspath $(BUILD)/cclb7)

$(P4): $(STAMPS)/rust $(shell find p4src -name '*.p4')
	$(say) 'P4: frontage.p4'
	@mkdir -p $(@D)
	@$(BIN)/softswitch-p4c -o $(P4) --p4runtime-files $(P4INFO) p4src/v1model/frontage.p4
