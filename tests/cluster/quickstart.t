#!/bin/bash
# quickstart.t: what ./quickstart refuses, and that the commands it hands on reach the sandbox. The two long commands are
# not run here: `check` is what runs this.

# shellcheck source=tests/cluster/lib.sh
. "$(dirname "$0")/lib.sh"
[ "$(id -u)" = 0 ] || skip_all "becoming another user needs root"
quickstart=$top_srcdir/quickstart

capture limit 20 "$quickstart" --help
is "$status" 0 "--help: exit status 0"
like "$out" "quickstart check" "--help: names the commands"
capture limit 20 "$quickstart" begin
is "$status" 64 "an unknown command: exit status 64"
like "$err" "unknown command 'begin'" "an unknown command: is named"
capture limit 20 "$quickstart" check all
is "$status" 64 "check takes no arguments: exit status 64"
like "$err" "not 'all'" "check takes no arguments: says so"

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
