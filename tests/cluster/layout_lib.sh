# layout_lib.sh: comparing what tasks are told with what Slurm says of them. Sourced after plugin_lib.sh.
# shellcheck shell=bash

# make_show: puts a program `show` into $work, which each task runs.
# shellcheck disable=SC2154 # lib.sh sets work and work_here
make_show() {
    cat >"$work_here/show" <<'END'
#!/bin/bash
# one write per line, so that lines of several tasks do not mix
printf '%s %s %s %s %s %s %s %s\n' "$SLURM_PROCID" "$SLURM_NODEID" "$SLURM_LOCALID" "$SLURMD_NODENAME" \
    "$HPC_TRAIN_RANK" "$HPC_TRAIN_NODE_RANK" "$HPC_TRAIN_LOCAL_RANK" "$(cat "$HPC_TRAIN_CONFIG_FILE")"
END
    sandbox_run --root chmod 755 "$work/show"
}

# make_het_srun: puts a program `het-srun` into $work, which is srun for steps over components. With PMIx, srun of Slurm
# 22.05 itself now and then waits for ever for a thread of its own (pmixp_abort_agent_stop), when all tasks have ended and
# the steps are gone: then it is ended, and all is done once more. Only then: a step that does not end is a failure.
make_het_srun() {
    cat >"$work_here/het-srun" <<'END'
#!/bin/bash
name=het-$$
files=$(mktemp -d) || exit
trap 'rm -rf "$files"' EXIT
for try in 1 2 3 4 5 6 7 8; do
    srun --job-name="$name" "$@" >"$files/out" 2>"$files/err" </dev/null &
    for ((i = 0, gone = 0; gone < 6; i++)); do # for as many seconds it has had no step
        kill -0 $! 2>/dev/null || break
        sleep 0.1
        ((i % 10 == 9)) || continue
        if squeue --noheader --steps --format=%j | grep -qx "$name"; then gone=0; else gone=$((gone + 1)); fi
    done
    if [ $gone = 6 ]; then
        echo "srun has not ended with its steps, try $try" >"$files/again"
        kill -KILL $! $(pgrep --parent $!)
        wait $! 2>/dev/null
        [ -n "${SLURM_JOB_ID-}" ] || scancel --name="$name"
        continue
    fi
    wait $!
    status=$?
    cat "$files/out"
    cat "$files/err" >&2
    exit $status
done
cat "$files/again" >&2
exit 124
END
    sandbox_run --root chmod 755 "$work/het-srun"
}

# judge: reads the tasks' lines; prints what does not agree, or "N tasks" when all does. JSON has no blanks here.
judge() {
    awk '
    {
        n++
        if ($1 != $5 || $2 != $6 || $3 != $7) print "task", $1, $2, $3, "was told", $5, $6, $7
        list = $8
        sub(/.*"worker":\[/, "", list)
        sub(/\].*/, "", list)
        gsub(/"/, "", list)
        if (all == "") all = list
        if (list != all) print "rank", $1, "has another list:", list, "not", all
        host[$1] = $4
        nodes = $8
        sub(/.*"nodes":\[/, "", nodes)
        split(nodes, node, "{\"name\":\"")
        sub(/".*/, "", node[$2 + 2])
        if (node[$2 + 2] != $4) print "rank", $1, "is on", $4, "but node", $2, "is called", node[$2 + 2]
    }
    END {
        size = split(all, address, ",")
        if (size != n) print n, "tasks,", size, "addresses"
        for (i = 1; i <= size; i++) {
            split(address[i], part, ":")
            if (part[1] != host[i - 1]) print "rank", i - 1, "is on", host[i - 1], "but its address is", address[i]
            if (seen[address[i]]++) print "address", address[i], "is given twice"
        }
        print n, "tasks"
    }'
}
