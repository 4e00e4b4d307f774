# Entry point for every task. Each target installs what it needs, reports what it does, and is fast when nothing has changed.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.ONESHELL:
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules

# Settings of `make demo`; the module `settings` of frontage_demo has the defaults.
export DEMO_SECONDS LOAD SEED SERVERS PROTOCOL SERVER SCHEDULER TARGET QDSR KEEP
# The peers of `make conformance` and `make differential`.
export P4C P4C_BM2 P4C_PSA BMV2
# The checkout and the compiler of `make tna-conformance`; `make tofino` runs the compiler, too.
export OPEN_P4STUDIO P4C_TOFINO
# Checkouts for `make environments`.
export TUTORIALS P4UTILS P4LEARNING P4GUIDE BMV2_PYTHON
# The http_client of lsquic, for `make clients`.
export LSQUIC
# Lets tests that cannot run here count as skipped; without it they fail.
export ALLOW_SKIPS

BUILD := build
STAMPS := $(BUILD)/stamps
VENV := $(BUILD)/venv
PYTHON := $(VENV)/bin/python
BIN := target/release
P4 := $(BUILD)/p4/frontage.json
P4INFO := $(BUILD)/p4/frontage.p4info.txtpb
NGINX_MODULE := $(BUILD)/cclb7/ngx_http_cloudcookie_filter_module.so
LSQUIC_SERVER := $(BUILD)/lsquic/frontage-lsquic
NATS_SERVER := $(BUILD)/nats-server
OTELCOL := $(BUILD)/otelcol
GOFLOW2 := $(BUILD)/goflow2
MASQUE := $(BUILD)/masque/proxy
PORCUPINE := $(BUILD)/porcupine
VALE := $(BUILD)/vale
QUIC_CLIENTS := host-agents/cclb7-quic/tests/clients
PROGRAMS := softswitch softswitch-cli softswitch-p4c softswitch-stf softswitch-python \
	frontage-cclb7 frontage-cclb7-quic frontage-dispatcher frontage-h3-client frontage-mobile frontage-naming frontage-naming-preload \
	frontage-quic-c frontage-quicsocks frontage-quicsocks-c frontage-quicsocks-preload frontage-real-server \
	frontage-simulator
# Workers for tests that mostly wait: for timers and elections.
WAITING := $(shell echo $$(($$(nproc) * 5 / 2)))
# Workers for tests of controllers, switches and whole data centres: more of them leave too little CPU time to each.
TESTBEDS := $(shell echo $$(($$(nproc) * 3 / 2)))
# Programs for Tofino whose packet tests are part of test-long. The testbed tests compare most of them with v1model, packet by packet.
LONG_PROFILES := tofino1quic tofino2core tofino2folded tofino2full
# The seed of property tests.
export PROPTEST_RNG_SEED := 1

