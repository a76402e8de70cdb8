#!/bin/bash
# configure names what is missing, and the package that has it.
. "$top_srcdir/tests/build/lib.sh"

[ ! -e "$top_srcdir/config.status" ] || skip_all "the source folder itself is configured"
tree=$(mktemp -d)
at_exit "rm -rf '$tree'"
cd "$tree" || exit 1

capture env PKG_CONFIG_LIBDIR=/nonexistent PKG_CONFIG_PATH= "$top_srcdir/configure" -q
is "$status" 1 'configure fails without jansson and zlib'
like "$err" 'jansson not found: install libjansson-dev' 'the error names the package of jansson'
like "$err" 'zlib not found: install zlib1g-dev' 'and that of zlib, in the same run'

# configure OPTION...: one that asks compilers once, for all from here on.
configure() { "$top_srcdir/configure" --cache-file="$tree/cache" --disable-dependency-tracking CFLAGS=-O0 "$@"; }
# configure_cuda OPTION...: one that also looks for CUDA, anew.
configure_cuda() {
    grep -v '^ac_cv_env_NVCC' "$tree/cache" >"$tree/cache.cuda"
    configure --cache-file="$tree/cache.cuda" --enable-cuda-archs=90 NVCC="$nvcc" "$@"
}

capture configure -q --with-mpi=/nonexistent
is "$status" 1 'a missing prefix is an error'
like "$err" '--with-mpi=/nonexistent' 'the error names its option'

