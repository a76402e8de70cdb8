# tests/results/lib.sh - what the tests of a run's results share: a short run, its outputs, and an earlier run's. Sourced; not
# a test.
# shellcheck shell=bash
# shellcheck source=tests/build/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../build/lib.sh"
work=$(mktemp -d /tmp/hpc-train-results.XXXXXX)
at_exit "rm -rf '$work'"
first_pictures "$work/pictures"
export OMP_NUM_THREADS=1 GOMP_SPINCOUNT=0
umask 022

# fit OPTION…: two epochs of two steps
fit() {
    limit 60 "$hpc_train" fit --model mnist-convnet --data "$work/pictures" --epochs 2 --steps-per-epoch 2 \
        --batch-size 8 --verbose 2 "$@"
}

# shellcheck disable=SC2034 # faults.t's
outputs=(w.safetensors s.json t.json log/history.csv log/metrics.jsonl)
all_in() { # FOLDER: the options for all of them there
    echo "--save-weights $1/w.safetensors --summary-json $1/s.json --timeline $1/t.json --log-dir $1/log"
}
