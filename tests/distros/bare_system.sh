# bare_system.sh: a bare Debian in a folder, entered in namespaces of its own; sourced. What is mounted for a system is seen
# by its processes alone, and ends with them.
# shellcheck shell=bash disable=SC2016 # inner shells expand

# prepare_bare DIR: services do not start when they are installed; packages come from where this machine has them from.
prepare_bare() {
    printf '#!/bin/sh\nexit 101\n' >"$1/usr/sbin/policy-rc.d"
    chmod 755 "$1/usr/sbin/policy-rc.d"
    printf 'Acquire::Retries "3";\nAcquire::Check-Valid-Until "false";\n' >"$1/etc/apt/apt.conf.d/bare"
    cp /etc/resolv.conf "$1/etc/resolv.conf"
    cp /etc/apt/apt.conf.d/*proxy* "$1/etc/apt/apt.conf.d/" 2>/dev/null || true
}

# Its folder becomes the root of a tree of mounts, as / is on a machine, with the parts of the kernel that a system shows to
# its processes; control groups are looked for, and not used.
enter_bare='mount --make-rprivate / && mount --bind "$0" "$0" && mount -t proc proc "$0/proc" && mount -t sysfs sys "$0/sys" &&
    mount -t tmpfs -o mode=755 cgroup "$0/sys/fs/cgroup" && mount -t tmpfs -o mode=1777 shm "$0/dev/shm" &&
    mount -t devpts -o newinstance,ptmxmode=666,mode=620,gid=5 devpts "$0/dev/pts" &&
    { [ -z "$bare_packages" ] || mount --bind "$bare_packages" "$0/var/cache/apt/archives"; } &&
    cd "$0" && pivot_root . . && umount -l . && exec env -u bare_packages chroot . "$@"'

# in_bare DIR CMD...: as root in a system, with the machine's network, and $bare_packages, if that is set, as the folder of
# fetched packages. All that it starts ends with it.
in_bare() {
    env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive bare_packages="${bare_packages-}" ${CI:+CI="$CI"} \
        setpriv --pdeathsig=KILL unshare --mount --pid --uts --ipc --fork --kill-child sh -c "$enter_bare" "$@"
}
