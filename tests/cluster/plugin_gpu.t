#!/bin/bash
# plugin_gpu.t: --hpc-train-bind=closest in a sandbox of its own: tasks bound to CPUs by a small plugin of the test's,
# near GPUs by gres.conf, and by NVML (a stand-in for the library) on a machine that is described.

# shellcheck source=tests/cluster/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cluster/plugin_lib.sh
. "$(dirname "$0")/plugin_lib.sh"
[ "$(nproc --all)" -gt 1 ] || skip_all "tasks cannot be bound to different CPUs on a machine with one"
pin=${top_builddir:-$top_srcdir/build}/tests/cluster/.libs/pin.so
[ -e "$pin" ] || skip_all "tests/cluster/pin.la is not built"
own_sandbox
mkdir -p "$own/shared/gpu"
cp "$pin" "${pin%/tests/*}"/tests/gpu_without/libraries/.libs/libnvidia-ml.so.1 "$own/shared/gpu"
cp "$top_srcdir"/tests/fixtures/gpu/{interleaved2,mig_a100}* "$own/shared/gpu"

# The helper as installed, on the machine that the file `machine` names; without one, on this machine.
cat >"$own/shared/gpu/helper" <<'END'
#!/bin/sh
cd /shared/gpu || exit
echo asked >>/tmp/asked
if [ -s machine ]; then
    read -r name <machine
    export HWLOC_XMLFILE=$PWD/$name.xml FAKE_NVML=$PWD/$name LD_LIBRARY_PATH=$PWD
fi
exec /opt/hpc-train/libexec/hpc-train/hpc-train-gpus "$@"
END
chmod -R a+rX "$own/shared"
chmod 755 "$own/shared/gpu/helper"
HPC_TRAIN_PLUGSTACK_ARGS="gpu_helper=/shared/gpu/helper log=info" limit 60 "$sandbox" up 2 >/dev/null ||
    { ok 1 "the sandbox starts"; exit 1; }
# the files of this folder are read in the order of their names
sandbox_run --root sh -c 'echo "required /shared/gpu/pin.so" >/etc/slurm/plugstack.conf.d/a-pin.conf'

# shellcheck disable=SC2016
show='echo "$SLURM_PROCID own=$HPC_TRAIN_GPU visible=$CUDA_VISIBLE_DEVICES"'
gpus() { capture sandbox_run env TEST_CPUS="$1" srun "${@:2}" bash -c "$show"; out=$(sort -n <<<"$out"); }
asked() { sandbox_run srun -N1 -w node0 sh -c 'cat /tmp/asked 2>/dev/null | wc -l; rm -f /tmp/asked' 2>/dev/null; }
machine() { echo "$1" >"$own/shared/gpu/machine"; }
gres_conf() { sandbox_run --root tee /etc/slurm/gres.conf >/dev/null; }

# ---- gres.conf's Cores, on this machine ----
gres_conf <<'END'
NodeName=node[0-1] Name=gpu File=/dev/gpu0 Cores=1
NodeName=node[0-1] Name=gpu File=/dev/gpu1 Cores=0
END
cores=$(lscpu --parse=CORE 2>/dev/null | grep -v '^#' | sort -u | wc -l)
if [ "$cores" -gt 1 ]; then
    gpus 0,1 --hpc-train -N1 -w node0 -n2 --gres=gpu:2
    is "$out" $'0 own=1 visible=0,1\n1 own=0 visible=0,1' "the default is the GPU near the task's CPUs, all stay visible"
    is "$(asked)" 1 "one task sends the request for the node"
    gpus 0,1 --hpc-train-bind=closest -N2 -n4 --ntasks-per-node=2 --gres=gpu:2
    is "$out" $'0 own=1 visible=0,1\n1 own=0 visible=0,1\n2 own=1 visible=0,1\n3 own=0 visible=0,1' "on two nodes"
    gpus 0,0,1 --hpc-train-bind=closest -N1 -n3 --gres=gpu:2
    is "$out" $'0 own=1 visible=0,1\n1 own=1 visible=0,1\n2 own=0 visible=0,1' "more tasks than GPUs"
    gpus 0 --hpc-train-bind=closest -N1 -n1 --gres=gpu:2
    is "$out" '0 own=1 visible=0,1' "a single task gets the nearest GPU"
    gpus 1,1 --hpc-train-hide -N1 -n2 --gres=gpu:2
    like "$out" $'^0 own=([01]) visible=\\1\n1 own=([01]) visible=\\2$|^0 own=0 visible=0.1 own=1 visible=1$' "each GPU is used once before any twice; --hpc-train-hide shows only it"
