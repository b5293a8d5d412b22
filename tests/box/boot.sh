#!/bin/bash
# boot.sh SCRIPT [ARGUMENT...]: runs SCRIPT as root on a throw-away machine with a real systemd.
#
# The machine is this one: its root directory under an overlay whose upper layer is memory, in namespaces of its own,
# with systemd as process 1, journald, logind and user managers. What it writes is gone when it ends; processes, mounts
# and control groups too. The network is this machine's. SCRIPT's output appears at the end; its exit status is ours.
# Exit status 77: this machine cannot do it, and the last line says why.
set -euo pipefail

skip() { echo "skipped: $1"; exit 77; }
[ "$(id -u)" = 0 ] || skip "only root can boot a machine in namespaces"
for program in unshare pivot_root mount useradd runuser loginctl; do
  command -v "$program" >/dev/null || skip "$program is not installed"
done
init=/lib/systemd/systemd
[ -x "$init" ] || skip "systemd is not installed"
command -v dbus-daemon >/dev/null || skip "dbus-daemon is not installed"
hierarchy=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/self/mounts)
[ -n "$hierarchy" ] || skip "there is no version 2 control group hierarchy"
group=$hierarchy/agentd-box-$$
mkdir "$group" 2>/dev/null || skip "$hierarchy cannot be written to"

scratch=$(mktemp -d)
end() {
  [ ! -e "$group/cgroup.kill" ] || echo 1 > "$group/cgroup.kill"
  for _ in $(seq 50); do
    find "$group" -depth -type d -exec rmdir {} + 2>/dev/null || :
    [ -d "$group" ] || break
    sleep 0.02
  done
  rm -rf "$scratch"
}
trap end EXIT

script=$(realpath "$1"); shift
: > "$scratch/output"
# Says that the machine never came as far as the script.
echo 125 > "$scratch/status"
{ printf '#!/bin/bash\n%q' "$script"; printf ' %q' "$@"; printf '\n'; } > "$scratch/run"

# In the new namespaces: builds the root, then becomes process 1 of the machine.
cat > "$scratch/stage" <<'STAGE'
set -euo pipefail
scratch=$1 init=$2
memory=$(mktemp -d)
mount -t tmpfs -o size=3g,mode=755 box "$memory"
mkdir "$memory/upper" "$memory/work" "$memory/root"
root=$memory/root
if ! mount -t overlay -o "lowerdir=/,upperdir=$memory/upper,workdir=$memory/work" box "$root"; then
  echo "skipped: an overlay over / cannot be mounted" >> "$scratch/output"
  echo 77 > "$scratch/status"
  exit 0
fi
mount -t proc box "$root/proc"
# Settings of the kernel are shared by all machines on it: this one only reads them.
mount --bind "$root/proc/sys" "$root/proc/sys"
mount -o remount,bind,ro "$root/proc/sys"
mount -t sysfs -o ro box "$root/sys"
mount -t cgroup2 -o nsdelegate box "$root/sys/fs/cgroup"
mount -t tmpfs -o mode=755 box "$root/dev"
for device in null zero full random urandom tty; do
  touch "$root/dev/$device"
  mount --bind "/dev/$device" "$root/dev/$device"
done
mkdir "$root/dev/pts" "$root/dev/shm"
mount -t devpts -o newinstance,ptmxmode=0666,mode=620,gid=5 box "$root/dev/pts"
mount -t tmpfs -o mode=1777 box "$root/dev/shm"
ln -s pts/ptmx "$root/dev/ptmx"
ln -s /proc/self/fd "$root/dev/fd"
for number in 0:stdin 1:stdout 2:stderr; do ln -s "/proc/self/fd/${number%:*}" "$root/dev/${number#*:}"; done
mount -t tmpfs -o mode=755 box "$root/run"
mkdir -p "$root/var/log/journal" "$root$scratch"
mount -t tmpfs -o mode=2755 box "$root/var/log/journal"
mount --bind "$scratch" "$root$scratch"

units=$root/etc/systemd/system
cat > "$units/box.target" <<UNIT
[Unit]
Requires=basic.target
After=basic.target
Wants=dbus.socket systemd-logind.service systemd-user-sessions.service box.service
AllowIsolate=yes
UNIT
cat > "$units/box.service" <<UNIT
[Unit]
After=basic.target systemd-logind.service dbus.socket systemd-user-sessions.service
[Service]
Type=oneshot
Environment=HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8
ExecStart=/bin/bash -c 'echo 1 > $scratch/status; /bin/bash $scratch/run; echo \$\$? > $scratch/status'
ExecStopPost=/bin/systemctl --no-block exit 0
StandardOutput=append:$scratch/output
StandardError=inherit
TimeoutStartSec=300
UNIT
# What would touch hardware, network or clock, which are not this machine's own.
for unit in systemd-udevd systemd-udev-trigger systemd-sysctl systemd-modules-load systemd-remount-fs \
  systemd-random-seed systemd-update-utmp systemd-timesyncd systemd-networkd-wait-online systemd-binfmt apparmor \
  networking ifupdown-pre keyboard-setup console-setup; do
  ln -sf /dev/null "$units/$unit.service"
done
# Else the boot empties /tmp, where the caller's files may be.
mkdir -p "$root/etc/tmpfiles.d"
ln -sf /dev/null "$root/etc/tmpfiles.d/tmp.conf"
cd "$root"
mkdir -p oldroot
pivot_root . oldroot
umount -l /oldroot
exec env -i container=box PATH=/usr/sbin:/usr/bin:/sbin:/bin TERM=dumb \
  "$init" --system --show-status=no --log-target=null --unit=box.target </dev/null >/dev/null 2>&1
STAGE

(
  echo "$BASHPID" > "$group/cgroup.procs"
  exec unshare --mount --cgroup --pid --uts --ipc --fork --propagation private --kill-child \
    bash "$scratch/stage" "$scratch" "$init"
) || :
cat "$scratch/output"
exit "$(cat "$scratch/status")"
