#!/bin/bash
# plugin_namespace.t: Slurm gives each job folders of its own at /tmp and elsewhere (job_container/tmpfs, from 25.11 on
# namespace/tmpfs and namespace/linux), with the plugin's calls outside of the job's namespace or within it
# (contain_spank, from 24.05 on; EntireStepInNS, from 24.11 on). The job directory is the one that the task sees, or the
# step is refused and hpc-train-check says what to set.
# shellcheck disable=SC2016,SC2154 # the cluster expands; lib.sh sets out, err and status

# shellcheck source=tests/cluster/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cluster/plugin_lib.sh
. "$(dirname "$0")/plugin_lib.sh"
own_sandbox
conf=$own/root/opt/hpc-train/namespace # its files come to lie beside slurm.conf
type=JobContainerType=job_container/tmpfs
slurm_at_least 25.11 && type=NamespaceType=namespace/tmpfs

# start NAME LINES ARGUMENTS: a cluster with these lines of slurm.conf, and arguments of the plugin.
start() {
    "$sandbox" down >/dev/null
    HPC_TRAIN_SLURM_CONF="PrologFlags=Contain
$2" HPC_TRAIN_PLUGSTACK_ARGS=$3 limit 60 "$sandbox" up 2 >"$own/up" 2>&1
    ok $? "$1: the cluster starts" || { diag "$(tail -n 20 "$own/up")"; return 1; }
}
# works NAME: a step with its job directory, a later one, staging in and out.
works() {
    capture sandbox_run srun -N2 --hpc-train-stage=/shared/home/user/data --hpc-train-stage-out="data/x:/shared/home/user/back-%n" \
        bash -c 'echo "$SLURM_TMPDIR"; [ "$SLURM_TMPDIR" -ef "$TMPDIR" ] && cat "$SLURM_TMPDIR/data/a" && echo new >"$SLURM_TMPDIR/data/x"'
    like "$(sort <<<"$out")" $'^(/var/tmp/hpc-train/[0-9]+)\n/var/tmp/hpc-train/[0-9]+\nhello\nhello$' "$1: the tasks see the job directory and the data" ||
        diag "$err"
    is "$(cat "$own"/shared/home/user/back-[01])" $'new\nnew' "$1: results are copied out"
    rm -f "$own"/shared/home/user/back-*
    capture sandbox_run srun -N2 --hpc-train-stage=/shared/home/user/data --hpc-train-stage-mode=broadcast sh -c 'cat $SLURM_TMPDIR/data/a'
    is "$out" $'hello\nhello' "$1: one node sends the data to the other" || diag "$err"
    capture sandbox_run sbatch --wait --output=/shared/home/user/o -N1 --hpc-train --wrap='echo kept >$SLURM_TMPDIR/f; srun cat $SLURM_TMPDIR/f'
    is "$(cat "$own/shared/home/user/o")" kept "$1: the steps of a job share it"
    for ((i = 0; i < 600; i++)); do
        left=$(on_node node0 sh -c 'ls /var/tmp/hpc-train; ls -d /tmp/hpc-train/* 2>/dev/null')
        [ -z "$left" ] && break
        sleep 0.1
    done
    is "$left" "" "$1: no job directory is left"
    is "$(sandbox_run --root sinfo --noheader --Node --states=drain,down,fail --format=%n)" "" "$1: no node is drained"
    capture on_node node0 /opt/hpc-train/bin/hpc-train info --admin
    is "$status" 0 "$1: hpc-train-check reports no error" || diag "$out"
}
refused() { # NAME TYPE
    capture sandbox_run srun -N1 --hpc-train true
    is "$status" 78 "$1: with the directory in /tmp a step fails"
    like "$err" "hpc-train: node[01]: /tmp.* the administrator must set tmpdir=" "$1: the error says what the administrator must do"
    is "$(sandbox_run --root sinfo --noheader --Node --states=drain,down,fail --format=%n)" "" "$1: no node is drained by it"
    capture on_node node0 /opt/hpc-train/bin/hpc-train info --admin
    is "$status" 78 "$1: hpc-train-check reports it"
    like "$(grep ^WRONG <<<"$out")" "^WRONG  directory +/tmp/hpc-train is hidden from the tasks, as $2 .*give tmpdir= elsewhere" "$1: with what to set"
}