else
    skip "gres.conf's cores" "this machine has one core"
fi
gpus 0,1 --hpc-train-bind=rank -N1 -w node0 -n2 --gres=gpu:2
is "$out" $'0 own=0 visible=0,1\n1 own=1 visible=0,1' "--hpc-train-bind=rank does not look"
asked >/dev/null
gpus "" --hpc-train-bind=closest -N1 -w node0 -n2 --gres=gpu:2
is "$out" $'0 own=0 visible=0,1\n1 own=1 visible=0,1' "unbound tasks get GPUs by rank"
is "$(asked)" 0 "no request is sent"
gpus 1,0 --hpc-train-bind=closest -N1 -w node0 -n2 --gpus-per-task=1
is "$(grep -c 'own=[01] visible=[01]$' <<<"$out")" 2 "with --gpus-per-task=1 Slurm has chosen already"
is "$(asked)" 0 "no request is sent"
gpus 1,0 --hpc-train-bind=closest -N1 -w node0 -n2 --gres=gpu:2 --gpu-bind=map_gpu:1,0
is "$out" $'0 own=1 visible=1\n1 own=0 visible=0' "likewise with --gpu-bind"
gpus 1,0 --hpc-train-bind=closest -N1 -n2
is "$out" $'0 own= visible=\n1 own= visible=' "without GPUs"

# ---- what cannot be told ----
gres_conf <<<'Name=gpu File=/dev/gpu[0-1]'
gpus 1,0 --hpc-train-bind=closest -N1 -w node0 -n2 --gres=gpu:2
ran "a step runs if locality is unknown"
is "$out" $'0 own=0 visible=0,1\n1 own=1 visible=0,1' "with GPUs by rank"
is "$(grep -c 'warning: --hpc-train-bind=closest: gres.conf has no Cores= for GPU 0; GPUs are given out by local rank' <<<"$err")" 1 "one task warns if closest was requested"
gpus 1,0 --hpc-train -N1 -n2 --gres=gpu:2
unlike "$err" "warning" "no warning otherwise"

# ---- NVML ----
machine interleaved2
gpus 1,0 --hpc-train-bind=closest -N1 -n2 --gres=gpu:2
is "$out" $'0 own=1 visible=0,1\n1 own=0 visible=0,1' "by NVML if available"
# shellcheck disable=SC2001
own() { sed 's/ visible.*//' <<<"$out"; }
near() { capture sandbox_run env TEST_CPUS="$1" TEST_VISIBLE="$2" srun --hpc-train-bind=closest -N1 -n2 bash -c "$show"; out=$(sort -n <<<"$out"); }
near 0,1 GPU-00000003-0000-4000-8000-000000000001,GPU-00000003-0000-4000-8000-000000000000
is "$(own)" $'0 own=GPU-00000003-0000-4000-8000-000000000000\n1 own=GPU-00000003-0000-4000-8000-000000000001' "by UUID"
near 0,1 GPU-00000003-0000-4000-8000-000000000001,GPU-unknown
like "$err" "NVML knows no GPU 'GPU-unknown'" "a GPU that is not there is named"
machine mig_a100
near 1,1 MIG-0000000a-0001-5000-8000-000000000000,MIG-0000000a-0000-5000-8000-000000000003
is "$(own)" $'0 own=MIG-0000000a-0001-5000-8000-000000000000\n1 own=MIG-0000000a-0000-5000-8000-000000000003' "slices, which have names only"

is "$(sandbox_run sinfo --noheader --Node --states=drain,down,fail --format=%n)" "" "no node is drained"
done_testing
