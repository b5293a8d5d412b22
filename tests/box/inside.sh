#!/bin/bash
# inside.sh PROGRAMS TEST NAME REPOSITORY: on the machine that boot.sh makes, as root: makes an ordinary user with a
# lingering user manager, installs agentd for them, and runs the test NAME of the binary TEST as that user.
set -euo pipefail
user=tester
# Their places may be where only root can go.
mkdir -p /opt/box/programs /opt/box/tests /opt/box/repository
mount --bind "$1" /opt/box/programs
mount --bind "$(dirname "$2")" /opt/box/tests
mount --bind "$4" /opt/box/repository

useradd --create-home --shell /bin/bash "$user"
id=$(id -u "$user")
loginctl enable-linger "$user"
for _ in $(seq 200); do
  [ ! -S "/run/user/$id/systemd/private" ] || break
  sleep 0.05
done
home=$(getent passwd "$user" | cut -d: -f6)
cd "$home"
exec runuser -u "$user" -- env -i HOME="$home" USER="$user" LANG=C.UTF-8 XDG_RUNTIME_DIR="/run/user/$id" \
  PATH="$home/.local/bin:/usr/local/bin:/usr/bin:/bin" AGENTD_BOX=/opt/box/programs \
  AGENTD_BOX_REPOSITORY=/opt/box/repository RUST_BACKTRACE=0 \
  bash -euc 'make -s -C "$AGENTD_BOX_REPOSITORY" install BUILT="$AGENTD_BOX"
    exec "/opt/box/tests/$1" --exact "$2" --nocapture' inside "$(basename "$2")" "$3"
