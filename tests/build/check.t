#!/bin/bash
# check.t: `hpc-train check` and `fit --check` without a cluster: alone, as two ranks of one node, and what is refused.
# shellcheck disable=SC2154,SC2034

# shellcheck source=tests/build/lib.sh
. "$(dirname "$0")/lib.sh"
work=$(mktemp -d /tmp/hpc-train-check.XXXXXX)
at_exit "rm -rf '$work'"
first_pictures "$work/pictures"
mkdir "$work/scratch"
export OMP_NUM_THREADS=1 TMPDIR=$work/scratch
unset SLURM_TMPDIR
train=$hpc_train
fit=("$train" fit --model mnist-convnet --data "$work/pictures" --steps-per-epoch 2 --batch-size 4)
head="node +ranks +GFLOP/s +memory GB/s +scratch MB/s +latency us +link MB/s +remark"

# json EXPRESSION: what python makes of the file, as `j`
json() { python3 -c 'import json, sys; j = json.load(open(sys.argv[1])); print(eval(sys.argv[2]))' "$work/check.json" "$1"; }

# ---- what is refused ----
refused() { # STATUS MESSAGE COMMAND…
    capture "${@:3}"
    is "$status" "$1" "refused with $1: ${*:4}"
    like "$err" "$2" "the error says why"
    is "$out" "" "nothing is measured"
}
refused 64 "unknown option '--jsn=x': did you mean --json\?" "$train" check --jsn=x
refused 64 "--json needs a value" "$train" check --json
refused 64 "'node1' is not an option" "$train" check node1
refused 74 "^hpc-train: $work/none/check.json: " "$train" check --json "$work/none/check.json"
refused 64 "--check is not for --strategy parameter-server" "${fit[@]}" --check --strategy parameter-server

# ---- alone ----
capture limit 300 "$train" check --json "$work/check.json"
is "$status$err" 0 "alone: nothing is slow"
like "$out" "^$head" "the head of the table"
like "$out" $'\n'"[^ ]+ +1 +[0-9.]+ +[0-9.]+ +[0-9.]+ +- +-" "a row without links"
like "$out" $'\n'"median  +-  +-  +-  +-  +-" "one node has no median"
is "$(json 'sorted(j)')" "['links', 'median', 'nodes', 'slow', 'version']" "the object has all parts"
is "$(json '[len(j["nodes"]), j["links"], j["slow"], j["nodes"][0]["ranks"], j["nodes"][0]["threads"], j["nodes"][0]["slow"]]')" "[1, [], [], 1, 1, []]" "of one node"
is "$(json 'all(j["nodes"][0][k] > 0 for k in ("gflops", "memory_gb_per_second", "scratch_mb_per_second"))')" True "with its figures"
is "$(json '[j["nodes"][0]["latency_us"], *j["median"].values()]')" "[None, None, None, None, None, None]" "what is not known is null"
is "$(ls -A "$work/scratch")" "" "the scratch folder is as before"
capture limit 300 env TMPDIR=/proc "$train" check
is "$status" 0 "a scratch folder that cannot be written, as on all nodes, ends nothing"
like "$out" " 0\.00 .* /proc: making a file in it failed: " "the row has the reason"

# ---- ranks of one node ----
if command -v mpirun >/dev/null; then
    capture limit 300 mpirun --allow-run-as-root --oversubscribe --bind-to none -n 2 "$train" check
    is "$status" 0 "two ranks of a node" || diag "$err"
    is "$(grep -cE "^$head" <<<"$out")" 1 "one rank prints"
    like "$out" $'\n'"[^ ]+ +2 +[0-9.]+ +[0-9.]+ +[0-9.]+ +- +-" "one row, for both"
fi

# ---- before training ----
capture limit 300 "${fit[@]}" --check
is "$status" 0 "fit --check" || diag "$err"
like "$out" "$head.*Epoch 1/1" "the table comes before step 1"
capture limit 300 "${fit[@]}" --check --verbose 0
is "$status$out$err" 0 "--verbose 0 says nothing"
capture limit 300 "${fit[@]}"
unlike "$out" "GFLOP/s" "without --check nothing is measured"
done_testing
