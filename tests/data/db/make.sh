#!/bin/sh
# Makes a golden database: a session of the demo, by the programs of the release whose schema it has.
# Usage: make.sh DIRECTORY-WITH-agentd-AND-agentctl FILE.db
set -eu
bin=$(cd "$1" && pwd)
out=$2
scratch=$(mktemp -d /tmp/golden.XXXXXX)
trap 'rm -rf "$scratch"' EXIT
mkdir -m 700 "$scratch/run"
mkdir "$scratch/work" "$scratch/home"
demo=$(cd "$(dirname "$0")/../../../agentd/src/model/demo" && pwd)
cp "$demo"/* "$scratch/work/"
cd "$scratch/work"
# Nothing of the user's own environment gets into the file.
run() {
    env -i PATH=/usr/bin:/bin HOME="$scratch/home" LANG=C.UTF-8 AGENTD_BIN="$bin/agentd" XDG_RUNTIME_DIR="$scratch/run" \
        XDG_STATE_HOME="$scratch/state" XDG_CONFIG_HOME="$scratch/config" "$bin/agentctl" "$@"
}
run ask --new --scenario demo --approve all "The first name is missing when I run hello.py. Find out why and mend it." >/dev/null
run shutdown --stop-shells >/dev/null
cd /
# One file, without what SQLite keeps beside it.
python3 - "$scratch/state/agentd/agentd.db" "$out" <<'PY'
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1])
connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
connection.execute("VACUUM INTO ?", (sys.argv[2],))
print(sys.argv[2], "schema", connection.execute("PRAGMA user_version").fetchone()[0])
PY
