#!/bin/bash
# products.t: operations in bf16 against the reference, with several numbers of threads: products padded as for a
# processor and a oneDNN that need it, on any that has bf16 (HPC_TRAIN_WITHOUT=unpadded). With HPC_TRAIN_LONG all inner sizes to
# 1500, and as they are on this processor, too: each time other random numbers.

export CMOCKA_MESSAGE_OUTPUT=STDOUT HPC_TRAIN_TEST_PRECISION=bf16
log=products.$$.log
trap 'rm -f "$log"' EXIT
threads=(2) ways=(unpadded)
[ -z "${HPC_TRAIN_LONG-}" ] || { threads=(1 2 8) ways=(unpadded ""); }
number=0
for way in "${ways[@]}"; do
    for count in "${threads[@]}"; do
        for program in cpu/test_products test_ops test_conv2d; do
            number=$((number + 1))
            result=ok
            HPC_TRAIN_WITHOUT=$way OMP_NUM_THREADS=$count HPC_TRAIN_TEST_SEED=$number \
                "$top_builddir/tests/unit/nn/backend/$program" >"$log" 2>&1 || { result="not ok" && sed 's/^/# /' "$log"; }
            echo "$result $number - ${program##*/} in bf16, $count threads${way:+, padded}"
        done
    done
done
echo "1..$number"
