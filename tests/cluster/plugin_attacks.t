#!/bin/bash
# plugin_attacks.t: what a hostile user may try on a node, against the real daemons; doc/security.md lists it. With
# HPC_TRAIN_LONG=1 the races of the epilog are repeated 200 times (ten thousand of them, without Slurm: test_removal).

# shellcheck source=tests/cluster/lib.sh
. "$(dirname "$0")/lib.sh"
on_cluster 2
# shellcheck source=tests/cluster/plugin_lib.sh
. "$(dirname "$0")/plugin_lib.sh"
needs_plugin
node=$(all_nodes | tail -n 1)
parent=/tmp/hpc-train
built=${top_builddir:-$top_srcdir/build}/tests/cluster
state=${HPC_TRAIN_SANDBOX:-$top_srcdir/.sandbox}
races=8
[ "${HPC_TRAIN_LONG-}" = 1 ] && races=200

run_on() { capture sandbox_run srun -N1 -w "$node" --hpc-train "$@"; }
daemons() { sandbox_run --root pgrep -x "slurmd(-wlm)?" | sort | tr '\n' ' '; }
before=$(daemons)

# What root owns on the node, and users want changed.
on_node "$node" bash -c 'mkdir -p -m 755 /tmp/precious && echo keep >/tmp/precious/file'
at_exit "on_node '$node' rm -rf /tmp/precious"
precious() { on_node "$node" stat -c '%n %U %G %a %s %Z' /tmp/precious /tmp/precious/file; }
untouched=$(precious)

# ---- races with the epilog: a process that survives the job, with every folder open ----
cat >"$work_here/race.py" <<'END'
import os, random, sys, time
job = os.open('.', os.O_RDONLY)
os.mkdir('a'); os.mkdir('c'); os.mkdir('a/b')
a, b, c = (os.open(p, os.O_RDONLY) for p in ('a', 'a/b', 'c'))
own = os.open(sys.argv[1], os.O_RDONLY)
for at in (b, c):
    os.close(os.open('f', os.O_CREAT | os.O_WRONLY, dir_fd=at))
os.symlink('/tmp/precious', 'l')
if os.fork():
    sys.exit(0)
os.setsid()
n, end = 0, time.time() + 1.5
moves = [('a', job, 'x', job), ('l', job, 'a', job), ('a', job, 'l', job), ('x', job, 'a', job), ('b', a, 'b', own), ('b', own, 'b', a),
         ('c', job, 'c', a), ('c', a, 'c', job), ('c', a, 'c', own), ('c', own, 'c', job), ('.', job, '../1', job)]
while time.time() < end:
    n += 1
    try:
        kind = random.randrange(6)
        if kind < 3:
            frm, at, to, there = random.choice(moves)
            os.rename(frm, to, src_dir_fd=at, dst_dir_fd=there)
        elif kind == 3:
            os.symlink('/tmp/precious', 'n%d' % n, dir_fd=random.choice((job, a, b, c)))
        elif kind == 4:
            os.mkdir('n%d' % n, dir_fd=random.choice((job, a, b, c)))
        else:
            os.fchmod(random.choice((job, a, b)), 0o777)
    except OSError:
        pass
END
failed=0
for ((i = 0; i < races; i++)); do
    # shellcheck disable=SC2016
    sandbox_run srun -N1 -w "$node" --hpc-train bash -c 'mkdir /tmp/own.$SLURM_JOB_ID; cd $SLURM_TMPDIR && python3 '"$work"'/race.py \
        /tmp/own.$SLURM_JOB_ID </dev/null >/dev/null 2>&1' || failed=$((failed + 1))
done
is "$failed" 0 "$races jobs end while a process of theirs races with the epilog"
sleep 2
no_job_left "$node" "$races races: nothing is left"
is "$(precious)" "$untouched" "the links' targets are unchanged, including ctime"
is "$(on_node "$node" find /tmp -mindepth 1 -path '/tmp/own*' ! -user user -print)" "" "no file of the user is owned by root"
on_node "$node" bash -c 'rm -rf /tmp/own.*'