also_hidden() { # NAME
    like "$(on_node node0 /opt/hpc-train/bin/hpc-train info --admin)" "WRONG  directory +/var/tmp/hpc-train is hidden from the tasks" "$1"
}
# cloned NUMBER FLAGS: jobs with this number of namespaces of their own, of process ids and of users, beside that of mounts.
cloned() {
    local all=(readlink /proc/self/ns/pid /proc/self/ns/user)
    printf 'defaults:\n  auto_base_path: true\n  base_path: "/var/tmp/base"\n  clone_ns_flags: [%s]\n' "$2" >"$conf/namespace.yaml"
    start "$2" NamespaceType=namespace/linux tmpdir=/var/tmp/hpc-train || return
    is "$(grep -vcxF "$(sandbox_run srun "${all[@]}")" <<<"$(sandbox_run "${all[@]}")")" "$1" "$2: its tasks have them"
    works "$2"
}

mkdir -p "$own/shared/home/user/data" "$conf"
echo hello >"$own/shared/home/user/data/a"
chmod -R a+rX "$own/shared/home/user/data"
printf 'AutoBasePath=true\nBasePath=/var/tmp/base\n' >"$conf/job_container.conf"
start "of its own" "$type" "" && refused "of its own" "${type#*=}"
start "elsewhere" "$type" tmpdir=/var/tmp/hpc-train && works "elsewhere"
if slurm_at_least 23.02; then
    printf 'AutoBasePath=true\nBasePath=/var/tmp/base\nDirs=/dev/shm,/tmp,/var/tmp/hpc-train\n' >"$conf/job_container.conf"
    start "more folders" "$type" tmpdir=/var/tmp/hpc-train && also_hidden "folders that Dirs= names are known"
fi
printf 'AutoBasePath=true\nBasePath=/var/tmp/base\n' >"$conf/job_container.conf"
if slurm_at_least 24.05; then
    contained="$type"$'\nSlurmdParameters=config_overrides,contain_spank'
    start "contain_spank" "$contained" "" && refused "contain_spank" "${type#*=}"
    start "contain_spank, elsewhere" "$contained" tmpdir=/var/tmp/hpc-train && works "contain_spank, elsewhere"
fi
if slurm_at_least 24.11; then
    printf 'AutoBasePath=true\nBasePath=/var/tmp/base\nEntireStepInNS=true\n' >"$conf/job_container.conf"
    start "EntireStepInNS" "$type" "" && refused "EntireStepInNS" "${type#*=}"
    start "EntireStepInNS, elsewhere" "$type" tmpdir=/var/tmp/hpc-train && works "EntireStepInNS, elsewhere"
fi
if slurm_at_least 25.11; then
    printf 'defaults:\n  auto_base_path: true\n  base_path: "/var/tmp/base"\n' >"$conf/namespace.yaml"
    start "namespace/linux" NamespaceType=namespace/linux "" && refused "namespace/linux" namespace/linux
    start "namespace/linux, elsewhere" NamespaceType=namespace/linux tmpdir=/var/tmp/hpc-train && works "namespace/linux, elsewhere"
    for dirs in 'dirs: ["/tmp", "/var/tmp/hpc-train"]' $'dirs:\n    - "/tmp"\n    - "/var/tmp/hpc-train"' \
        $'dir_confs:\n    - path: "/tmp"\n    - path: "/var/tmp/hpc-train"'; do
        on_node node0 sh -c 'printf "defaults:\n  %s\n" "$0" >/etc/slurm/namespace.yaml' "$dirs"
        also_hidden "folders are known that namespace.yaml names as ${dirs//$'\n'/}"
    done
    cloned 1 CLONE_NEWPID
    cloned 2 CLONE_NEWPID,CLONE_NEWUSER
fi
"$sandbox" down >/dev/null
done_testing
