#!/bin/bash
# speedup.sh [w1|resnet|emulated]...: what more nodes gain, over links of several rates, for each strategy; a table in Markdown.
#   w1        the MNIST CNN, 64 pictures per node, 2 nodes of one core each against one node of one core
#   resnet    ResNet50V2 on 128x128 pictures, 8 per node, the same, at 10 Gb/s
#   emulated  the MNIST CNN on 2 to 20 nodes beside 1 at 10 Gb/s, computation replaced by its measured time asleep, in slow motion
# ROUNDS and STEPS say how often and how long; LINKS and NODES which links (w1, resnet) and numbers of nodes (emulated); ONLY, a
# regular expression, which strategies. Needs root, and a quiet machine of at least two cores: each node of the sandbox has one
# of them (taskset, OMP_NUM_THREADS=1).
# shellcheck disable=SC2016,SC2086 # Markdown's quotes; options are several words
set -u
# shellcheck source=tests/bench/speedup_lib.sh
. "$(dirname "$0")/speedup_lib.sh"
strategies=("--strategy multi-worker-mirrored" "--strategy hybrid" "--strategy auto"
    "--strategy multi-worker-mirrored --allow-lossy --wire bf16" "--strategy local-sgd --allow-lossy"
    "--strategy multi-worker-mirrored --allow-lossy --compress powersgd:4 --compress-warmup 0"
    "--strategy multi-worker-mirrored --allow-lossy --compress topk:0.01 --compress-warmup 0")
for i in "${!strategies[@]}"; do
    [[ ${strategies[i]} =~ ${ONLY-} ]] || unset "strategies[i]"
done

# beside_one MODEL-OPTIONS LINK: a row for each strategy: 2 nodes beside 1 and beside 2 that train apart, which come first in
# every other round and last in the others.
beside_one() {
    local model=$1 link=$2 round i work
    work=$(mktemp -d)
    for ((round = 0; round < rounds; round++)); do
        [ $((round % 2)) = 1 ] || { one=$(rate 1 $model) && apart=$(apart $model); }
        for i in "${!strategies[@]}"; do
            [ -e "$work/none.$i" ] && continue
            rate 2 $model ${strategies[i]} >"$work/last.$i"
            grep -qx -e - "$work/last.$i" && touch "$work/none.$i"
        done
        [ $((round % 2)) = 0 ] || { apart=$(apart $model) && one=$(rate 1 $model); }
        echo "$one" >>"$work/one"
        divide "$apart" "$one" >>"$work/apart"
        for i in "${!strategies[@]}"; do
            [ -e "$work/none.$i" ] && continue
            cat "$work/last.$i" >>"$work/two.$i"
            divide "$(cat "$work/last.$i")" "$one" >>"$work/gain.$i"
            divide "$(cat "$work/last.$i")" "$apart" >>"$work/share.$i"
        done
    done
    printf '| %s | apart | %.0f | | %s (%s) | |\n' "$link" "$(median <"$work/one")" "$(median <"$work/apart")" "$(span <"$work/apart")"
    for i in "${!strategies[@]}"; do
        [ -e "$work/none.$i" ] || [ ! -e "$work/two.$i" ] && continue
        printf '| %s | `%s` | %.0f | %.0f | %s (%s) | %s |\n' "$link" "${strategies[i]}" "$(median <"$work/one")" \
            "$(median <"$work/two.$i")" "$(median <"$work/gain.$i")" "$(span <"$work/gain.$i")" "$(median <"$work/share.$i")"
    done
    rm -r "$work"
}

head_of_table() {
    printf '\n### %s\n\n%s "apart": two nodes that train each alone at the same time.\n\n' "$1" "$(described)"
    printf '| link | strategy | 1 node, images/s | 2 nodes | speed-up (least to most) | of two apart |\n|---|---|---|---|---|---|\n'
}

w1() {
    head_of_table "W1, 64 pictures per node, 2 nodes of one core against 1"
    for link in ${LINKS:-- 10gbit 1gbit 100mbit}; do
        cluster 2 "$link"
        beside_one "--model mnist-cnn --batch-size 64" "${link/#-/unshaped}"
    done
}

resnet() {
    local steps=${STEPS:-10}
    head_of_table "ResNet50V2, 128x128, 8 pictures per node, 2 nodes of one core against 1"
    for link in ${LINKS:-10gbit}; do
        cluster 2 "$link"
        beside_one "--model resnet50v2 --resize 128x128 --classes 10 --batch-size 8" "${link/#-/unshaped}"
    done
}

# Every message is sent. The times of one node are measured once; those of a part of the model in turn with the whole, so that a
# machine which is slower than it was makes no difference.
emulated() {
    local round nodes strategy work one model=(--model mnist-cnn --batch-size 64)
    printf '\n### W1, emulated computation, 64 pictures per node, links of 10 Gb/s\n\n%s %s\n\n' "$(described)" "$(in_slow_motion)"
    work=$(mktemp -d)
    cluster 1 -
    on 1 hpc-train plan "${model[@]}" --nodes 1 --network 1us,1gbit --compute-json compute.json || exit
    cp "$home/compute.json" "$work/"
    one=$(rate 1 "${model[@]}" --emulate=compute.json)
    for ((round = 0; round < rounds; round++)); do
        for nodes in ${NODES:-$(seq 2 20)}; do
            dilated_cluster "$nodes" 10gbit
            cp "$work/compute.json" "$home/"
            for strategy in multi-worker-mirrored hybrid; do
                [[ $strategy =~ ${ONLY-} ]] || continue
                multiply "$(rate "$nodes" "${model[@]}" --strategy $strategy --emulate=compute.json --dilation $dilation)" "$dilation" |
                    awk -v one="$one" '{ print $1 / one }' >>"$work/$strategy.$nodes"
                echo "$nodes $strategy: $(tail -n 1 "$work/$strategy.$nodes")" >&2
            done
        done
    done
    printf 'One node: %.0f images/s.\n\n| nodes | strategy | speed-up (emulated; least to most) |\n|---|---|---|\n' "$one"
    for nodes in ${NODES:-$(seq 2 20)}; do
        for strategy in multi-worker-mirrored hybrid; do
            [ -e "$work/$strategy.$nodes" ] || continue
            printf '| %s | %s | %.2f (%s) |\n' "$nodes" $strategy "$(median <"$work/$strategy.$nodes")" "$(span <"$work/$strategy.$nodes")"
        done
    done
    rm -r "$work"
}

[ $# -gt 0 ] || set -- w1 resnet emulated
for part; do
    case $part in
    w1 | resnet | emulated) ;;
    *) echo "usage: speedup.sh [w1|resnet|emulated]..." >&2; exit 64 ;;
    esac
done
for part; do "$part"; done
