#!/bin/bash
# quickstart.t: what ./quickstart refuses, and that the commands it hands on reach the sandbox. The two long commands are
# not run here: `check` is what runs this.

# shellcheck source=tests/cluster/lib.sh
. "$(dirname "$0")/lib.sh"
[ "$(id -u)" = 0 ] || skip_all "becoming another user needs root"
quickstart=$top_srcdir/quickstart

capture limit 20 "$quickstart" --help
is "$status" 0 "--help: exit status 0"
like "$out" "quickstart check \[TEST...\]" "--help: names the commands, and that check takes names of tests"
capture limit 20 "$quickstart" begin
is "$status" 64 "an unknown command: exit status 64"
like "$err" "unknown command 'begin'" "an unknown command: is named"

# A kind of tests that is not built: a failure of `quickstart check`, and never without a word.
kinds() { capture env "$@" HPC_TRAIN_UNTESTED='unit tests: install libcmocka-dev;GPU module: install CUDA;' bash "$top_srcdir/tests/build/kinds.t"; }
kinds HPC_TRAIN_ALL_KINDS=1
like "$out" "not ok 1 - unit tests: install libcmocka-dev"$'\n'"ok 2 - GPU module # SKIP not built: install CUDA" "a kind of tests that is not built fails check"
kinds HPC_TRAIN_ALL_KINDS=
like "$out" "^ok 1 - unit tests # SKIP not built: install libcmocka-dev, then configure again" "and is skipped, with the reason, by make check"

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
    like "$err" "as root" "quickstart $command without root: says so"
done
is "$(ls "$temporary")" $'etc\nquickstart' "nothing was built"
capture limit 20 "$temporary/quickstart" up 0
is "$status" 64 "up: arguments are checked before anything is built"
capture limit 20 "$temporary/quickstart" status
like "$out" "no cluster runs in $temporary/sandbox" "status reaches the sandbox"
done_testing
