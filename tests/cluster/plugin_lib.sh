# plugin_lib.sh: what the tests of the plugin on the cluster share. Sourced after lib.sh and on_cluster.
# shellcheck shell=bash

# needs_plugin: all tests are skipped where the sandbox was started before the plugin was installed.
needs_plugin() {
    sandbox_run srun --help 2>/dev/null | grep -q -- --hpc-train-stage ||
        skip_all "this sandbox has no plugin: make install DESTDIR=SANDBOX/root, then start it again"
}

# own_sandbox: a folder $own for a sandbox of the test's own, with what is installed in the common one; it is not started.
own_sandbox() {
    local installed=${HPC_TRAIN_SANDBOX:-$top_srcdir/.sandbox}/root/opt/hpc-train
    [ "$(id -u)" = 0 ] || skip_all "the sandbox needs root"
    [ -e "$installed/lib/slurm/spank_hpc_train.so" ] || skip_all "the plugin is not installed in the sandbox's folder"
    own=$(mktemp -d /tmp/hpc-train-sandbox.XXXXXX)
    export HPC_TRAIN_SANDBOX=$own
    at_exit "'$sandbox' down >/dev/null; rm -rf '$own'"
    mkdir -p "$own/root/opt"
    cp -a "$installed" "$own/root/opt"
}

# on_node NODE CMD...: as root on a node, in its own mounts.
on_node() { sandbox_run --root --node "$@"; }

# The nodes, one per line.
all_nodes() { sandbox_run sinfo --noheader --Node --format=%n; }

# no_job_left NODE NAME: the node has no directory and no note of a job once the epilogs have run; srun and sbatch --wait end
# before them.
no_job_left() {
    # shellcheck disable=SC2016
    is "$(on_node "$1" bash -c 'for ((i = 0; i < 600; i++)); do
            left=$(ls -A --ignore=.boot /tmp/hpc-train && echo and no more)
            [ "$left" != "and no more" ] || break
            sleep 0.1
        done
        echo "$left"')" "and no more" "$2"
}

# is_clean JOB NAME: after the epilog no node has a directory of the job, and none is drained.
is_clean() {
    local node left=''
    for node in $(all_nodes); do
        # shellcheck disable=SC2016
        on_node "$node" bash -c 'for ((i = 0; i < 600; i++)); do [ -e "/tmp/hpc-train/$1" ] || exit 0; sleep 0.1; done; exit 1' x "$1" ||
            left+=" $node"
    done
    is "$left" "" "$2: no job directory is left"
    is "$(sandbox_run sinfo --noheader --Node --states=drain,down,fail --format=%n)" "" "$2: no node is drained"
}

# job_of TEXT: the job id that a step of ours printed as "job=N".
job_of() { sed -n 's/.*job=\([0-9]*\).*/\1/p' <<<"$1" | head -n 1; }

# ran NAME: passes when what was captured last ended with 0; shows its errors when not.
# shellcheck disable=SC2154 # capture sets them
ran() {
    [ "$status" = 0 ] || diag "status $status: $err"
    ok "$status" "$1"
}

