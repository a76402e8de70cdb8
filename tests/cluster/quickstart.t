#!/bin/bash
# quickstart.t: what ./quickstart refuses, and that the commands it hands on reach the sandbox. The two long commands are
# not run here: `check` is what runs this.

# shellcheck source=tests/cluster/lib.sh
. "$(dirname "$0")/lib.sh"
[ "$(id -u)" = 0 ] || skip_all "becoming another user needs root"
unset CC CFLAGS CPPFLAGS LDFLAGS # of who runs the tests
quickstart=$top_srcdir/quickstart

capture limit 20 "$quickstart" --help
is "$status" 0 "--help: exit status 0"
like "$out" "quickstart check \[PART\|TEST...\]" "--help: names the commands, and that check takes names of parts and tests"
capture limit 20 "$quickstart" begin
is "$status" 64 "an unknown command: exit status 64"
like "$err" "unknown command 'begin'" "an unknown command: is named"

# A kind of tests that is not built: a failure of `quickstart check`, and never without a word.
kinds() { capture env "$@" HPC_TRAIN_UNTESTED='unit tests: install libcmocka-dev;GPU module: install CUDA;' bash "$top_srcdir/tests/build/kinds.t"; }
kinds HPC_TRAIN_ALL_KINDS=1
like "$out" "not ok 1 - unit tests: install libcmocka-dev"$'\n'"ok 2 - GPU module # SKIP not built: install CUDA" "a kind of tests that is not built fails check"
kinds HPC_TRAIN_ALL_KINDS=
like "$out" "^ok 1 - unit tests # SKIP not built: install libcmocka-dev, then configure again" "make check skips it, with the reason"

temporary=$(mktemp -d /var/tmp/hpc-train-quickstart.XXXXXX)
at_exit "rm -rf '$temporary'"
chmod 755 "$temporary"
mkdir "$temporary/etc"
cp "$quickstart" "$temporary"
cp -r "$top_srcdir/etc/sandbox" "$temporary/etc"
export HPC_TRAIN_SANDBOX=$temporary/sandbox
for command in '' check; do
    # shellcheck disable=SC2086
    capture limit 20 setpriv --reuid=65534 --clear-groups "$temporary/quickstart" $command
    is "$status" 78 "quickstart $command without root: exit status 78"
    like "$err" "as root" "quickstart $command without root: the error says so"
done
is "$(ls "$temporary")" $'etc\nquickstart' "nothing was built"
capture limit 20 "$temporary/quickstart" up 0
is "$status" 64 "up: arguments are checked before anything is built"
capture limit 20 "$temporary/quickstart" status
like "$out" "no cluster runs in $temporary/sandbox" "status reaches the sandbox"

# ---- what makes the next call configure again: a copy, with stand-ins for all that it calls, which say so ----
tree=$temporary/tree
mkdir -p "$tree/etc/sandbox" "$tree/m4" "$temporary/bin"
cp "$quickstart" "$tree"
stand_in() { # FILE LINE...
    printf '%s\n' '#!/bin/sh' "${@:2}" >"$1"
    chmod 755 "$1"
}
stand_in "$tree/etc/sandbox/sandbox" 'exit 0'
stand_in "$temporary/bin/autoreconf" "echo autoreconf >>'$temporary/called'" "cp '$temporary/configure' ."
stand_in "$temporary/configure" "echo configure >>'$temporary/called'" "[ ! -e '$temporary/broken' ] && : >Makefile"
stand_in "$temporary/bin/make" "case \"\$*\" in *install*) ;; *) echo make >>'$temporary/called' ;; esac"
stand_in "$temporary/bin/gcc" "cat '$temporary/compiler'"
stand_in "$temporary/bin/dpkg-query" "case \"\$*\" in *Status-Abbrev*) cat '$temporary/packages' ;; esac"
echo "gcc 12.2" >"$temporary/compiler"
echo "ii libslurm-dev 22.05" >"$temporary/packages"
echo "one" >"$tree/m4/one.m4"
# calls WANT NAME [NAME=VALUE...]: what quickstart calls now.
calls() {
    : >"$temporary/called"
    capture limit 30 env "${@:3}" PATH="$temporary/bin:$PATH" "$tree/quickstart" up
    is "$(paste -sd' ' "$temporary/called")" "$1" "$2" || diag "$err"
}
stays() { [ -e "$tree/build/$1" ]; ok $? "$2"; }
goes() { [ ! -e "$tree/build/$1" ]; ok $? "$2"; }
mark() { : >"$tree/build/mark"; }
calls "autoreconf configure make" "a fresh clone is configured and built"
calls make "nothing has changed: only make"
mark
calls "configure make" "CFLAGS: configured again" CFLAGS=-O1
goes mark "and compiled anew"
calls make "once" CFLAGS=-O1
calls "configure make" "CC too" CFLAGS=-O1 CC=cc
calls "configure make" "and back"
mark
echo "gcc 14.2" >"$temporary/compiler"
calls "configure make" "another version of the compiler: configured again"
goes mark "and compiled anew"
mark
echo "ii libcmocka-dev 1.1" >>"$temporary/packages"
calls "configure make" "a package has come: configured again"
stays mark "what was compiled stays"
sed -i 's/22.05/24.11/' "$temporary/packages"
calls "configure make" "a package is updated: configured again"
goes mark "and compiled anew"
sed -i /cmocka/d "$temporary/packages"
calls "configure make" "a package has gone: configured again"
mark
echo "two" >"$tree/m4/one.m4"
calls "autoreconf configure make" "another tree: autoreconf, and configured again"
stays mark "what was compiled stays, as make looks at the sources"
calls make "and then only make"
touch "$temporary/broken"
echo "gcc 15.1" >"$temporary/compiler"
calls configure "configure fails"
is "$status" 70 "quickstart ends with 70, too"
rm "$temporary/broken"
calls "configure make" "the next call configures again, though nothing else has changed"

