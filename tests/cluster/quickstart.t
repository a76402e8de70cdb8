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
done_testing