# Runs the Rust tests with a time limit.
RUNNER := CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER=$(abspath tools/test-runner) CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER=$(abspath tools/test-runner)
CARGO_TEST := $(RUNNER) cargo test --workspace --locked --quiet
TESTBED := $(STAMPS)/venv $(STAMPS)/rust $(P4) $(NGINX_MODULE) $(LSQUIC_SERVER) $(STAMPS)/console
# The tools of the console, from the virtual environment and from npm.
NODE := PATH=$(abspath $(VENV))/bin:$$PATH
# Writes the current commit into pages of results.
STAMP_PAGES := $(PYTHON) tools/freshness.py --stamp
# The targets that write the pages of results; experiments includes qdsr.
FIGURES := bench performance experiments artemis quicsocks records mobile frontage
# The folders of Python code whose types are checked, the largest first.
TYPED := controller mininet experiments ptf-tests bench clients conformance environments tools softswitch/python
# The folders of experiments that have a page.
SIMULATED := $(sort $(notdir $(patsubst %/,%,$(dir $(wildcard experiments/*/*.yaml)))))

say = @printf '\033[1m==\033[0m %(%T)T %s\n' -1

.PHONY: help setup demo console screenshots artemis frontage coverage quicsocks records mobile detection moves test test-rust test-python test-packets test-clients test-testbed test-long qdsr soak conformance tna-conformance tofino packet-log differential environments clients wheel deb bench performance experiments figures fuzz lint audit format docs lock clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 22
	@echo
	@echo '  Settings of make demo: DEMO_SECONDS (per policy), LOAD (0.05 to 0.95), SEED, SERVERS, PROTOCOL (tcp or quic), SERVER (with quic: cclb7 or lsquic),'
	@echo '    SCHEDULER (fifo, or aifo to run both), TARGET (softswitch, bmv2 or tna), PROFILE (with tna).'
	@echo '  make demo KEEP=1 keeps the network up, with requests, until Ctrl-C; every run prints the address of the console.'
	@echo '  make demo QDSR=1 loads a page from several real servers over one QUIC connection, in each browser that is installed;'
	@echo '    it takes SEED and SERVERS.'
	@echo '  Example: make demo DEMO_SECONDS=60 LOAD=0.6 SERVERS=8'

setup: $(TESTBED) $(STAMPS)/python ## install and build everything

demo: $(TESTBED) ## run a data centre with every policy on the same arrivals; writes build/demo/report.html
	@$(PYTHON) -m frontage_demo

console: $(STAMPS)/console ## build the web console, which the controller serves below /console/

screenshots: $(TESTBED) ## write the pictures of docs/console.md from a running data centre
	@$(PYTHON) -m frontage_demo.screenshots --docs docs

artemis: $(TESTBED) $(STAMPS)/quic-clients ## compare Artemis with DNS and anycast at measured distances; writes docs/results/artemis.md; ROUNDS=20, SCENARIO=name
	@status=0
	@$(PYTHON) clients/artemis.py || status=$$?
	@$(PYTHON) -m frontage_demo.artemis $(if $(ROUNDS),--rounds $(ROUNDS)) $(if $(SCENARIO),--scenario $(SCENARIO)) --page docs/results || status=$$?
	@[ $$status != 0 ] || $(STAMP_PAGES) docs/results/artemis.md
	@exit $$status

frontage: $(TESTBED) ## all systems together, under load, with every fault, and beside a plain network; writes docs/results/frontage.md; LENGTH=600 seconds of each load, SEED=1. ABLATION=60 seconds of load of each network with a part of the systems
	@$(PYTHON) -m frontage_demo.everything --seconds $(or $(LENGTH),600) --ablation $(or $(ABLATION),60) $(if $(SEED),--seed $(SEED)) --docs docs
	@$(STAMP_PAGES) docs/results/frontage.md

quicsocks: $(TESTBED) $(MASQUE) ## measure QuicSocks with the delays of the paper, beside MASQUE; writes docs/results/quicsocks.md; HANDSHAKES=30 of each kind
	@$(PYTHON) -m frontage_demo.quicsocks $(if $(HANDSHAKES),--handshakes $(HANDSHAKES)) --docs docs
	@$(STAMP_PAGES) docs/results/quicsocks.md

qdsr: $(TESTBED) ## compare hand-off and proxy; writes docs/results/qdsr.md; run `make bench ONLY=qdsr` first for figure 7
	@$(PYTHON) -m frontage_demo.handoff --docs docs
	@$(STAMP_PAGES) docs/results/qdsr.md

records: $(TESTBED) $(NATS_SERVER) ## records under failures of servers, regions and links; writes docs/results/auspice-supercluster.md; RATE=1340 operations/s, SEED=1
	@$(PYTHON) -m frontage_demo.supercluster $(if $(RATE),--rate $(RATE)) $(if $(SEED),--seed $(SEED)) --docs docs
	@$(STAMP_PAGES) docs/results/auspice-supercluster.md

mobile: $(TESTBED) $(NATS_SERVER) ## open connections while client and server move; writes docs/results/mobile.md; MOVES=100 of each kind, SEED=1
	@$(PYTHON) -m frontage_demo.mobile $(if $(MOVES),--moves $(MOVES)) $(if $(SEED),--seed $(SEED)) --docs docs
	@$(STAMP_PAGES) docs/results/mobile.md

detection: $(TESTBED) ## measure how fast health checks detect faults; writes the table of docs/health.md; ROUNDS=50 per fault
	@$(PYTHON) -m frontage_demo.detection $(if $(ROUNDS),--rounds $(ROUNDS)) --docs docs

moves: $(TESTBED) ## measure how fast clients leave an address of their server; writes the results of docs/moves.md
	@$(PYTHON) -m frontage_demo.moves --docs docs

test: test-rust test-python test-packets test-clients test-testbed ## run every test; without root or a tool it fails; ALLOW_SKIPS=1 skips such tests

test-rust: $(STAMPS)/quic-clients | $(STAMPS)/debian
	$(say) 'Rust tests'
	@$(CARGO_TEST)

test-python: $(STAMPS)/venv $(STAMPS)/rust $(STAMPS)/python $(STAMPS)/console $(STAMPS)/oidc $(NATS_SERVER) $(GOFLOW2) $(PORCUPINE) $(VALE) $(P4)
	$(say) 'Controller tests'
	@$(VENV)/bin/pytest -q -n $(TESTBEDS) --dist worksteal controller/tests
	$(say) 'Console tests'
	@($(NODE); cd console; npm run --silent test)
	$(say) 'Record store tests'
	@$(VENV)/bin/pytest -q -n $(WAITING) --dist worksteal controller/records/tests
	$(say) 'Tests of the HTTP/3 clients page'
	@$(VENV)/bin/pytest -q clients/tests
	$(say) 'Tests of the conformance page'
	@$(VENV)/bin/pytest -q conformance/tests
	$(say) 'Tests of the environments page'
	@$(VENV)/bin/pytest -q environments/tests
	$(say) 'Simulations'
	@$(VENV)/bin/pytest -q -n auto experiments/tests
	$(say) 'Tests of the documentation and the linters'
	@$(VENV)/bin/pytest -q tools/tests
	$(say) 'Tests of the Python package softswitch'
	@SOFTSWITCH=$(abspath $(BIN)/softswitch) $(VENV)/bin/pytest -q softswitch/python/tests
	@$(PYTHON) softswitch/python/examples/router.py >/dev/null

test-packets: $(STAMPS)/venv $(STAMPS)/rust $(STAMPS)/python $(P4)
	$(say) 'Packet tests (PTF)'
	@JOBS=$(TESTBEDS) $(PYTHON) ptf-tests/run
	$(say) 'Packet tests of the program for Tofino 2'
	@JOBS=$(TESTBEDS) TARGET=tna $(PYTHON) ptf-tests/run
	$(say) 'Packet tests of the program for Tofino 1'
	@JOBS=$(TESTBEDS) TARGET=tna PROFILE=tofino1 $(PYTHON) ptf-tests/run

coverage: $(STAMPS)/venv $(STAMPS)/rust $(STAMPS)/python $(P4) ## run the packet tests, and count what they reach in the P4 programs; writes build/coverage.info and build/coverage.html
	@rm -f $(BUILD)/coverage.info
	@COVERAGE=$(BUILD)/coverage.info $(PYTHON) ptf-tests/run

test-clients: $(STAMPS)/rust
	$(say) 'P4Runtime clients'
	@softswitch/switch/tests/clients/run

test-testbed: $(TESTBED) $(STAMPS)/quic-clients $(STAMPS)/python $(NATS_SERVER) $(MASQUE)
	$(say) 'Testbed tests (whole data centre)'
	@$(VENV)/bin/pytest -q -n $(TESTBEDS) --dist worksteal mininet/tests

test-long: $(TESTBED) $(STAMPS)/quic-clients $(STAMPS)/python $(NATS_SERVER) $(OTELCOL) ## run the long tests: two wraps of timestamps, idle connections, all programs for Tofino, 10,000 delegated objects
	$(say) 'Long testbed tests'
	@LONG=1 PAWS_SECONDS=200 $(VENV)/bin/pytest -q -n $(TESTBEDS) --dist worksteal -m long mininet/tests
	$(say) 'Traces in the OpenTelemetry Collector, rivals, placement'
	@LONG=1 $(VENV)/bin/pytest -q -n auto --dist worksteal controller/tests/test_tracing.py controller/tests/test_rivals.py controller/tests/test_balancers.py controller/tests/test_placement_optimum.py
	$(say) 'Three switches'
	@LONG=1 $(VENV)/bin/pytest -q -m 'not long' mininet/tests/test_fleet.py mininet/tests/test_quic_fleet.py
	$(say) 'Packet tests of further programs for Tofino'
	@for profile in $(LONG_PROFILES); do TARGET=tna PROFILE=$$profile $(PYTHON) ptf-tests/run; done
	$(say) 'Tests that wait'
	@$(CARGO_TEST) -- --ignored
	$(say) 'Soak'
	@$(MAKE) --no-print-directory soak

conformance: $(STAMPS)/venv $(STAMPS)/rust ## run the samples of p4c; P4C=its checkout; P4C_BM2=, P4C_PSA= and BMV2= compare with p4c and BMv2
	@$(PYTHON) conformance/run.py $(if $(ONLY),--only $(ONLY))

tna-conformance: $(STAMPS)/venv $(STAMPS)/rust $(STAMPS)/tna-conformance ## run the PTF tests of the public TNA programs; OPEN_P4STUDIO=its checkout; P4C_TOFINO= compares schemas; PROGRAM=, TEST= run some
	@$(PYTHON) conformance/tna_conformance.py $(if $(PROGRAM),--program $(PROGRAM)) $(if $(TEST),--test $(TEST))

tofino: $(STAMPS)/venv $(STAMPS)/rust ## write the longest chains and the recirculation of the profiles for Tofino to docs/tofino.md and p4src/tna; P4C_TOFINO= also places the profiles
	@cargo build --release --locked --quiet -p frontage-bench
	@PYTHONPATH=tools $(PYTHON) -m tofino

packet-log: $(STAMPS)/venv $(STAMPS)/rust ## compare the log of a packet with that of BMv2=, in docs/conformance.md
	@$(PYTHON) conformance/packet_log.py

differential: $(STAMPS)/venv $(STAMPS)/rust ## send random packets through softswitch and BMv2; P4C=, BMV2=, PACKETS=100000, SEED=1; PROGRAMS=random COUNT=100 runs random programs
	@$(PYTHON) conformance/differential.py $(if $(PACKETS),--packets $(PACKETS)) $(if $(SEED),--seed $(SEED)) $(if $(ONLY),--only $(ONLY)) $(if $(PROGRAMS),--programs $(PROGRAMS)) $(if $(COUNT),--count $(COUNT))

environments: $(STAMPS)/venv $(STAMPS)/rust $(STAMPS)/environments ## run the exercises of p4lang/tutorials and others; writes docs/environments.md; TUTORIALS=, P4LEARNING=, P4UTILS=, P4GUIDE= name checkouts; ONLY=row runs one
	@$(PYTHON) environments/run.py $(if $(ONLY),--only $(ONLY)) $(if $(ON),--on $(ON))

clients: $(TESTBED) $(STAMPS)/clients ## test unmodified HTTP/3 clients; writes docs/clients.md; ONLY=name runs one, LSQUIC= adds its http_client
	@$(PYTHON) clients/run.py $(if $(ONLY),--only '$(ONLY)')

wheel: $(STAMPS)/wheel ## build the wheel of softswitch, install it in a chroot without a compiler, and run an exercise; needs debootstrap and root
	$(say) 'Wheel: build (about 15 minutes the first time)'
	@PATH=$(abspath $(BUILD)/wheel-tools/bin):$$PATH packaging/wheel/build $(BUILD)/wheel
	$(say) 'Wheel: exercise'
	@packaging/wheel/check $(BUILD)/wheel

deb: $(STAMPS)/venv $(STAMPS)/rust $(STAMPS)/console ## build the Debian packages; install, upgrade and remove them in a chroot; needs debhelper, lintian, debootstrap and root
	$(say) 'Debian packages: build'
	@packaging/debian/build $(BUILD)/debian
	$(say) 'Debian packages: lintian, units, chroot'
	@packaging/debian/check $(BUILD)/debian

bench: $(TESTBED) ## run the benchmarks; writes build/bench/result.json; ONLY=name runs one
	@cargo build --release --locked --quiet -p frontage-bench
	@$(PYTHON) bench/run.py $(if $(ONLY),--only $(ONLY))

performance: $(STAMPS)/venv ## write docs/performance.md from the last `make bench`
	@$(PYTHON) bench/page.py
	@$(STAMP_PAGES) docs/performance.md
	$(say) 'docs/performance.md'

experiments: $(STAMPS)/venv $(STAMPS)/rust $(P4) ## reproduce the papers' figures; writes docs/results; FULL=1 runs the published scale, ONLY=paper runs one, CLUSTER=address uses a Dask cluster
ifneq ($(ONLY),qdsr)
	@$(PYTHON) -m frontage_sim figures $(if $(FULL),--full) $(if $(CLUSTER),--cluster $(CLUSTER)) $(ONLY)
	@$(STAMP_PAGES) $(patsubst %,docs/results/%.md,$(or $(ONLY),$(SIMULATED)))
endif
ifeq ($(filter-out qdsr,$(ONLY)),)
	@if [ "$$(id -u)" = 0 ]; then $(MAKE) --no-print-directory qdsr; else echo 'docs/results/qdsr.md: skipped: network namespaces need root'; fi
endif

figures: ## renew all pages of results, which takes hours on an idle machine; needs root
	@status=0
	@for target in $(FIGURES); do $(MAKE) --no-print-directory $$target || { echo "make $$target: failed"; status=1; }; done
	@$(PYTHON) tools/figure_index.py || status=1
	@exit $$status

soak: ## transfer 10,000 objects through three real servers over lossy networks; SOAK_OBJECTS=, SOAK_BYTES=, SOAK_CONNECTIONS=, SOAK_SEED=
	@SOAK_OBJECTS=$(or $(SOAK_OBJECTS),10000) SOAK_BYTES=$(or $(SOAK_BYTES),50000000) SOAK_CONNECTIONS=$(or $(SOAK_CONNECTIONS),100) SOAK_SEED=$(or $(SOAK_SEED),7) \
		cargo test --release --locked --quiet -p frontage-real-server --test soak -- --nocapture

fuzz: ## run the fuzzers, FUZZ_SECONDS=3600 each; ONLY=name runs one
	@tools/fuzz --seconds $(or $(FUZZ_SECONDS),3600) $(ONLY)

lint: $(STAMPS)/venv $(STAMPS)/npm $(VALE) ## check format, types, imports, prose and commit subjects
	$(say) 'Rust: rustfmt, clippy'
	@cargo fmt --all --check
	@cargo clippy --workspace --all-targets --locked --quiet -- -D warnings
	$(say) 'Python: ruff, mypy'
	@$(VENV)/bin/ruff check .
	@$(VENV)/bin/ruff format --check .
	@printf '%s\n' $(TYPED) | xargs -P $$(nproc) -I '{}' sh -c 'cd {} && $(abspath $(VENV))/bin/mypy'
	$(say) 'C, C++: clang-format'
	@find host-agents bench '(' -name '*.[ch]' -o -name '*.cc' ')' -print0 | xargs -0 -r clang-format --dry-run --Werror
	$(say) 'Console: TypeScript, Biome, generated files'
	@($(NODE); cd console; npm run --silent lint)
	@console/types --check
	@console/meanings --check
	$(say) 'Prose: Vale'
	@$(PYTHON) tools/prose/lint.py
	@$(PYTHON) tools/prose/commits.py
	$(say) 'Imports without cycles, licence lines'
	@$(PYTHON) tools/import_cycles.py controller/src/frontage controller/records/src/frontage_records mininet/src/frontage_testbed mininet/src/frontage_demo experiments/src/frontage_sim
	@$(PYTHON) tools/rust_cycles.py
	@$(PYTHON) tools/spdx.py
	$(say) 'Pages of results: not older than the code that they measure'
	@$(PYTHON) tools/freshness.py
	@$(PYTHON) tools/figure_index.py --check
	$(say) 'P4: the compiler'
	@$(MAKE) --no-print-directory $(P4)
	$(say) 'docs/tables.md: up to date with the P4 program'
	@$(PYTHON) tools/table_reference.py $(P4INFO) | diff docs/tables.md -

# The database of known vulnerabilities in crates comes from the RustSec project, and that in Python packages from PyPI.
audit: $(STAMPS)/audit ## check licences, sources and known vulnerabilities of all dependencies; OFFLINE=1 leaves out vulnerabilities
	@$(BUILD)/audit/bin/cargo-deny --workspace check licenses bans sources $(if $(OFFLINE),,advisories)
	@$(if $(OFFLINE),:,$(BUILD)/audit/venv/bin/pip-audit --disable-pip --require-hashes -r requirements.lock)

format: $(STAMPS)/venv $(STAMPS)/npm ## apply the formatters
	@cargo fmt --all
	@$(VENV)/bin/ruff format .
	@$(VENV)/bin/ruff check --fix .
	@($(NODE); cd console; npm run --silent format)
	@find host-agents bench '(' -name '*.[ch]' -o -name '*.cc' ')' -print0 | xargs -0 -r clang-format -i

docs: $(STAMPS)/venv $(P4) ## write the generated pages: docs/tables.md, docs/results/README.md
	@$(PYTHON) tools/table_reference.py $(P4INFO) > docs/tables.md
	@$(PYTHON) tools/figure_index.py
	$(say) 'docs/tables.md docs/results/README.md'

LOCK := $(PYTHON) -m piptools compile --quiet --generate-hashes --allow-unsafe --strip-extras --no-emit-index-url --no-emit-find-links --no-emit-trusted-host --no-header
lock: $(STAMPS)/venv ## renew the requirements.lock files
	@$(LOCK) --extra mapping --extra health --extra discovery --extra cluster --extra tracing --output-file requirements.lock requirements.in controller/pyproject.toml controller/records/pyproject.toml mininet/pyproject.toml experiments/pyproject.toml
	@$(LOCK) --output-file $(QUIC_CLIENTS)/requirements.lock $(QUIC_CLIENTS)/requirements.in
	@$(LOCK) --output-file clients/requirements.lock clients/requirements.in
	@$(LOCK) --output-file environments/requirements.lock environments/requirements.in
	@$(LOCK) --constraint requirements.lock --output-file conformance/tna/requirements.lock conformance/tna/requirements.in
	@$(LOCK) --output-file packaging/wheel/requirements.lock packaging/wheel/requirements.in
	@$(LOCK) --extra mapping --extra health --extra discovery --extra cluster --extra tracing --constraint requirements.lock --output-file packaging/debian/requirements.lock controller/pyproject.toml

clean: ## remove all build output
	@rm -rf $(BUILD) target console/node_modules console/dist

# Set-up: each step runs once.

$(STAMPS)/debian: tools/packages.txt tools/setup-debian
	$(say) 'Debian packages'
	@mkdir -p $(STAMPS)
	@tools/setup-debian
	@touch $@

$(STAMPS)/venv: requirements.lock controller/pyproject.toml controller/records/pyproject.toml mininet/pyproject.toml experiments/pyproject.toml ptf-tests/pyproject.toml | $(STAMPS)/debian
	$(say) 'Python packages'
	@[ -x $(PYTHON) ] || /usr/bin/python3 -m venv $(VENV)
	@$(PYTHON) -m pip install --quiet --disable-pip-version-check --use-pep517 --require-hashes -r requirements.lock
	@$(PYTHON) -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e controller -e controller/records -e mininet -e experiments -e ptf-tests
	@ln -sfn /usr/lib/python3/dist-packages/mininet $$($(PYTHON) -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/mininet
	@touch $@

$(STAMPS)/npm: console/package.json console/package-lock.json | $(STAMPS)/venv
	$(say) 'npm: the packages of the console'
	@$(NODE) npm ci --prefix console --silent
	@touch $@

$(STAMPS)/console: $(STAMPS)/npm $(shell find console/src console/public console/index.html console/tsconfig.json console/vite.config.ts -type f 2>/dev/null)
	$(say) 'TypeScript: the console'
	@($(NODE); cd console; npm run --silent build)
	@touch $@

RUST_SOURCES := $(shell find softswitch host-agents bench conformance experiments -name '*.rs' -o -name '*.toml' -o -name '*.proto' -o -name '*.[ch]' -o -name '*.p4' 2>/dev/null | grep -v /target/)
$(STAMPS)/rust: Cargo.toml Cargo.lock $(RUST_SOURCES) | $(STAMPS)/debian
	$(say) 'Rust: compiler, switch, agents (a few minutes the first time)'
	@mkdir -p $(STAMPS)
	@cargo build --release --locked --quiet $(addprefix -p ,$(PROGRAMS))
	@touch $@

# The message store of records at several sites (docs/records.md). Go comes from PyPI, because that of Debian 12 is too old.
$(NATS_SERVER): tools/nats-server/go.mod tools/nats-server/go.sum | $(STAMPS)/venv
	$(say) 'Go: nats-server (a few minutes)'
	@PATH=$(abspath $(VENV)/bin):$$PATH go build -C tools/nats-server -o $(abspath $@) github.com/nats-io/nats-server/v2

# The receiver of traces in tests: the OpenTelemetry Collector with the parts that they need.
$(OTELCOL): $(wildcard tools/otelcol/*) | $(STAMPS)/venv
	$(say) 'Go: OpenTelemetry Collector (two minutes)'
	@PATH=$(abspath $(VENV)/bin):$$PATH go build -C tools/otelcol -o $(abspath $@) .

# The collector of sFlow in tests.
$(GOFLOW2): tools/goflow2/go.mod tools/goflow2/go.sum | $(STAMPS)/venv
	$(say) 'Go: goflow2'
	@PATH=$(abspath $(VENV)/bin):$$PATH go build -C tools/goflow2 -o $(abspath $@) github.com/netsampler/goflow2/v2/cmd/goflow2

# A MASQUE proxy to compare QuicSocks with, and a client that measures.
$(MASQUE): $(wildcard tools/masque/* tools/masque/load/*) | $(STAMPS)/venv
	$(say) 'Go: masque-go'
	@PATH=$(abspath $(VENV)/bin):$$PATH
	@go build -C tools/masque -o $(abspath $(@D))/load ./load
	@go build -C tools/masque -o $(abspath $@) github.com/quic-go/masque-go/cmd/proxy

# The API server of Kubernetes, for the tests of discovery. Not part of `make test`, because it takes half an hour on two cores.
$(BUILD)/kube-apiserver: $(wildcard tools/kube-apiserver/*) | $(STAMPS)/venv
	$(say) 'Go: kube-apiserver (half an hour)'
	@PATH=$(abspath $(VENV)/bin):$$PATH go build -C tools/kube-apiserver -o $(abspath $@) .

# An independent linearizability checker for the tests of records.
$(PORCUPINE): $(wildcard tools/porcupine/*) | $(STAMPS)/venv
	$(say) 'Go: porcupine'
	@PATH=$(abspath $(VENV)/bin):$$PATH go build -C tools/porcupine -o $(abspath $@) .

# Checks prose. Debian does not package it. Most of its code is parsers in C, which take longer to optimize than to run.
$(VALE): tools/vale/go.mod tools/vale/go.sum | $(STAMPS)/venv
	$(say) 'Go: Vale (two minutes)'
	@PATH=$(abspath $(VENV)/bin):$$PATH CGO_CFLAGS=-O0 go build -C tools/vale -o $(abspath $@) github.com/vale-cli/vale/v3/cmd/vale

$(STAMPS)/quic-clients: $(QUIC_CLIENTS)/requirements.lock | $(STAMPS)/debian
	$(say) 'Python: HTTP/3 clients for the tests'
	@[ -x $(BUILD)/quic-clients/bin/python ] || /usr/bin/python3 -m venv $(BUILD)/quic-clients
	@$(BUILD)/quic-clients/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $<
	@touch $@

$(STAMPS)/audit: tools/audit-requirements.txt | $(STAMPS)/debian
	$(say) 'Rust and Python: cargo-deny, pip-audit (a few minutes)'
	@cargo install --quiet --locked --root $(BUILD)/audit cargo-deny@0.20.2
	@[ -x $(BUILD)/audit/venv/bin/python ] || /usr/bin/python3 -m venv $(BUILD)/audit/venv
	@$(BUILD)/audit/venv/bin/python -m pip install --quiet --disable-pip-version-check -r $<
	@touch $@

$(STAMPS)/wheel: packaging/wheel/requirements.lock | $(STAMPS)/debian
	$(say) 'Python: zig, maturin, auditwheel'
	@[ -x $(BUILD)/wheel-tools/bin/python ] || /usr/bin/python3 -m venv $(BUILD)/wheel-tools
	@$(BUILD)/wheel-tools/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $<
	@touch $@

# An OpenID Connect provider for the controller's tests.
$(STAMPS)/oidc: controller/tests/oidc/package.json controller/tests/oidc/package-lock.json $(STAMPS)/venv
	$(say) 'OpenID Connect provider'
	@mkdir -p $(BUILD)/oidc
	@cp controller/tests/oidc/package.json controller/tests/oidc/package-lock.json $(BUILD)/oidc
	@PATH=$(abspath $(VENV)/bin):$$PATH npm ci --prefix $(BUILD)/oidc --silent
	@touch $@

# Browsers and tool chains for `make clients`.
$(STAMPS)/clients: $(shell find clients/packages.txt clients/requirements.lock clients/programs -type f) $(STAMPS)/quic-clients
	$(say) 'HTTP/3 clients: Chromium, Firefox, Bun, quic-go'
	@tools/setup-debian clients/packages.txt
	@[ -x $(BUILD)/clients/venv/bin/python ] || /usr/bin/python3 -m venv $(BUILD)/clients/venv
	@export PATH=$(abspath $(BUILD)/clients/venv/bin):$$PATH
	@pip install --quiet --disable-pip-version-check --require-hashes -r clients/requirements.lock
	@mkdir -p $(BUILD)/clients/npm
	@cp clients/programs/package.json clients/programs/package-lock.json $(BUILD)/clients/npm
	@npm ci --prefix $(BUILD)/clients/npm --silent
	@go build -C clients/programs/quic-go -o $(abspath $(BUILD)/clients/quic-go) .
	@touch $@

# The modules that the scripts of `make environments` import; mininet is Debian's.
$(STAMPS)/environments: environments/packages.txt environments/requirements.lock environments/support/p4config_pb2.py | $(STAMPS)/debian
	$(say) 'Environments: sudo, iperf, Python packages'
	@tools/setup-debian environments/packages.txt
	@[ -x $(BUILD)/environments/venv/bin/python ] || /usr/bin/python3 -m venv --system-site-packages $(BUILD)/environments/venv
	@$(BUILD)/environments/venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r environments/requirements.lock
	@install -D -m 644 -t $$($(BUILD)/environments/venv/bin/python -c 'import p4; print(p4.__path__[0])')/tmp environments/support/p4config_pb2.py
	@touch $@

# The modules that the PTF tests of the public TNA programs import.
$(STAMPS)/tna-conformance: conformance/tna/requirements.lock | $(STAMPS)/debian
	$(say) 'TNA: Python packages of the PTF tests'
	@[ -x $(BUILD)/tna-conformance/venv/bin/python ] || /usr/bin/python3 -m venv $(BUILD)/tna-conformance/venv
	@$(BUILD)/tna-conformance/venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $<
	@touch $@

# Installs what `pip install softswitch/python` installs, without building the crates a second time.
$(STAMPS)/python: $(STAMPS)/venv $(STAMPS)/rust $(shell find softswitch/python/python -type f -not -path '*/__pycache__/*')
	$(say) 'Python: the package softswitch'
	@package=$$($(PYTHON) -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/softswitch
	@rm -rf $$package
	@(cd softswitch/python/python && find softswitch -type f -not -path '*/__pycache__/*' -exec install -D -m 644 '{}' $$package/../'{}' ';')
	@install -m 755 $(BIN)/lib_softswitch.so $$package/_softswitch.abi3.so
	@touch $@

$(NGINX_MODULE): $(shell find host-agents/cclb7/nginx host-agents/cclb7/lib host-agents/cclb7/include -type f 2>/dev/null) | $(STAMPS)/debian
	$(say) 'C: module for nginx, library send_cc'
	@$(MAKE) --no-print-directory -C host-agents/cclb7 BUILD=$(abspath $(BUILD)/cclb7)

# The crates of cargo hold the sources of lsquic and BoringSSL.
$(LSQUIC_SERVER): $(STAMPS)/rust $(shell find host-agents/lsquic host-agents/quic-c/include -type f)
	$(say) 'C: lsquic and BoringSSL, server frontage-lsquic (two minutes the first time)'
	@$(MAKE) --no-print-directory -j$$(nproc) -C host-agents/lsquic BUILD=$(abspath $(BUILD)/lsquic)
	@touch $@

$(P4): $(STAMPS)/rust $(shell find p4src -name '*.p4')
	$(say) 'P4: frontage.p4'
	@mkdir -p $(@D)
	@$(BIN)/softswitch-p4c -o $(P4) --p4runtime-files $(P4INFO) p4src/v1model/frontage.p4
