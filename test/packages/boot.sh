#!/bin/sh
# Boots a Debian root folder with systemd in namespaces of its own, without a container engine: boot.sh ROOT. Ends with
# everything in it when it is killed. Needs root.
root=$1
cgroups=$(findmnt -n -l -t cgroup2 -o TARGET | head -n 1)/earmark-test-$$
mkdir "$cgroups"
(
  sh -c 'echo $PPID' > "$cgroups/cgroup.procs"
  exec unshare --mount --pid --fork --uts --ipc --net --cgroup --kill-child sh -e -c '
    mount --make-rprivate /
    mount --bind "$0" "$0"
    cd "$0"
    mount -t proc proc proc
    mount -t sysfs sysfs sys
    mount -t cgroup2 cgroup2 sys/fs/cgroup
    mount -t tmpfs -o mode=755 tmpfs run
    mount -t tmpfs -o mode=755 tmpfs dev
    mkdir -p dev/pts dev/shm old
    for device in null zero full random urandom tty; do
      touch "dev/$device"
      mount --bind "/dev/$device" "dev/$device"
    done
    mount -t devpts -o newinstance,ptmxmode=0666 devpts dev/pts
    ln -s pts/ptmx dev/ptmx
    ln -s /proc/self/fd dev/fd
    ip link set lo up
    pivot_root . old
    umount -l old
    exec env -i container=other PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd --system --show-status=no
  ' "$root"
) &
child=$!
# unshare ignores other signals.
trap 'kill -KILL $child' TERM INT
wait $child
wait $child
# The kernel needs a moment to end the processes.
for _ in $(seq 50); do
  find "$cgroups" -depth -type d -exec rmdir {} \; 2> /dev/null
  if [ ! -d "$cgroups" ]; then break; fi
  sleep 0.1
done
