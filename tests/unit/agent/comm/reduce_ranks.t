#!/bin/bash
# reduce_ranks.t: prepared reductions, several under way while other collectives go on, give all ranks the same bits, within
# the wire type's rounding of the sums in double, flat and by nodes, and in fp32 the same however the array is cut. The
# network is measured alike on all ranks. A rank lost while one is under way ends the others. So do sums and gathers over
# connections of our own. And all of it, and the other operations, over TCP as over MPI.

program=$top_builddir/tests/unit/agent/comm/reduce_ranks
if ! command -v mpirun >/dev/null; then
    echo "1..0 # SKIP there is no mpirun"
    exit 0
fi
export OMP_NUM_THREADS=1
numbers="2 3 5"
[ -z "${HPC_TRAIN_LONG-}" ] || numbers="2 3 4 5 7"
# shellcheck disable=SC2086 # several words
set -- $numbers
echo "1..$((6 * $# + 9))"
number=0
check() { # NAME CONDITION...
    local name=$1
    number=$((number + 1))
    shift
    "$@" || { sed 's/^/# /' <<<"$out"; printf 'not '; }
    echo "ok $number - $name"
}
ranks() { # NUMBER ARGUMENT...
    local n=$1
    shift
    out=$(mpirun --allow-run-as-root --oversubscribe --bind-to none -n "$n" "$@" 2>&1)
}
for n; do
    ranks "$n" "$program"
    check "$n ranks: fp32, bf16 and fp16, flat and by nodes" [ $? = 0 ]
done
for n; do
    ranks "$n" -x HPC_TRAIN_SUMS=tcp "$program"
    check "$n ranks: the same as letters" [ $? = 0 ]
done
for n; do
    ranks "$n" "$program" own
    check "$n ranks: sums and gathers over connections of our own" [ $? = 0 ]
done
for n; do
    ranks "$n" "$program" table
    check "$n ranks: collectives, streams and parts" [ $? = 0 ]
done
folder=$(mktemp -d /tmp/hpc-train-reduce-ranks.XXXXXX)
trap 'rm -rf "$folder"' EXIT
without_mpi() { # NUMBER ARGUMENT...
    rm -rf "$folder/ranks"
    out=$(bash "$top_srcdir/tests/strategy/ranks.sh" "$folder/ranks" "$@" 2>&1)
}
for n; do
    without_mpi "$n" "$program"
    check "$n ranks over TCP: reductions" [ $? = 0 ]
    without_mpi "$n" "$program" table
    check "$n ranks over TCP: collectives, streams and parts" [ $? = 0 ]
done
without_mpi 3 "$program" lost
check "a rank lost under way over TCP: others end with 69" [ "$(cat "$folder"/ranks/status.* | sort | tr '\n' ' ')" = "137 69 69 " ]
check "and it is named" grep -q "rank 2 on a was lost" <<<"$out"
ranks 3 "$program" network
check "the network costs something, the same for all ranks ($out)" [ $? = 0 ]
ranks 3 sh -c '"$0" lost; echo "ended with $?"' "$program"
check "a rank lost under way: others end with 69" [ "$(grep -c '^ended with 69$' <<<"$out")" -ge 1 ]
check "and it is named" grep -q "rank 2" <<<"$out"
ranks 3 -x HPC_TRAIN_SUMS=tcp sh -c '"$0" lost; echo "ended with $?"' "$program"
check "a rank lost while letters are under way: others end with 69" [ "$(grep -c '^ended with 69$' <<<"$out")" -ge 1 ]
check "and it is named" grep -q "rank 2" <<<"$out"
ranks 3 sh -c '"$0" own-lost; echo "ended with $?"' "$program"
check "a rank lost while others sleep in a sum: they end with 69" [ "$(grep -c '^ended with 69$' <<<"$out")" -ge 1 ]
check "and it is named" grep -q "rank 2" <<<"$out"
