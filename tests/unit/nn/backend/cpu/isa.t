#!/bin/bash
# isa.t: operations, models and training steps as on processors with fewer instructions: ONEDNN_MAX_CPU_ISA takes
# them away from oneDNN and from the loops of nn/backend/cpu.

if [ "$(uname -m)" != x86_64 ]; then
    echo "1..0 # SKIP not an x86-64 processor"
    exit 0
fi
number=0
echo 1..8
for set in AVX2 SSE41; do
    lanes=8
    [ $set = AVX2 ] || lanes=4
    for program in nn/backend/cpu/test_loops nn/backend/test_conv2d nn/backend/test_ops nn/run/test_train; do
        test=${program##*/}
        number=$((number + 1))
        if [ $set = AVX2 ] && ! grep -qm1 avx512f /proc/cpuinfo; then
            echo "ok $number - $test with $set # SKIP it runs so by itself"
        elif HPC_TRAIN_SHORT=1 HPC_TRAIN_TEST_LANES=$lanes ONEDNN_MAX_CPU_ISA=$set CMOCKA_MESSAGE_OUTPUT=STDOUT "$top_builddir/tests/unit/$program" >"$test.$set.log" 2>&1; then
            echo "ok $number - $test with $set"
        else
            sed 's/^/# /' "$test.$set.log"
            echo "not ok $number - $test with $set"
        fi
        rm -f "$test.$set.log"
    done
done