# ---- Slurm: the forms of its calls, by the headers alone, and where a prefix has its plugins ----
# headers NAME FUNCTION DECLARATION: the machine's, in a prefix of their own, with this declaration of the function.
# Nothing is made but the answers.
headers() {
    mkdir -p "$tree/$1/include/slurm" "$tree/$1/lib/slurm" "$tree/$1/etc"
    cp /usr/include/slurm/*.h "$tree/$1/include/slurm"
    touch "$tree/$1/lib/slurm/auth_slurm.so"
    sed -i "/^extern int $2(/,/;/{/;/!d;s/.*/$3/}" "$tree/$1/include/slurm/slurm.h"
    mkdir -p "$tree/build-$1" && cd "$tree/build-$1" || return
    capture configure --without-cuda --with-slurm="$tree/$1" "${@:4}"
}
if [ -e /usr/include/slurm/slurm.h ]; then
    headers first slurm_kill_job_step 'extern int slurm_kill_job_step(uint32_t, uint32_t, uint16_t);' --no-create
    like "$out" "form of slurm_kill_job_step... job, step, signal"$'\n' "as up to 23.02"
    headers later slurm_kill_job_step 'extern int slurm_kill_job_step(uint32_t, uint32_t, uint16_t, uint16_t);' --no-create
    like "$out" "form of slurm_kill_job_step... job, step, signal, flags" "as from 23.11 on"
    headers last slurm_signal_job_step 'extern int slurm_signal_job_step(slurm_step_id_t *, uint32_t);' --no-create
    like "$out" "form of slurm_signal_job_step... step id, signal" "as from 25.11 on"
    headers last slurm_complete_job 'extern int slurm_complete_job(slurm_step_id_t *, uint32_t);'
    like "$out" "form of slurm_complete_job... step id, status" "as from 25.11 on"
    is "$(sed -n 's/^spankdir = //p' Makefile)" "$tree/last/lib/slurm" "a Slurm in a prefix of its own: its folder of plugins"
    [ -e /etc/slurm/slurm.conf ] || is "$(sed -n 's/^slurmconfdir = //p' Makefile)" "$tree/last/etc" "and of its configuration"
    headers future slurm_kill_job_step 'extern int slurm_kill_job_step(const char *);' --no-create
    is "$status" 1 "an unknown form is an error"
    like "$err" "declares slurm_kill_job_step in a form that hpc-train does not know" "the error names the function"
    cd "$tree" || exit

    # ---- without --prefix the plugin goes where this Slurm looks ----
    mkdir "$tree/found" && cd "$tree/found" || exit
    capture configure -q --without-cuda
    is "$status" 0 "configure without a prefix" || diag "$err"
    dir=$(sed -n 's/^spankdir = //p' Makefile)
    ok "$([ -e "$dir/auth_munge.so" ]; echo $?)" "the plugin is installed in Slurm's PluginDir" || diag "$dir"
    is "$(sed -n 's/^slurmconfdir = //p' Makefile)" /etc/slurm "its line is installed beside slurm.conf"
    like "$(cat hpc-train.spec)" '\|\| echo [0-9]+\.[0-9]+\)' "the RPM needs the release of Slurm whose headers there are"
    cd "$tree" || exit

    # ---- two releases side by side, as in /opt/slurm-22.05 and /opt/slurm-26.05: each has a plugin of its own ----
    sed -n 's/^#define SLURM_VERSION_NUMBER *0x//p' /usr/include/slurm/slurm_version.h >here
    read -r number <here
    # release NAME NUMBER: the headers call themselves so (0x160508); built, and installed into the folders of this prefix.
    release() {
        mkdir -p "$tree/$1/include/slurm" "$tree/$1/lib/slurm" "$tree/$1/bin" "$tree/$1/etc" "$tree/build-$1"
        cp /usr/include/slurm/*.h "$tree/$1/include/slurm"
        sed -i "s/^#define SLURM_VERSION_NUMBER .*/#define SLURM_VERSION_NUMBER 0x$2/" "$tree/$1/include/slurm/slurm_version.h"
        touch "$tree/$1/lib/slurm/auth_slurm.so"
        local version
        version=$(printf '%d.%02d' "0x${2:0:2}" "0x${2:2:2}")
        echo "optional spank_hpc_train.so" >"$tree/$1/etc/plugstack.conf"
        printf '#!/bin/sh\necho "slurm %s.0"\n' "$version" >"$tree/$1/bin/slurmd"
        printf '#!/bin/sh\nprintf "%%s\\n" "PluginDir = %s" "PlugStackConfig = %s"\n' "$tree/$1/lib/slurm" "$tree/$1/etc/plugstack.conf" >"$tree/$1/bin/scontrol"
        chmod 755 "$tree/$1/bin"/*
        cd "$tree/build-$1" || return
        configure -q --without-cuda --with-slurm="$tree/$1" >out 2>&1 &&
            make -s -j"$(nproc)" install-spankLTLIBRARIES lib_LTLIBRARIES= >>out 2>&1
        ok $? "a plugin for Slurm $version is built and installed" || diag "$(tail -n 20 out)"
        [ -e "$tree/$1/lib/slurm/spank_hpc_train.so" ]
        ok $? "into that Slurm's own folder"
        cd "$tree" || return
    }
    # check NAME: hpc-train-check, where this one's commands come first.
    check() { capture env PATH="$tree/$1/bin:$PATH" "$top_builddir/hpc-train-check"; }
    umask 022
    chmod 755 "$tree"
    if [ -n "${HPC_TRAIN_LONG-}" ]; then # the plugin is compiled twice
        release one "$number"
        release two "$(printf '%02x0b00' $((0x${number:0:2} + 1)))"
        for name in one two; do
            check $name
            like "$out" "ok +plugin +$tree/$name/lib/slurm/spank_hpc_train.so, for Slurm $(awk '{ sub(/\.0$/, "", $2); print $2 }' < <("$tree/$name/bin/slurmd"))" "each installation finds its own"
        done
        # It lies in the folder of another release.
        sed -i 's/slurm [0-9]*/slurm 19/' "$tree/one/bin/slurmd"
        check one
        like "$out" "WRONG +plugin +$tree/one/lib/slurm/spank_hpc_train.so is built for Slurm [0-9.]+, but Slurm 19[0-9.]* runs here and will not load it: build it" \
            "one that is of another release is refused with words"
    fi
else
    skip "the forms of Slurm's calls" "its headers are not in /usr/include"
fi

# ---- CUDA in folders such as Python's packages have, made of the toolkit that this build has found ----
nvcc=$(sed -n 's/^NVCC = //p' "$top_builddir/Makefile")
toolkit=${nvcc%/bin/nvcc}
# take FOLDER PATTERN LIBRARY...: headers whose names match, and libraries with a version in their names alone.
take() {
    local name
    mkdir -p "$1/include" "$1/lib"
    for name in "$toolkit"/include/*; do
        [[ ! ${name##*/} =~ $2 ]] || ln -s "$name" "$1/include/"
    done
    for name in "${@:3}"; do ln -s "$(readlink -f "$toolkit/lib64/lib$name.so")" "$1/lib/lib$name.so.1"; done
}
# finds NAME: configure finds all in the folder, and leaves a build of it.
finds() {
    mkdir "$tree/build-$1" && cd "$tree/build-$1" || return
    capture configure_cuda -q --with-cuda="$tree/$1"
    is "$status" 0 "$1: configure succeeds" || diag "$out$err"
    like "$out" "the GPU module: for compute capabilities 90" "$1: has all that the module needs"
    like "$(sed -n 's/^CUDA_LIBS = //p' Makefile)" "-L$tree/$1/[a-z_0-9]*/lib .*-Wl,-rpath,$tree/$1/.*-l:libcudart.so.1 .*-l:libcudnn.so.1" "$1: linked with its libraries"
}
if [ -e "$toolkit/lib64/libcudart.so" ] && [ -e "$toolkit/lib64/libcudnn.so" ] && [ -e "$toolkit/lib64/libnccl.so" ]; then
    take "$tree/cu12/cuda_runtime" '^(c[^u]|cu[^bd]|cuda|[^cn]|n[^c])' cudart
    take "$tree/cu12/cublas" '^cublas' cublas cublasLt
    take "$tree/cu13/cu13" '^(c[^u]|cu[^d]|cuda|[^cn]|n[^c])' cudart cublas cublasLt
    for folder in ${HPC_TRAIN_LONG:+cu12} cu13; do
        take "$tree/$folder/cudnn" '^cudnn' cudnn
        take "$tree/$folder/nccl" '^nccl' nccl
        finds $folder
    done
    capture make -s nn/backend/cuda/hpctrain_cuda_la-gpu.lo nn/backend/cuda/moment_kernels.lo
    is "$status" 0 "C and kernels are compiled with it" || diag "$out$err"
    capture configure_cuda -q --with-cuda="$tree/cu13/cudnn"
    is "$status" 1 "a folder without CUDA is refused"
    like "$err" "--with-cuda=$tree/cu13/cudnn, but it is not there" "the error names the missing folder"
    capture configure_cuda -q --enable-cuda-archs=12
    is "$status" 1 "an architecture unknown to nvcc is an error"
    like "$err" "$nvcc does not know 12; it knows:.* 90" "the error lists the known ones"
else
    skip "CUDA in the folders of Python's packages" "this build has no toolkit with cuDNN and NCCL"
fi
done_testing
