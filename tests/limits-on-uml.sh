#!/bin/bash
# Tries the limits of control groups on a kernel that has their controllers: User-Mode Linux (Debian: user-mode-linux), as
# root, on this machine's own files, read-only. Skips with the reason where that cannot be.
#   tests/limits-on-uml.sh PROGRAM     PROGRAM: the built test `shell` of agentd-shim
set -eu
skip() { echo "skipped: $1"; exit 0; }
[ "$(id -u)" = 0 ] || skip "only root can make the other kernel's root directory"
command -v linux.uml >/dev/null || skip "linux.uml is not installed (apt-get install user-mode-linux)"
program=$(realpath "${1:?the built test shell of agentd-shim}")
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
echo 125 > "$work/status"; : > "$work/out"
cat > "$work/init" <<INIT
#!/bin/bash
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
mount -t proc proc /proc; mount -t sysfs sysfs /sys; mount -t tmpfs tmp /tmp; mount -t cgroup2 none /sys/fs/cgroup
mount -t tmpfs none /mnt; mkdir /mnt/out; mount -t hostfs -o $work none /mnt/out
ip link set lo up
echo "+memory +pids" > /sys/fs/cgroup/cgroup.subtree_control
mkdir /sys/fs/cgroup/unit
cp $program /mnt/shell 2>>/mnt/out/out
( echo \$BASHPID > /sys/fs/cgroup/unit/cgroup.procs; exec /mnt/shell that_was_hit ) >>/mnt/out/out 2>&1
echo \$? > /mnt/out/status; sync; halt -f
INIT
chmod +x "$work/init"
# The program may lie where the other kernel's own /tmp hides it.
case $program in /tmp/*) cp "$program" "$work/shell"; sed -i 's|^cp .*|cp /mnt/out/shell /mnt/shell|' "$work/init"; ;; esac
init="$work/init"
case $work in /tmp/*) ;; *) skip "TMPDIR must be below /tmp" ;; esac
timeout -k 3 300 linux.uml mem=1G root=/dev/root rootfstype=hostfs rootflags=/ ro init="$init" con=null con0=null quiet lsm=none \
  </dev/null >"$work/console" 2>&1 || true
cat "$work/out"
status=$(cat "$work/status")
[ "$status" != 125 ] || { echo "the other kernel did not come so far:"; tail -20 "$work/console"; }
exit "$status"
