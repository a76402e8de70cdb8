# bare.sh: bare Debian systems in folders, entered in namespaces of their own; sourced by tests/packages/*.t after lib.sh.
# Offers new_work, make_tarball, needs_bare, new_bare, in_bare, start_bare and into_bare.
# shellcheck shell=bash disable=SC2016,SC2034,SC2154 # inner shells expand; others read what is left

# shellcheck source=tests/distros/bare_system.sh
. "${top_srcdir:?}/tests/distros/bare_system.sh"

# The release, and the folder of a system of it to copy (as debootstrap --variant=minbase makes it); without it one is made, from
# the network.
suite=${HPC_TRAIN_BARE_SUITE:-bookworm}
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
        limit 900 debootstrap --variant=minbase "$suite" "$pristine" ${HPC_TRAIN_MIRROR:+"$HPC_TRAIN_MIRROR"} >"$bare_work/debootstrap.log" 2>&1 ||
            skip_all "debootstrap cannot make a system: $(tail -n 1 "$bare_work/debootstrap.log")"
    fi
}

# new_bare NAME: another bare system, whose services do not start when they are installed. Leaves its folder in $bare.
new_bare() {
    bare=$bare_work/$1
    cp -a --reflink=auto "$pristine" "$bare" || exit
    prepare_bare "$bare"
    install -d -m 755 "$bare/srv/packages"
}

# start_bare DIR NAME: keeps a system going, with a network and a host name of its own, until the test ends; leaves the
# process to enter in $bare_pid. Names are only looked up where there is an address other than 127.0.0.1. It needs
# iproute2.
start_bare() {
    local end=$((SECONDS + 20))
    rm -f "$1/run/started"
    env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin unshare --mount --pid --uts --ipc --net --fork --kill-child \
        env bare_packages= sh -c "hostname $2 && $enter_bare" "$1" sh -ec 'printf "127.0.0.1 localhost\n10.78.0.1 %s\n" "$(uname -n)" >/etc/hosts
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
