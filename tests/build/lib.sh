# tests/build/lib.sh - what the tests of the build itself share: a second build, a logged run, two
# ranks without a cluster. Sourced; not a test.
# shellcheck shell=bash
# shellcheck source=tests/cluster/lib.sh
. "${top_srcdir:?run this with make check}/tests/cluster/lib.sh"
: "${top_builddir:?run this with make check}"
unset MAKEFLAGS MFLAGS MAKELEVEL

# run_logged LOG COMMAND…: its status; the log's end as remarks when it failed.
run_logged() {
    local log=$1 status
    shift
    limit 600 "$@" >"$log" 2>&1
    status=$?
    [ "$status" -eq 0 ] || diag "exit $status: $*" "$(tail -n 40 "$log")"
    return "$status"
}

# second_build DIR CONFIGURE-OPTION…: configures and builds everything there, tests included.
second_build() {
    local dir=$1
    shift
    [ ! -e "$top_srcdir/config.status" ] || skip_all "the source folder itself is configured"
    mkdir -p "$dir" || return
    [ -e "$dir/Makefile" ] ||
        (cd "$dir" && run_logged configure.out "$top_srcdir/configure" -q "$@") || return
    run_logged "$dir/make.out" make -C "$dir" -s -j"$(nproc)" all check-programs
}

# two_ranks LOG COMMAND…: `COMMAND fit …` as two ranks under mpirun, a few steps on real pictures.
two_ranks() {
    local log=$1 pictures=/usr/share/datasets/fashion-mnist
    shift
    OMP_NUM_THREADS=1 run_logged "$log" mpirun --allow-run-as-root --oversubscribe --bind-to none \
        -n 2 "$@" fit --model mnist-cnn --data "$pictures" --validation-data "$pictures" \
        --epochs 2 --steps-per-epoch 2 --batch-size 16
}
