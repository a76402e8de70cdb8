#!/bin/bash
# plugin_configless.t: a cluster whose nodes have no configuration of Slurm's but what slurmctld sends them (slurmd
# --conf-server), in a sandbox of its own: plugstack.conf is the controller's, for steps, commands and hpc-train-check.
# shellcheck disable=SC2016,SC2154 # the cluster expands; lib.sh sets out, err and status

# shellcheck source=tests/cluster/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cluster/plugin_lib.sh
. "$(dirname "$0")/plugin_lib.sh"
own_sandbox
HPC_TRAIN_CONFIGLESS=1 HPC_TRAIN_PLUGSTACK_ARGS="tmpdir=/var/tmp/jobs log=info" limit 60 "$sandbox" up 2 >/dev/null ||
    { ok 1 "a configless cluster starts"; exit 1; }
plugin=/opt/hpc-train/lib/slurm/spank_hpc_train.so

# user_on NODE COMMAND...: as the ordinary user, on a node.
as_user=(setpriv --reuid=user --regid=user --init-groups env --chdir=/shared/home/user HOME=/shared/home/user)
user_on() { capture on_node "$1" "${as_user[@]}" "${@:2}"; }
# bare_login SCRIPT: as root on a login node that has no file of Slurm's; `as_user` there is the ordinary user.
bare_login() {
    capture sandbox_run --root unshare --mount bash -c 'mount -t tmpfs none /etc/slurm && cd / || exit
        as_user() { '"${as_user[*]}"' "$@"; }
        '"$1"
}
check() { capture on_node node0 /opt/hpc-train/bin/hpc-train info --admin; }
plugstack() { sandbox_run --root sh -c 'echo "$1" >/etc/slurm/plugstack.conf && scontrol reconfigure' plugstack "$1"; }
# until_sent TEXT: until both nodes have a plugstack.conf with this text.
until_sent() {
    local node i
    for node in node0 node1; do
        for ((i = 0; i < 300; i++)); do
            on_node $node grep -qxF "$1" /run/slurm/conf/plugstack.conf && break
            sleep 0.1
        done
    done
}

# ---- the nodes ----
is "$(on_node node0 ls -A /etc/slurm)" "" "a node has no file in /etc/slurm"
like "$(on_node node0 cat /run/slurm/conf/plugstack.conf)" "^optional $plugin tmpdir=/var/tmp/jobs" "slurmd has the controller's plugstack.conf"
capture sandbox_run srun -N2 --hpc-train bash -c 'echo "$HPC_TRAIN_RANK ${SLURM_TMPDIR%/*}"'
is "$(sort <<<"$out")" $'0 /var/tmp/jobs\n1 /var/tmp/jobs' "a step is prepared as it says"
check
is "$status" 0 "hpc-train-check reports no error on a node" || diag "$out$err"
like "$out" "^ok +plugstack +/run/slurm/conf/plugstack.conf, line 1 " "it reads the file sent by slurmctld"
like "$out" "ok +directory +/var/tmp/jobs" "with its arguments"
on_node node0 sh -c 'echo "optional /nowhere/spank_hpc_train.so tmpdir=/nowhere" >/etc/slurm/plugstack.conf'
check
is "$status $(grep -c '/run/slurm/conf/plugstack.conf, line 1' <<<"$out")" "0 1" "an old plugstack.conf without slurm.conf is ignored" || diag "$out"
capture sandbox_run srun -N1 -w node0 --hpc-train sh -c 'echo "${SLURM_TMPDIR%/*}"'
is "$out" /var/tmp/jobs "also by a step there"
on_node node0 rm /etc/slurm/plugstack.conf

# ---- commands on a node, and in a job ----
user_on node0 srun -N1 --hpc-train sh -c 'echo "${SLURM_TMPDIR%/*} $HPC_TRAIN_RANK"'
is "$out" "/var/tmp/jobs 0" "srun on a node" || diag "$err"
user_on node0 srun -N1 --hpc-train-env=nonsense true
like "$status $err" "^[1-9].*hpc-train-env.*nonsense" "srun knows the plugin's options, and rejects wrong values"
capture sandbox_run sbatch --wait -N1 --output=/shared/home/user/o --hpc-train --wrap 'echo "${SLURM_TMPDIR%/*}"; srun sh -c "echo \${SLURM_TMPDIR%/*} \$HPC_TRAIN_RANK"
    hpc-train info --admin >info; echo "checked: $?"'
