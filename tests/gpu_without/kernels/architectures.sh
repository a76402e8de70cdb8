# architectures NVCC: those that configure knows (--enable-cuda-archs=all) and the compiler has, and 120, whose machine code a
# driver makes of the newest one's PTX; sourced. Expects src, the folder of the sources.
# shellcheck shell=bash
architectures() {
    local arch known
    known=" $("$1" --list-gpu-arch | sed -n 's/^compute_//p' | tr '\n' ' ')"
    for arch in $(sed -n 's/.*hpct_wanted="\([0-9 ]*\)".*/\1/p' "$src/m4/hpct_deps.m4") 120; do
        case $known in *" $arch "*) echo "$arch" ;; esac
    done
}
