#!/bin/bash
# rank.sh DIR CLUSTER-JSON NODES SIZE FIRST-WORKER RANK COMMAND…: runs COMMAND as one rank of SIZE, which lie on so many nodes (named
# a, b, …, in blocks; 0: no config, whatever mpirun says). Leaves in DIR its pid (pid.RANK), what it says (out.RANK) and its
# exit status (status.RANK). Ends with that status, once all ranks have one: mpirun would end the others with the first.
dir=$1 cluster=$2 nodes=$3 size=$4 servers=$5 rank=$6
shift 6
role=worker index=$((rank - servers))
[ "$rank" -ge "$servers" ] || { role='ps' index=$rank; }
if [ "$nodes" -gt 0 ]; then
    per=$(((size + nodes - 1) / nodes)) list=
    for ((node = 0; node * per < size; node++)); do
        here=$((size - node * per < per ? size - node * per : per))
        list+=${list:+,}$(printf '{"name":"%b","tasks":%d,"gpus":0}' "\\$(printf %o $((97 + node)))" $here)
    done
    export HPC_TRAIN_CONFIG="{\"version\":1,\"job\":\"${dir##*/}\",\"cluster\":$cluster,\"task\":{\"type\":\"$role\",\"index\":$index},
        \"rank\":$rank,\"local_rank\":$((rank % per)),\"node_rank\":$((rank / per)),\"nodes\":[$list]}"
fi
"$@" >"$dir/out.$rank" 2>&1 &
echo $! >"$dir/pid.new.$rank" && mv "$dir/pid.new.$rank" "$dir/pid.$rank"
wait $! 2>/dev/null
status=$?
echo $status >"$dir/status.$rank"
for ((i = 0; i < 600; i++)); do
    all=("$dir"/status.*)
    [ ${#all[@]} -lt "$size" ] && [ -d "$dir" ] || break
    sleep 0.1
done
exit $status
