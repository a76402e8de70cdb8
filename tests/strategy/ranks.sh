#!/bin/bash
# ranks.sh DIR RANKS COMMAND…: COMMAND as so many ranks of one node that nothing but a config and a key tells of each other. What
# rank.sh leaves is in DIR. Prints what each rank has said; its status is that of the first one whose is not 0.
dir=$1 size=$2 port=$((23000 + RANDOM % 1900)) list=() status=0
shift 2
mkdir -p "$dir"
(umask 077 && head -c 32 /dev/urandom | od -An -v -tx1 | tr -d ' \n' >"$dir/key")
export HPC_TRAIN_KEY_FILE=$dir/key
while [ ${#list[@]} -lt "$size" ]; do
    (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || list+=("\"127.0.0.1:$port\"")
    port=$((port + 1))
done
for ((rank = 0; rank < size; rank++)); do
    bash "${BASH_SOURCE%/*}/rank.sh" "$dir" "{\"worker\":[$(IFS=,; echo "${list[*]}")]}" 1 "$size" 0 $rank "$@" &
done
wait
for ((rank = 0; rank < size; rank++)); do
    cat "$dir/out.$rank"
    one=$(cat "$dir/status.$rank")
    [ "$status" != 0 ] || status=$one
done
exit "$status"
