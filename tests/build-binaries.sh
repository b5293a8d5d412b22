#!/bin/sh
# nextest's setup: builds what the claims drive and tells them where it is (see tests/src/binaries.rs).
set -eu
cargo build -p agentd -p agentctl
target=$(cargo metadata --format-version 1 --no-deps | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')
echo "AGENTD_TEST_BIN_DIR=$target/debug" >> "$NEXTEST_ENV"
