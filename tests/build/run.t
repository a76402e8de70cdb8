#!/bin/bash
# run.t: what tests/run adds to a test: its time, its status, and an end if it has none.
# shellcheck disable=SC2154,SC2016

# shellcheck source=tests/build/lib.sh
. "$(dirname "$0")/lib.sh"
run=(env -u HPC_TRAIN_LONG HPC_TRAIN_TEST_LIMIT=1 bash "$top_srcdir/tests/run" bash -c)
gone() { # PID: within a minute
    local tries
    for ((tries = 0; tries < 600; tries++)); do
        kill -0 "$1" 2>/dev/null || return 0
        sleep 0.1
    done
    return 1
}

capture env -u HPC_TRAIN_TEST_LIMIT bash "$top_srcdir/tests/run" bash -c 'echo "ok 1 - said"; echo "not ok 2 # SKIP"; exit 3'
is "$status" 3 "a test has its own exit status"
like "$out" $'^ok 1 - said\nok 2 # SKIP\n# took [0-9.]+ s, of the cores [0-9.]+ \\+ [0-9.]+ s$' "its lines, and its time"

capture limit 300 "${run[@]}" 'echo $$; exec sleep 500'
ok $((status == 0)) "a test that does not end has failed"
like "$out" $'\nBail out! of .* these run after 1 s: ended\n#.*\n# +[0-9]+ .* sleep 500\n' "what runs is listed"
gone "${out%%$'\n'*}"
ok $? "and ended"

capture limit 300 "${run[@]}" 'sleep 500 & echo $!'
like "$out" $'\nBail out! .* sleep 500\n' "so is a process that a test has left, with the test's output open"
gone "${out%%$'\n'*}"
ok $? "and ended"

capture limit 300 "${run[@]}" 'env -i sleep 600 & echo $!; export AAA=1 zzz=1; sleep 500'
like "$out" "Bail out! .* sleep 500" "one that is not found, without the test's environment"
kill "${out%%$'\n'*}"
ok $? "keeps nobody waiting"
done_testing