ran "a batch job ends well"
is "$(cat "$own/shared/home/user/o")" $'/var/tmp/jobs\n/var/tmp/jobs 0\nchecked: 0' "its script and its step are prepared; hpc-train-check finds the files of a job" ||
    diag "$(cat "$own/shared/home/user/info")"

# ---- a login node that asks slurmctld at each command ----
bare_login 'export SLURM_CONF_SERVER=login; as_user srun -N1 --hpc-train sh -c "echo \${SLURM_TMPDIR%/*} \$HPC_TRAIN_RANK"'
is "$out" "/var/tmp/jobs 0" "srun without any file of Slurm's" || diag "$err"
bare_login 'export SLURM_CONF_SERVER=login; as_user sbatch -N1 --hpc-train-env=nonsense --wrap true'
like "$status $err" "^[1-9].*hpc-train-env.*nonsense" "sbatch there refuses wrong values"
bare_login 'export SLURM_CONF_SERVER=login; /opt/hpc-train/bin/hpc-train info --admin'
is "$status" 0 "hpc-train-check reports no error there" || diag "$out$err"
like "$out" "^ok +plugstack +slurmctld's, which each command fetches, and srun has --hpc-train" "and prints where plugstack.conf comes from"

# ---- and one with sackd ----
if [ -n "$(command -v sackd)" ]; then
    bare_login 'mkdir -p /run/slurm && mount -t tmpfs none /run/slurm || exit
        sackd -D --conf-server login 2>/shared/sackd.log & sackd=$!
        for ((i = 0; i < 300; i++)); do [ -e /run/slurm/conf/plugstack.conf ] && break; sleep 0.1; done
        as_user srun -N1 --hpc-train sh -c "echo \${SLURM_TMPDIR%/*} \$HPC_TRAIN_RANK"
        /opt/hpc-train/bin/hpc-train info --admin; echo "checked: $?"; kill $sackd'
    like "$out" "^/var/tmp/jobs 0" "srun beside sackd" || diag "$err" "$(cat "$own/shared/sackd.log")"
    like "$out" "ok +plugstack +/run/slurm/conf/plugstack.conf, line 1 .*checked: 0" "hpc-train-check finds sackd's copy, and nothing wrong"
elif slurm_at_least 24.05; then
    skip "a login node with sackd" "it is not installed: apt-get install sackd"
else
    ok 0 "sackd is of Slurm 24.05 and later"
fi

# ---- what slurmctld does not send ----
line="optional $plugin tmpdir=/var/tmp/jobs log=info"
sandbox_run --root sh -c 'echo "$1" >/etc/slurm/plugstack.conf.d/hpc-train.conf; cp /etc/slurm/plugstack.conf.d/hpc-train.conf /etc/slurm' put "$line"
plugstack 'include plugstack.conf.d/*.conf'
until_sent 'include plugstack.conf.d/*.conf'
check
like "$out" "WRONG +plugstack +neither /run/slurm/conf/plugstack.conf nor a file that it includes names spank_hpc_train.so: add a line" \
    "files that plugstack.conf includes by a pattern are not sent: hpc-train-check says so"
capture sandbox_run srun -N1 --hpc-train printenv SLURM_TMPDIR
is "$out" "" "steps are not prepared"
plugstack 'include hpc-train.conf'
until_sent 'include hpc-train.conf'
capture sandbox_run srun -N1 --hpc-train sh -c 'echo "${SLURM_TMPDIR%/*}"'
if slurm_at_least 23.11; then
    is "$out" /var/tmp/jobs "a file included by name is sent from 23.11 on"
else
    is "$out" "" "a file included by name is not sent up to 23.02"
fi
plugstack "$line"
until_sent "$line"
sandbox_run --root sh -c 'echo PlugStackConfig=/etc/slurm/plugstack.conf >>/etc/slurm/slurm.conf && scontrol reconfigure'
for ((i = 0; i < 300; i++)); do on_node node0 grep -q ^PlugStackConfig /run/slurm/conf/slurm.conf && break; sleep 0.1; done
check
like "$out" "WRONG +plugstack +/etc/slurm/plugstack.conf cannot be read" "with PlugStackConfig= Slurm uses that path on each node: hpc-train-check reports it"
capture sandbox_run srun -N1 -w node0 --hpc-train printenv SLURM_TMPDIR
is "$out" "" "the step is not prepared"
is "$(sandbox_run sinfo --noheader --Node --states=drain,down,fail --format=%n)" "" "no node is drained"
done_testing
