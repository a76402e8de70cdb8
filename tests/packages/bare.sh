# bare.sh: bare Debian systems in folders, entered in namespaces of their own; sourced by tests/packages/*.t after lib.sh.
# Offers new_work, make_tarball, needs_bare, new_bare, in_bare, start_bare and into_bare. What is mounted for a system is
# seen by its processes alone, and ends with them.
# shellcheck shell=bash disable=SC2016,SC2034,SC2154 # inner shells expand; others read what is left

# The folder of a system to copy (as debootstrap --variant=minbase makes it); without it one is made, from the network.
pristine=${HPC_TRAIN_BARE_SYSTEM-}

# new_work: an empty folder, $bare_work, until the test ends.
new_work() {
    bare_work=$(mktemp -d "${TMPDIR:-/var/tmp}/hpc-train-packages.XXXXXX") || exit
    at_exit "rm -rf --one-file-system '$bare_work'"
}

needs_bare() {
    [ "$(id -u)" = 0 ] || skip_all "a system in a folder needs root"
    unshare --mount --pid --net --fork true 2>/dev/null || skip_all "this kernel lets nobody make namespaces"
    [ -n "$pristine" ] || command -v debootstrap >/dev/null || skip_all "debootstrap is not installed"
    new_work
    if [ -z "$pristine" ]; then
        pristine=$bare_work/pristine
        limit 900 debootstrap --variant=minbase bookworm "$pristine" >"$bare_work/debootstrap.log" 2>&1 ||
            skip_all "debootstrap cannot make a system: $(tail -n 1 "$bare_work/debootstrap.log")"
    fi
}

# new_bare NAME: another bare system, whose services do not start when they are installed. Leaves its folder in $bare.
new_bare() {
    bare=$bare_work/$1
    cp -a --reflink=auto "$pristine" "$bare" || exit
    printf '#!/bin/sh\nexit 101\n' >"$bare/usr/sbin/policy-rc.d"
    chmod 755 "$bare/usr/sbin/policy-rc.d"
    echo 'Acquire::Retries "3";' >"$bare/etc/apt/apt.conf.d/retries"
    cp /etc/resolv.conf "$bare/etc/resolv.conf"
    cp /etc/apt/apt.conf.d/*proxy* "$bare/etc/apt/apt.conf.d/" 2>/dev/null
    install -d -m 755 "$bare/srv/packages"
}

# The parts of the kernel that a system shows to its processes; control groups are looked for, and not used.
enter_bare='mount --make-rprivate / && mount -t proc proc "$0/proc" && mount -t sysfs sys "$0/sys" &&
    mount -t tmpfs -o mode=755 cgroup "$0/sys/fs/cgroup" && mount -t tmpfs -o mode=1777 shm "$0/dev/shm" &&
    mount -t devpts -o newinstance,ptmxmode=666,mode=620,gid=5 devpts "$0/dev/pts" &&
    cd / && exec chroot "$0" "$@"'

# in_bare DIR CMD...: as root in a system, with the machine's network.
in_bare() {
    env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
        unshare --mount --pid --uts --ipc --fork --kill-child sh -c "$enter_bare" "$@"
}

# start_bare DIR NAME: keeps a system going, with a network and a host name of its own, until the test ends; leaves the
# process to enter in $bare_pid. Names are only looked up where there is an address other than 127.0.0.1. It needs
# iproute2.
start_bare() {
    local end=$((SECONDS + 20))
    rm -f "$1/run/started"
    env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin unshare --mount --pid --uts --ipc --net --fork --kill-child \
        sh -c "hostname $2 && $enter_bare" "$1" sh -ec 'printf "127.0.0.1 localhost\n10.78.0.1 %s\n" "$(uname -n)" >/etc/hosts
        ip link set lo up
        ip link add eth0 type veth peer name eth1
        ip address add 10.78.0.1/24 dev eth0
        ip link set eth0 up
        ip link set eth1 up
        touch /run/started
        cd /
        sleep infinity & # and wait for all that lose their parents, as its first process must
        wait' &
    at_exit "kill -KILL $!; wait $! 2>/dev/null"
    until bare_pid=$(pgrep -P $!) && [ -e "$1/run/started" ]; do
        [ $SECONDS -lt $end ] || return 1
        sleep 0.1
    done
}

# into_bare CMD...: as root in the system that was started, for at most two minutes.
into_bare() {
    limit 120 env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 HOME=/root \
        nsenter --target "$bare_pid" --mount --pid --uts --ipc --net --root --wd "$@"
}

# make_tarball: what `make dist` packs, at the path $tarball.
make_tarball() {
    local log=$bare_work/dist.log
    (cd "$bare_work" && "$top_srcdir/configure" --quiet && env -u MAKEFLAGS -u MAKELEVEL make --silent dist) >"$log" 2>&1 ||
        { ok 1 "make dist" || diag "$(tail -n 20 "$log")"; return 1; }
    tarball=$(echo "$bare_work"/hpc-train-*.tar.xz)
}
