#!/bin/bash
# plan_check.sh: what `hpc-train plan` predicts beside what emulated steps take, W1 and ResNet50V2 on 2, 4, 8 and 20 nodes over
# links of two rates; a table in Markdown with the error in percent. In each round the times of operations are measured on one node
# of one core and the network between the nodes by plan itself, then the steps: a virtual machine changes from minute to minute.
# Both have the same times of operations. More nodes than cores go in slow motion, and the times that plan is given, too.
# ROUNDS (3), STEPS (40, of ResNet50V2 5), LINKS (10gbit 1gbit), NODES and MODELS (w1, resnet) say how much, ONLY, a regular
# expression, of which strategies; all of it takes about an hour.
set -u
ROUNDS=${ROUNDS:-3}
# shellcheck source=tests/bench/speedup_lib.sh
. "$(dirname "$0")/speedup_lib.sh"

steps_of() { # MODEL
    if [ "$1" = w1 ]; then echo "${STEPS:-40}"; else echo "${STEPS:-5}"; fi
}

options_of() {
    case $1 in
    w1) echo "--model mnist-cnn --batch-size 64" ;;
    resnet) echo "--model resnet50v2 --resize 128x128 --classes 10 --batch-size 8" ;;
    esac
}

# slowed: compute.json with all times dilated, in slow.json
slowed() {
    python3 -c 'import json, sys
def slowed(value, key=""):
    if isinstance(value, dict): return {k: slowed(v, k) for k, v in value.items()}
    if isinstance(value, list): return [slowed(v, key) for v in value]
    by = float(sys.argv[3])
    return value * by if key.endswith("_seconds") else value / by if key == "bytes_per_second" else value
json.dump(slowed(json.load(open(sys.argv[1]))), open(sys.argv[2], "w"))' "$home/compute.json" "$home/slow.json" "$dilation"
}

# predicted NODES STRATEGY: images per second in the plan
predicted() {
    python3 -c 'import json, sys
rows = json.load(open(sys.argv[1]))["rows"]
found = [r["images_per_second"] for r in rows if r["nodes"] == int(sys.argv[2]) and r["strategy"].startswith(sys.argv[3])]
print(max(found) if found else "-")' "$home/plan.json" "$1" "$2"
}

printf '### Prediction beside measurement (emulated computation)\n\n%s\n\n' "$(steps=${STEPS:-"40 (W1) or 5 (ResNet50V2)"} described) $(in_slow_motion)"
printf '| link | model | nodes | strategy | predicted, images/s | measured | error in %% (least to most) |\n|---|---|---|---|---|---|---|\n'
for link in ${LINKS:-10gbit 1gbit}; do
    for nodes in ${NODES:-2 4 8 20}; do
        dilated_cluster "$nodes" "$link"
        for model in ${MODELS:-w1 resnet}; do
            read -ra options < <(options_of "$model")
            steps=$(steps_of "$model")
            work=$(mktemp -d)
            for ((round = 0; round < rounds; round++)); do
                on 1 hpc-train plan "${options[@]}" --nodes 1 --network 1us,1gbit --compute-json compute.json || exit
                slowed
                on "$nodes" hpc-train plan "${options[@]}" --nodes "$nodes" --network measured --compute slow.json --json plan.json || exit
                for strategy in multi-worker-mirrored hybrid; do
                    [[ $strategy =~ ${ONLY-} ]] || continue
                    multiply "$(predicted "$nodes" $strategy)" "$dilation" >"$work/one"
                    multiply "$(rate "$nodes" "${options[@]}" --strategy $strategy --emulate=compute.json --dilation "$dilation")" "$dilation" >>"$work/one"
                    paste -sd' ' "$work/one" >>"$work/$strategy"
                done
            done
            for strategy in multi-worker-mirrored hybrid; do
                grep -qs '[0-9] [0-9]' "$work/$strategy" || continue
                errors=$(awk '$1 > 0 && $2 > 0 { printf "%.0f\n", 100 * ($1 / $2 - 1) }' "$work/$strategy")
                printf '| %s | %s | %s | %s | %.0f | %.0f | %s (%s) |\n' "$link" "$model" "$nodes" $strategy \
                    "$(cut -d' ' -f1 "$work/$strategy" | median)" "$(cut -d' ' -f2 "$work/$strategy" | median)" \
                    "$(median <<<"$errors")" "$(span <<<"$errors")"
            done
            rm -r "$work"
        done
    done
done