# ---- another program that installs packages: dpkg itself and its lock, in a database of their own ----
export DPKG_ADMINDIR=$temporary/dpkg
mkdir -p "$DPKG_ADMINDIR/updates" "$DPKG_ADMINDIR/info"
touch "$DPKG_ADMINDIR"/{status,available,lock,lock-frontend}
hold() { # takes the lock as dpkg does, until let_go
    rm -f "$temporary/held"
    python3 -c 'import fcntl, sys, time
file = open(sys.argv[1], "w")
fcntl.lockf(file, fcntl.LOCK_EX)
open(sys.argv[2], "w")
time.sleep(600)' "$DPKG_ADMINDIR/lock-frontend" "$temporary/held" &
    holder=$!
    at_exit "kill $holder 2>/dev/null"
    until [ -e "$temporary/held" ]; do sleep 0.1; done
}
let_go() { kill "$holder" && wait "$holder" 2>/dev/null; }
stand_in "$temporary/bin/apt-get" "echo \"apt-get \$*\" | cut -d' ' -f1-3 >>'$temporary/called'" \
    "if [ -e '$temporary/busy' ]; then rm '$temporary/busy'; echo 'E: Could not get lock /var/lib/apt/lists/lock. It is held by process 1 (x)'; exit 100; fi" \
    "case \"\$*\" in *install*) echo 'Unpacking gcc'; sleep 3; exit 1 ;; esac"
installs() { limit 90 env PATH="$temporary/bin:$PATH" HPC_TRAIN_PROGRESS_SECONDS=1 HPC_TRAIN_LOCK_SECONDS="$1" "$tree/quickstart"; }
: >"$temporary/called"
hold
capture installs 2
is "$status" 69 "dpkg's lock is held: the wait has an end, exit status 69"
like "$out" "holds $DPKG_ADMINDIR/lock-frontend, process $holder \(python3\): waiting, up to [12] s" "it says at once for whom it waits"
like "$err" "another program installs packages, and has not ended for 2 s: it holds $DPKG_ADMINDIR/lock-frontend, process $holder \(python3\)" "and at the end"
is "$(cat "$temporary/called")" "" "nothing was installed meanwhile"
(installs 60 >"$temporary/out" 2>&1; echo "status $?" >>"$temporary/out") &
waiting=$!
for _ in {1..300}; do grep -q 'waiting, up to' "$temporary/out" && break; sleep 0.1; done
let_go
touch "$temporary/busy"
wait $waiting
out=$(cat "$temporary/out")
is "$(paste -sd, "$temporary/called")" "apt-get -q update,apt-get -q update,apt-get -q -y" "once it is free it goes on; apt's own lock is waited for, too"
like "$out" "apt-get install: [0-9]+ s: Unpacking gcc" "what takes long says how far it is"
like "$out" "On two cores: Debian packages .* GB.*, building .* GB" "at its start quickstart says how long it takes, and how much disk"
like "$out" "status 70\$" "a failure that has nothing to do with locks is one"
unset DPKG_ADMINDIR

# ---- named tests get what they need ----
stand_in "$temporary/bin/make" "case \"\$*\" in" "*list-programs*) printf '%s\\n' tests/unit/a tests/stage/b tests/stage/c.la ;;" \
    "*list-parts*) echo 'tests/unit/a unit' ;;" \
    "*check-TESTS*) : >build/test-suite.log; echo '# ERROR: 0' | tee build/test-suite.log >build/cluster-suite.log ;;" \
    "*) echo \"\$*\" | sed 's/.*-j[0-9]* *//; s/ CFLAGS.*//; s/-C build *//; s/DESTDIR.*//' >>'$temporary/called' ;; esac"
stand_in "$tree/etc/sandbox/sandbox" "[ \"\$1 \$2\" = 'up 4' ] && echo 'cluster' >>'$temporary/called'; exit 0"
stand_in "$temporary/bin/dpkg-query" "case \"\$*\" in *Status-Status*) shift 2; for p; do echo \"\$p installed\"; done ;; *Status-Abbrev*) cat '$temporary/packages' ;; esac"
mkdir -p "$tree/tests/build" "$tree/tests/cluster"
echo 'echo 1..0; "$top_builddir/tests/stage/.libs/c.so"' >"$tree/tests/build/alone.t"
echo 'echo 1..0' >"$tree/tests/build/none.t"
printf '%s\n' '. lib.sh' 'on_cluster 2' >"$tree/tests/cluster/one.t"
cp "$tree/tests/cluster/one.t" "$tree/tests/cluster/two.t"
needs() { # WANT NAME TEST...
    : >"$temporary/called"
    capture limit 60 env PATH="$temporary/bin:$PATH" "$tree/quickstart" check "${@:3}"
    is "$(sed 's/ *$//; s/^$/all/' "$temporary/called" | paste -sd,)" "$1" "$2" || diag "$out$err"
}
needs "tests/unit/a unit-needs" "a unit test: only its program" tests/unit/a
needs "tests/unit/a unit-needs" "a part of unit tests" unit
needs "all,tests/stage/c.la" "a shell test: what its script names, and no cluster" tests/build/alone.t
needs "all,install,cluster" "a test of the cluster: one cluster" tests/cluster/one.t
needs "all,install,cluster,cluster" "two tests of the cluster: two" tests/cluster/{one,two}.t
needs "all,tests/unit/a unit-needs" "a part of unit tests, and a shell test" unit tests/build/none.t
done_testing