# ---- another user's data ----
sandbox_run --root sh -c 'grep -q ^other: /etc/passwd || { echo other:x:12001:12001::/shared:/bin/sh >>/etc/passwd; echo other:x:12001: >>/etc/group; }'
as_other() { sandbox_run --root setpriv --reuid=12001 --regid=12001 --clear-groups env --chdir=/shared "$@"; }
echo sesame >"$work_here/secret" && chown 12000:12000 "$work_here/secret" # whose mode does not protect the copy
# shellcheck disable=SC2016
sandbox_run srun -N1 -w "$node" --hpc-train-stage="$work/secret" bash -c 'cd $SLURM_TMPDIR && exec 8<secret && echo job=$SLURM_JOB_ID &&
    for i in $(seq 500); do [ -e '"$work"'/enough ] && exit; sleep 0.2; done' >"$work_here/victim" &
victim=$!
for ((i = 0; i < 600; i++)); do grep -q job= "$work_here/victim" && break; sleep 0.1; done
job=$(job_of "$(cat "$work_here/victim")")
cat >"$work_here/spy" <<END
p=$parent/$job
id -u
ls -la \$p; cat \$p/secret \$p/.hpc-train/*; cd \$p && cat secret
for q in /proc/[0-9]*; do cat \$q/root\$p/secret \$q/cwd/secret \$q/environ; [ -f \$q/fd/8 ] && cat \$q/fd/8; done
ln \$p/secret /tmp/taken; mv \$p /tmp/taken; chmod 777 \$p; rmdir \$p; mkdir $parent/$((job + 1)); ln -s / $parent/$((job + 1)); touch \$p/x
ls $parent; ls -d $parent/.*; rm -f $parent/.boot; mkdir $parent/.gone-1; mv $parent /tmp/parent
cat $parent/.boot
END
chmod 755 "$work_here/spy" && chmod 711 "$work_here"
cp "$work_here/spy" "${work_here%/home/*}/spy.$$" # the user's home is his
capture as_other srun -N1 -w "$node" --hpc-train sh -c "sh /shared/spy.$$ | tr '\\0' '\\n'"
rm -f "${work_here%/home/*}/spy.$$"
like "$out" "^12001" "a job of another user runs on the same node"
is "$(grep -E "sesame|HPC_TRAIN_DATA=$parent/$job|^$job\$|boot" <<<"$out")" "" "and sees nothing of the first user's job"
is "$(on_node "$node" sh -c "stat -c '%U %a' $parent/$job; ls -A $parent/$job; ls -d /tmp/taken /tmp/parent 2>/dev/null")" \
    $'user 700\n.hpc-train\nsecret' "nor changes anything"
touch "$work_here/enough"
wait $victim
no_job_left "$node" "two users: no job directory is left"

# ---- file systems that the user mounts ----
# fusermount leaves such mounts; here root makes the same one, and nobody ever answers it.
on_node "$node" sh -c '[ -e /dev/fuse ] || mknod -m 666 /dev/fuse c 10 229'
cat >"$work_here/fuse.py" <<'END'
import ctypes, os, sys, time
fd = os.open('/dev/fuse', os.O_RDWR)
libc = ctypes.CDLL(None, use_errno=True)
for path in sys.argv[1:]:
    fd = os.open('/dev/fuse', os.O_RDWR)
    if libc.mount(b'fuse', path.encode(), b'fuse', 0, b'fd=%d,rootmode=40000,user_id=12000,group_id=12000,allow_other' % fd):
        sys.exit('no mount')
print('mounted', flush=True)
time.sleep(40)
END
cat >"$work_here/steps" <<END
srun sh -c 'mkdir \$SLURM_TMPDIR/m' && echo job=\$SLURM_JOB_ID
for i in \$(seq 600); do [ -e $work/mounted ] && break; sleep 0.1; done
timeout 60 srun true
echo status=\$?
END
sandbox_run salloc -N1 -w "$node" --hpc-train bash "$work/steps" >"$work_here/steps.out" 2>"$work_here/steps.err" &
steps=$!
for ((i = 0; i < 600; i++)); do grep -q job= "$work_here/steps.out" && break; sleep 0.1; done
job=$(job_of "$(cat "$work_here/steps.out")")
on_node "$node" python3 "$work/fuse.py" "$parent/$job/m" "$parent/$job" >"$work_here/mounting" &
mounter=$!
for ((i = 0; i < 600; i++)); do grep -q mounted "$work_here/mounting" && break; sleep 0.1; done
touch "$work_here/mounted"
start=$SECONDS
wait $steps
ok "$([ $((SECONDS - start)) -lt 110 ]; echo $?)" "a FUSE mount that never answers does not hold slurmstepd or the epilog"
like "$(cat "$work_here/steps.out" "$work_here/steps.err")" "status=74" "the next step fails"
like "$(cat "$work_here/steps.err")" "$parent/$job cannot be used: a file system is mounted on it" "the error names the mount"
no_job_left "$node" "FUSE mounts: nothing is left"
is "$(grep -c "job $job: a slurmstepd was killed" "$state"/log/node*.log | grep -vc ':0$')" 0 "no slurmstepd is reported as killed"
is "$(on_node "$node" grep -c "$parent" /proc/mounts)" 0 "no mount is left"
sandbox_run --root pkill -f "python3 $work/fuse.py" # in the sandbox's own processes
wait $mounter
# shellcheck disable=SC2016
run_on bash -c 'cd $SLURM_TMPDIR; mkdir m; unshare -Urm true 2>/dev/null || { echo no; exit; }
    setsid unshare -Urm sh -c "mount -t tmpfs none m && cd m && touch mounted; sleep 3" >/dev/null 2>&1 & sleep 0.3; echo job=$SLURM_JOB_ID'
if [ "$out" = no ]; then skip "a mount in a user's own namespace" "this kernel gives users none"; else no_job_left "$node" "a mount in a user's own namespace: nothing is left"; fi

# ---- values that no client has checked, before slurmstepd ----
mkdir -p "$work_here/client" && cp "$built/own/.libs/spank_hpc_train.so" "$work_here/client/"
echo "required $work/client/spank_hpc_train.so" >"$work_here/client/plugstack.conf"
sandbox_run sed "s|^PlugStackConfig=.*|PlugStackConfig=$work/client/plugstack.conf|" /etc/slurm/slurm.conf >"$work_here/client/slurm.conf"
own_srun() { capture sandbox_run env SLURM_CONF="$work/client/slurm.conf" srun -N1 -w "$node" "$@" true; }
own_srun --hpc-train=on --hpc-train-port=no-port
like "$status $err" "^64 .*hpc-train: $node: --hpc-train-port: " "a client of the user's own lets everything pass, a task does not"
options=$(sandbox_run srun --help | grep -o -- '--hpc-train[-a-z]*' | sort -u)
orderly=
# shellcheck disable=SC2016
for text in $'%s%n%999999d\nforged line\e[2J../../etc/passwd:/etc/shadow,$(touch /tmp/owned);`touch /tmp/owned`\xff\x01' \
    "$(printf 'x%.0s' {1..100000})" "$(printf 'a:b,%.0s' {1..20000})"; do
    # shellcheck disable=SC2046
    own_srun --hpc-train=on $(sed '/train$/d; s/$/=x/' <<<"$options")
    for option in $options; do
        [ "$text" = "${text:0:200}" ] || [[ $option =~ stage ]] || continue
        own_srun --hpc-train=on "$option=$text"
        # 0: what is no value for --hpc-train leaves it off, or on
        [[ $status =~ ^(0|64|65|66|74|78)$ ]] || orderly+="$option=${text:0:60}: $status ${err:0:300}"
    done
done
is "$orderly" "" "whatever they hold, slurmstepd ends the step in an orderly way"
is "$(on_node "$node" sh -c 'ls -d /tmp/owned /owned' 2>/dev/null)" "" "nothing is executed"
is "$(sandbox_run --root sh -c 'cat /var/log/slurm/*.log | grep -c "^forged"')" 0 "no forged line in the logs"

# ---- variables that would make root's programs do something ----
cp "$built/.libs/spy.so" "$work_here/" && touch "$work_here/spy.so.seen" && chmod 666 "$work_here/spy.so.seen"
cat >"$work_here/srun" <<END
export LD_PRELOAD=$work/spy.so LD_AUDIT=$work/spy.so LD_LIBRARY_PATH=$work BASH_ENV=$work/rc ENV=$work/rc PATH=$work/bin:/usr/bin:/bin IFS=/
export GCONV_PATH=$work TMPDIR=$work SLURM_CONF=$work/client/slurm.conf SPANK_HPC_TRAIN_STAGE=/etc/shadow:x SPANK_JOB_ENV=x
srun -N1 -w $node --hpc-train-bind=closest --hpc-train-stage=/etc/hostname --hpc-train-stage-out=hostname:$work/result.%s,gone:$work/gone sh -c 'echo job=\$SLURM_JOB_ID'
END
mkdir "$work_here/bin"
for name in hpc-train-stage hpc-train-gpus sh rm umount fusermount; do
    printf '#!/bin/bash\nLD_PRELOAD=%s /usr/bin/id\n' "$work/spy.so" >"$work_here/bin/$name"
done
chmod 755 "$work_here"/bin/*
chown -R 12000:12000 "$work_here"
capture sandbox_run sbatch -N1 -w "$node" --wait --hpc-train --output="$work/batch" --wrap ". $work/srun"
no_job_left "$node" "a spy: nothing is left"
like "$(cat "$work_here/spy.so.seen")" "12000 12000 " "a spy in the user's environment sees the user's programs"
is "$(grep -Ev '^12000 12000 ' "$work_here/spy.so.seen")" "" "but not root's processes"
is "$(grep -c ' hpc-train-' "$work_here/spy.so.seen")" 0 "nor the helpers that root starts for the user"
is "$(stat -c %U "$work_here"/result.* 2>/dev/null | sort -u)" "$(stat -c %U "$work_here/bin")" "the helpers worked, as the user"

# ---- a disk without room ----
used=$(on_node "$node" df --output=iused /tmp | tail -n 1)
on_node "$node" mount -o "remount,nr_inodes=$((used))" /tmp
run_on --mpi=none true
on_node "$node" mount -o remount,nr_inodes=1000000 /tmp
like "$status $err" "^74 .*$parent/[.0-9a-z-]+ cannot be (made|written): No space left on device" "a disk without a free inode: said, with status 74"
on_node "$node" bash -c 'mkdir -p /tmp/fill && mount -o remount,size=1M /tmp && dd if=/dev/zero of=/tmp/fill/all bs=4k status=none' 2>/dev/null
run_on --hpc-train-stage=/bin/true true
on_node "$node" bash -c 'rm -r /tmp/fill; mount -o remount,size=50% /tmp'
ok "$([ "$status" != 0 ] && [ "$status" -lt 128 ]; echo $?)" "a full disk ends the step in an orderly way ($status)"
no_job_left "$node" "full disks: nothing is left"

# ---- limits, masks, long and odd texts ----
capture sandbox_run bash -c "umask 0777; srun -N1 -w $node --hpc-train true"
ok "$([ "$status" -lt 128 ]; echo $?)" "umask 777 ($status)"
capture sandbox_run bash -c "ulimit -n 100 -s 512 -f 1; srun --propagate=ALL -N1 -w $node --hpc-train-stage=/bin/true true"
ok "$([ "$status" -lt 128 ]; echo $?)" "few descriptors, a small stack, small files ($status)"
long=$(printf 'x%.0s' {1..120000})
run_on --hpc-train-stage="/$long" true
ok "$([ "$status" != 0 ]; echo $?)" "a name of 120,000 letters ($status)"
capture sandbox_run srun -N1 -w "$node" --hpc-train --export="ALL,HPC_TRAIN_STAGE=/$long" true
ok "$([ "$status" != 0 ] && [ "$status" -lt 128 ]; echo $?)" "an invalid option that the client does not see fails the step ($status)"
failed=0
forged=$'x\nforged line in a log\n'
for name in HPC_TRAIN_STAGE HPC_TRAIN_PORT HPC_TRAIN_ENV HPC_TRAIN SLURMD_NODENAME SLURM_STEP_NODELIST \
    _SLURM_SPANK_OPTION_spank_hpc_train_hpc-train-port _SLURM_SPANK_OPTION_spank_hpc_train_hpc_train_port; do
    run_on --export="ALL,$name=$forged" true
    [ "$status" -lt 128 ] || diag "$name: $status"
    [ "$status" -lt 128 ] || failed=1
done
is "$failed" 0 "odd texts in variables end in an orderly way"
is "$(sandbox_run --root sh -c 'cat /var/log/slurm/*.log | grep -c "^forged"')" 0 "no forged line in a daemon's log"

# ---- a million small things are bounded in time ----
# shellcheck disable=SC2016
run_on python3 -c '
import os
os.chdir(os.environ["SLURM_TMPDIR"])
for i in range(30000): os.mknod("f%d" % i)
for i in range(3000):
    os.mkdir("deeper"); os.chdir("deeper")'
ran "a wide and deep tree is made"
no_job_left "$node" "a wide and deep tree: nothing is left"

# ---- helpers that the user stops, again and again ----
if [ "${HPC_TRAIN_LONG-}" = 1 ]; then
    # shellcheck disable=SC2016
    sandbox_run srun -N1 -w "$node" bash -c 'end=$((SECONDS + 130)); while [ $SECONDS -lt $end ] && [ ! -e '"$work"'/enough2 ]; do
        pkill -STOP -f -- "bin/hpc-train-stage --ou[t]"; done' &
    stopper=$!
    # shellcheck disable=SC2016
    sandbox_run srun -N1 -w "$node" --hpc-train-stage-out="x:$work/x" bash -c 'echo job=$SLURM_JOB_ID; head -c 100M /dev/zero >$SLURM_TMPDIR/x' \
        >"$work_here/stopped" 2>&1 &
    step=$!
    sleep 5
    job=$(job_of "$(cat "$work_here/stopped")")
    # shellcheck disable=SC2016
    is "$(on_node "$node" sh -c 'cat /proc/$(pgrep -f "bin/hpc-train-stage --ou[t]" | head -n 1)/stat | cut -d " " -f 3')" T "a helper is stopped"
    sandbox_run scancel "$job"
    start=$SECONDS
    wait $step
    ok "$([ $((SECONDS - start)) -lt 100 ]; echo $?)" "a cancelled step ends in time ($((SECONDS - start)) s)"
    for ((i = 0; i < 1000; i++)); do [ "$(sandbox_run squeue --noheader --job="$job" 2>/dev/null)" = "" ] && break; sleep 0.1; done
    ok "$([ $((SECONDS - start)) -lt 90 ]; echo $?)" "the epilog ends within the time of its last try ($((SECONDS - start)) s)"
    touch "$work_here/enough2"
    wait $stopper
    no_job_left "$node" "a stopped helper: nothing is left"
fi

# ---- another user's job, said to be a component of one's own step ----
as_other srun -N1 -w "$node" --job-name=others sleep 60 &
others=$!
for ((i = 0; i < 600; i++)); do
    job=$(sandbox_run --root squeue --noheader --name=others --states=R --format=%A)
    [ -n "$job" ] && break
    sleep 0.1
done
capture sandbox_run env SLURM_JOB_ID_HET_GROUP_0="$job" SLURM_JOB_ID_PACK_GROUP_0="$job" SLURM_STEP_NUM_TASKS=99 \
    srun -N1 -n2 -w "$node" --hpc-train-stage=/nonexistent true
is "$status" 66 "a step that names another user's job as its component fails by itself"
is "$(sandbox_run --root squeue --noheader --job="$job" --format=%T)" RUNNING "which does not end that job"
sandbox_run --root scancel "$job"
wait $others

# ---- and the node is as before ----
run_on true
ran "the node still runs jobs with hpc-train"
lost=$(comm -23 <(tr ' ' '\n' <<<"$before" | sort) <(daemons | tr ' ' '\n' | sort)) # one may be forking
is "$lost" "" "all daemons are still running"
# A step's daemon ends after its srun.
for ((i = 0; i < 600; i++)); do [ "$(sandbox_run --root pgrep -c -x slurmstepd)" = 0 ] && break; sleep 0.1; done
is "$(sandbox_run --root pgrep -c -x slurmstepd)" 0 "no slurmstepd is left"
is "$(sandbox_run sinfo --noheader --Node --states=drain,down,fail --format=%n)" "" "no node is drained by any of this"
is "$(precious)" "$untouched" "root's files are unchanged"

done_testing
