#!/bin/bash
# Training where MPI knows nothing of the ranks (srun --mpi=none, or a Slurm without PMIx): one run over the step's addresses and
# key, with the losses that it has over MPI. A lost rank is named; what cannot be is refused.
# shellcheck disable=SC2154,SC2086 # several words
. "${top_srcdir:-.}/tests/cluster/lib.sh"
. "$top_srcdir/tests/cluster/train_lib.sh"
on_cluster 4
need_training
lasts

# The losses on so many ranks, over TCP and, where srun can start them so, over MPI; else one rank's.
few="$quick --data $pictures --steps-per-epoch 20 --global-batch-size 32 --seed 3 --learning-rate 0.001"
losses() { tr -d '{},":' <"$work_here/$1/metrics.jsonl" | awk '{ print $4, $6 }'; }
for ranks in 1 2 4; do
    capture sandbox_run srun --mpi=none --hpc-train -N$ranks $few --log-dir "$work/tcp$ranks"
    is "$status" 0 "$ranks ranks without PMIx" || diag "$err"
    like "$out" "256 pictures, $ranks rank" "$ranks ranks: one run of all"
    case $ranks in
    1) unlike "$out" "connected by TCP" "one rank is connected to none" ;;
    *) like "$out" "ranks are connected by TCP, not MPI: the launcher offers no PMIx" "$ranks ranks: by TCP, and why" ;;
    esac
    is "$(losses tcp$ranks | wc -l)" 20 "$ranks ranks: 20 steps"
    if has_pmix; then
        capture sandbox_run srun --mpi=pmix --hpc-train -N$ranks $few --log-dir "$work/mpi$ranks"
        is "$status" 0 "$ranks ranks over MPI" || diag "$err"
        unlike "$out" "connected by" "$ranks ranks over MPI: nothing is printed about it"
        is "$(losses tcp$ranks)" "$(losses mpi$ranks)" "$ranks ranks: the same losses as over MPI, to the digit"
    fi
    is "$(near <(losses tcp1 | cut -d' ' -f2) <(losses tcp$ranks | cut -d' ' -f2) 20 $((32 * positions)))" "" "$ranks ranks: one rank's losses"
done
capture sandbox_run srun --mpi=none --hpc-train -N2 --ntasks-per-node=2 $few --log-dir "$work/nodes"
is "$status" 0 "4 ranks on 2 nodes" || diag "$err"
is "$(losses nodes | wc -l)" 20 "4 ranks on 2 nodes: 20 steps"
capture sandbox_run srun --mpi=none --hpc-train -N2 $few --verbose 0
is "$status$out$err" 0 "--verbose 0 says nothing"

# ---- what MPI is told of -----------------------------------------------------------------------------------------------
capture sandbox_run srun --mpi=pmi2 --hpc-train -N2 $few
is "$status" 0 "PMI2, which this MPI does not support"
like "$out" "connected by TCP, not MPI: the launcher offers no PMIx" "connected by TCP"
if has_pmix; then
    capture sandbox_run srun --mpi=pmix --hpc-train -N2 $few --comm tcp
    is "$status" 0 "--comm tcp beside PMIx"
    like "$out" "connected by TCP, not MPI: --comm tcp" "--comm tcp is used"
    # What is in the environment may be of the step around it.
    capture sandbox_run salloc --quiet -N2 srun --mpi=pmix -N1 -n1 srun --overlap --mpi=none --hpc-train -N2 -n2 $few
    is "$status" 0 "a step without PMIx inside one with it" || diag "$err"
    like "$out" "2 ranks, .*connected by TCP, not MPI: the PMIx here is another step's" "knows that it is not its own"
fi

# ---- refused -------------------------------------------------------------------------------------------------------------
capture sandbox_run srun --mpi=none --hpc-train -N2 $few --comm mpi
is "$status" 78 "--comm mpi without PMIx: 78"
like "$err" "hpc-train: MPI sees no other rank \(the launcher offers no PMIx\), but the job has 2: take srun --hpc-train, or srun --mpi=pmix" "the error says what to do"
capture sandbox_run srun --mpi=none -N2 $few
is "$status" 78 "without PMIx and plugin: 78 instead of two separate trainings"
like "$err" "hpc-train: MPI sees no other rank \(the launcher offers no PMIx\), but the job has 2: take srun --hpc-train, or srun --mpi=pmix" "the error says what to do"
is "$out" "" "nothing is trained"
capture sandbox_run srun --mpi=none -N2 $few --comm tcp
is "$status" 78 "--comm tcp without the plugin: 78"
like "$err" "hpc-train: this step has no key .*start it with srun --hpc-train" "the error says what to do"

# ---- a rank that is lost -------------------------------------------------------------------------------------------------
# loses RANK SIGNAL: as in train_failures.t.
loses() {
    local what="rank $1 of 3 gets SIG$2"
    begin srun --mpi=none --hpc-train -N3 -w "node[0-2]" $lasts
    wait_for trains
    sleep 0.5
    mark
    kill "-$2" "$(rank_pid "$1")"
    finish
    ok $((seconds > 110)) "$what: the others end in time ($seconds s)"
    like "$err" "hpc-train: rank [0-9]+ \(node[0-9]\): rank $1 on node$1 was lost" "$what: the error names the rank"
    like "$err" "tasks? [0-9,-]*: Exited with exit code 69" "$what: the others end with 69"
    ok "$(wait_for none_left; echo $?)" "$what: no process is left"
    ok "$(wait_for none_drained; echo $?)" "$what: no node is drained"
}
loses 1 KILL
loses 0 KILL
loses 2 STOP
loses 0 STOP
done_testing
