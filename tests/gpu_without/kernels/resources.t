#!/bin/bash
# resources.t: every kernel compiles for the architectures, fits a multiprocessor, and keeps its values in registers; and that
# tests/gpu_without/kernels/resources sees it where one does not. One architecture, and the files with the largest kernels; with
# HPC_TRAIN_LONG=1 all files, all architectures that configure knows, and what doc/gpu-graphs.md says of them.

# shellcheck source=tests/cluster/lib.sh
. "$(dirname "$0")/../../cluster/lib.sh"
src=$top_srcdir
nvcc=$(sed -n 's/^NVCC = //p' "$top_builddir/Makefile")
[ -n "$nvcc" ] && [ -x "$nvcc" ] || skip_all "no nvcc"
# shellcheck source=tests/gpu_without/kernels/architectures.sh
. "$top_srcdir/tests/gpu_without/kernels/architectures.sh"
resources=$top_srcdir/tests/gpu_without/kernels/resources
own=$(mktemp -d)
at_exit "rm -rf '$own'"

most_local=64     # bytes of a thread in local memory: a few values around a loop; more is an array that is not in registers
most_shared=49152 # bytes of a block, without asking for more
least_occupancy=25

# judge: names those of the lines it reads that are beyond a bound.
judge() {
    awk -F'\t' -v most_local=$most_local -v most_shared=$most_shared -v least=$least_occupancy '
        $6 > most_local { print $1 ", sm_" $2 ": " $3 " has " $6 " bytes of a thread in local memory" }
        $9 > most_shared { print $1 ", sm_" $2 ": " $3 " has " $9 " bytes of shared memory" }
        $10 != "-" && $10 + 0 < least { print $1 ", sm_" $2 ": " $3 " has an occupancy of " $10 " %" }'
}

# ---- what it sees ----

cat >"$own/sample.cu" <<'END'
__global__ void __launch_bounds__(256) good(float *x) { x[threadIdx.x] *= 2; }
__global__ void __launch_bounds__(256) local(float *x, const int *which)
{
    float all[64] = {x[threadIdx.x]};
    for (int i = 1; i < 64; i++)
        all[i] = all[i - 1] * x[i] + 1;
    x[threadIdx.x] = all[which[threadIdx.x]];
}
__global__ void __launch_bounds__(64) roomy(float *x)
{
    __shared__ float all[11 << 10];
    all[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    x[threadIdx.x] = all[63 - threadIdx.x];
}
END
FILES=$own/sample.cu "$resources" "$nvcc" 90 >"$own/lines"
is $? 0 "a file's kernels are read"
is "$(cut -f 4,6,9 "$own/lines" | sort | tr '\t\n' ' /')" "256 0 0/256 256 0/64 0 45056/" "threads, local and shared memory of each"
is "$(awk -F'\t' '$3 ~ /good/ { print $10 }' "$own/lines")" 100 "small kernels fill a multiprocessor"
# 228 KiB hold five blocks of 44 KiB and one reserved, of two warps: 10 of 64
is "$(awk -F'\t' '$3 ~ /roomy/ { print $10 }' "$own/lines")" 15 "shared memory limits the occupancy"
is "$(judge <"$own/lines" | sed 's/: _Z[0-9]*\([a-z]*\)[^ ]*/: \1/' | sort)" "sample.cu, sm_90: local has 256 bytes of a thread in local memory
sample.cu, sm_90: roomy has an occupancy of 15 %" "those beyond a bound are named"
echo '__global__ void f(float *x) { __shared__ float all[13 << 10]; all[threadIdx.x] = *x; __syncthreads(); *x = all[9]; }' >"$own/large.cu"
capture env FILES="$own/large.cu" "$resources" "$nvcc" 90
[ "$status" != 0 ]
ok $? "too much shared memory is an error"
like "$err" 'large.cu does not compile for sm_90' "which names file and architecture"

# ---- the module's kernels ----

archs=90 least_kernels=50
if [ -n "${HPC_TRAIN_LONG-}" ]; then
    archs=$(architectures "$nvcc" | tr '\n' ' ') least_kernels=300
else
    FILES=$(printf "$top_srcdir/nn/backend/cuda/%s.cu " direct loss_kernels norm_kernels small_kernels)
    export FILES
fi
# shellcheck disable=SC2086
"$resources" "$nvcc" $archs >"$own/all"
is $? 0 "${FILES:+some of }the kernels compile for ${archs% }"
for arch in $archs; do
    grep -P "^\S+\t$arch\t" "$own/all" >"$own/one"
    diag "sm_$arch: $(wc -l <"$own/one") kernels, $(awk -F'\t' '$6 > 0' "$own/one" | wc -l) of them with local memory"
    [ "$(wc -l <"$own/one")" -gt $least_kernels ]
    ok $? "sm_$arch: all are read"
    is "$(judge <"$own/one")" "" "sm_$arch: in registers and shared memory, and enough at once"
done

release=$("$nvcc" --version | sed -n 's/.*release \([0-9.]*\).*/\1/p')
if [ -z "${HPC_TRAIN_LONG-}" ] || ! grep -q "with nvcc of CUDA $release\$" "$top_srcdir/doc/gpu-graphs.md"; then
    skip "doc/gpu-graphs.md has these numbers" "with HPC_TRAIN_LONG=1, and the compiler that wrote it"
else
    told=$(sed -n 's/^| file | kernels |//p' "$top_srcdir/doc/gpu-graphs.md" | tr -cd '0-9 \n')
    awk -F'\t' -v archs="$told" -f "$top_srcdir/tests/gpu_without/kernels/resources_table.awk" "$own/all" >"$own/table"
    is "$(grep '^| `.*\.cu`' "$top_srcdir/doc/gpu-graphs.md")" "$(tail -n +3 "$own/table")" \
        "doc/gpu-graphs.md has these numbers"
fi
done_testing
