#!/bin/bash
# plan.t: `hpc-train plan` from the command line, and `bench --emulate` on two ranks.
# shellcheck disable=SC2154,SC2034

# shellcheck source=tests/build/lib.sh
. "$(dirname "$0")/lib.sh"
work=$(mktemp -d /tmp/hpc-train-plan.XXXXXX)
at_exit "rm -rf '$work'"
export OMP_NUM_THREADS=1
train=$hpc_train
ranks=(mpirun --allow-run-as-root --oversubscribe --bind-to none -n)

# json FILE EXPRESSION: what python makes of the file, as `j`
json() { python3 -c 'import json, sys; j = json.load(open(sys.argv[1])); print(eval(sys.argv[2]))' "$@"; }

# ---- what cannot be ----
refused() { # MESSAGE OPTION…
    local want=$1
    shift
    capture "$train" plan --model mnist-cnn "$@"
    is "$status" 64 "plan $* is refused"
    like "$err" "$want" "the error says why"
}
refused "--network: '5us' is not LATENCY,BANDWIDTH" --network 5us
refused "--network: '5' is not a latency" --network 5,1gbit
refused "--network: '1' is not a bandwidth" --network 5us,1
refused "--nodes: .*must rise" --network 5us,1gbit --nodes 2,1
refused "--nodes: .*1 to 1000000" --network 5us,1gbit --nodes 0
refused "batch-size.*and --global-batch-size" --network 5us,1gbit --batch-size 2 --global-batch-size 2
refused "no picture for each of 4 nodes" --network 5us,1gbit --global-batch-size 2 --nodes 4
refused "compute-json writes measured times" --network 5us,1gbit --compute "$work/x" --compute-json "$work/y"
refused "'7' is not an option" --network 5us,1gbit 7
capture "$train" plan --model mnist-cnn --network 5us,1gbit --compute "$work/none.json"
is "$status" 66 "a file that is not there is missing input"
like "$err" "none.json" "the error names the file"
echo '{"version": 1}' >"$work/bad.json"
capture "$train" plan --model mnist-cnn --network 5us,1gbit --compute "$work/bad.json"
is "$status" 65 "a file of something else is bad data"
like "$err" "bad.json.*--compute-json writes one" "the error says how to create the file"
capture "$train" plan --model mnist-cnn --network measured
is "$status" 78 "a network of one rank cannot be measured"
like "$err" "srun -N2.*--network LATENCY,BANDWIDTH" "the error says what to do"

# ---- a plan ----
capture "$train" plan --model mnist-convnet --batch-size 8 --nodes 1,2,...,8,20 --network 50us,1gbit \
    --compute-json "$work/compute.json" --json "$work/plan.json"
is "$status" 0 "plan succeeds" || diag "$err"
like "$out" "mnist-convnet, 8 pictures per rank and step: [0-9.]+ ms/step on one rank of 1 thread \(measured here\)" "it prints model and batch"
like "$out" "network: 50.0 us, 125.0 MB/s \(as stated\)" "it prints the network"
like "$out" "nodes +strategy +ms/step +compute +network +images/s +speed-up +efficiency" "it prints a table"
for nodes in 1 2 4 8 20; do
    is "$(grep -cE "^ +$nodes  [a-z]" <<<"$out")" 1 "one best row for $nodes"
done
like "$out" "Of these numbers of nodes, [0-9]+ pays? off: [0-9]+ images/s with " "it prints how many nodes pay off"
is "$(json "$work/plan.json" '[r["nodes"] for r in j["rows"] if r["best"]]')" "[1, 2, 4, 8, 20]" "the object has the same"
is "$(json "$work/plan.json" 'all(abs(r["compute_seconds"] + r["network_seconds"] - r["step_seconds"]) < 1e-9 for r in j["rows"])')" True "computing and network make the step"
is "$(json "$work/plan.json" 'all(r["exact"] for r in j["rows"] if r["best"])')" True "the best are exact"
is "$(json "$work/plan.json" '[r["bytes_per_step"] for r in j["rows"] if r["strategy"] == "multi-worker-mirrored"][0]')" 249384.0 "62,346 gradients travel"
# The table's lines for N nodes, of each network.
rows_of() { grep -cE "^ +$1  [a-z]" <<<"$out"; }
capture "$train" plan --model mnist-convnet --batch-size 8 --nodes 1,2,4,8 --compute "$work/compute.json" --json "$work/two.json"
is "$status" 0 "README's command: no network is given, and there is one rank" || diag "$err"
like "$out" "network: 50.0 us, 125.0 MB/s .assumed.*network: 25.0 us, 1250.0 MB/s .assumed" "networks of 1 and 10 Gb/s are assumed, and printed as such"
is "$(rows_of 1) $(rows_of 2) $(rows_of 8)" "2 2 2" "with one table each"
is "$(json "$work/two.json" '[(p["network"]["bytes_per_second"], p["network"]["measured"], len(p["rows"]) > 4) for p in j]')" \
    "[(125000000.0, False, True), (1250000000.0, False, True)]" "and an object each"
is "$(json "$work/two.json" '[r["step_seconds"] for r in j[0]["rows"] if r["nodes"] == 8 and r["strategy"] == "multi-worker-mirrored"] > [r["step_seconds"] for r in j[1]["rows"] if r["nodes"] == 8 and r["strategy"] == "multi-worker-mirrored"]')" \
    True "the faster network gives faster steps"
again() { # OPTION…: from the file, so that computation is the same
    "$train" plan --model mnist-convnet --batch-size 8 --nodes 2 --compute "$work/compute.json" --json "$work/again.json" "$@" >"$work/out"
}
best() { json "$work/again.json" 'j["rows"][0]["strategy"]'; }
again --network 50us,1gbit
is "$(json "$work/again.json" '"%.6g" % j["rows"][0]["step_seconds"]')" "$(json "$work/plan.json" '"%.6g" % [r for r in j["rows"] if r["nodes"] == 2][0]["step_seconds"]')" "the file's times give the same plan"
like "$(cat "$work/out")" "\($work/compute.json\)" "the file is named"
again --network 1s,1kbit --allow-lossy --local-steps 1000000
is "$(best)" local-sgd "on a very slow network local-sgd is best, if permitted"
again --network 1s,1kbit --local-steps 1000000
ok "$([ "$(best)" != local-sgd ]; echo $?)" "and not without permission"
capture "$train" plan --model mnist-cnn --network 5us,1gbit --compute "$work/compute.json"
is "$status" 64 "times of another model are an error"
like "$err" "compute.json has the times of mnist-convnet" "the error names the models"

# ---- more than so many times as fast as one ----
# Times of mnist-cnn in which weights are all that counts: a part of them on each rank is worth more than its share.
weights_count() {
    python3 -c 'import json, sys
j = json.load(open(sys.argv[1]))
for m in j["measured"]:
    for way in m["stored"], m["fused"]:
        way["loss_seconds"] = way["update_seconds"] = 1e-6
        for times in way["forward_seconds"], way["backward_seconds"]:
            for i, part in enumerate(j["parts"]):
                times[i] = 0.01 + 1e-5 * m["samples"] if part["layer"] == "dense" else 1e-6 * m["samples"]
json.dump(j, open(sys.argv[2], "w"))' "$1" "$2"
}
"$train" plan --model mnist-cnn --batch-size 8 --nodes 1 --network 1us,1gbit --compute-json "$work/fixed.json" >"$work/out"
weights_count "$work/fixed.json" "$work/fixed2.json"
capture "$train" plan --model mnist-cnn --batch-size 8 --nodes 1,4 --network 5us,100gbit --compute "$work/fixed2.json" --json "$work/fixed.plan.json"
is "$(json "$work/fixed.plan.json" 'max(r["efficiency"] for r in j["rows"]) > 1.5')" True "parts of the weights are worth more than 100 %"
like "$out" "More than 100 %: beside one rank that reads and updates all weights for 8 pictures, where with hybrid .* each rank has a part of them" "the reason for more than 100 % is printed"
like "$out" "One rank with all 32 in a step: [0-9]+ images/s, of which 4 nodes do [0-4]\.[0-9] times as many" "and the speed of one rank with the global batch"
is "$(json "$work/fixed.plan.json" 'max(r["efficiency"] for r in j["rows"] if not r["strategy"].startswith("hybrid")) <= 1 + 1e-9')" True "ranks that each compute the whole model have an efficiency of at most 100 %"
# One rank may compute as each of several does, too, and what it takes is the less of the two: noise makes nobody gain.
python3 -c 'import json, sys
j = json.load(open(sys.argv[1]))
for m in j["measured"]:
    for times in m["fused"]["forward_seconds"], m["fused"]["backward_seconds"]:
        times[:] = [1.4 * t for t in times]
json.dump(j, open(sys.argv[2], "w"))' "$work/fixed2.json" "$work/fixed3.json"
"$train" plan --model mnist-cnn --batch-size 8 --nodes 1,4 --network 5us,100gbit --compute "$work/fixed3.json" --json "$work/fixed.plan.json" >"$work/out"
is "$(json "$work/fixed.plan.json" 'max(r["efficiency"] for r in j["rows"] if not r["strategy"].startswith("hybrid")) <= 1 + 1e-9')" True "also if one rank was measured as slow"

# ---- steps that sleep ----
slow() { sed -E '/"(loss|update)_seconds"/s/: [0-9.e-]+/: 0.01/' "$work/compute.json"; } # 20 ms a step at least
slow >"$work/slow.json"
capture "${ranks[@]}" 2 "$train" bench --model mnist-convnet --strategy multi-worker-mirrored --batch-size 8 --steps 5 --emulate="$work/slow.json" --summary-json "$work/s.json"
is "$status" 0 "two ranks train with emulated computation" || diag "$err"
like "$out" "2 ranks \(emulated computation: losses are undefined\)" "it is printed as emulated"
is "$(json "$work/s.json" 'j["emulated"], j["loss"], j["accuracy"]')" "(True, None, None)" "the summary has it, too, without a loss"
is "$(json "$work/s.json" 'j["step_ms"] >= 20')" True "a step takes its 20 ms"
is "$(json "$work/s.json" 'j["bytes_sent_per_step"] > 249384')" True "all gradients are sent"
capture "${ranks[@]}" 3 "$train" bench --model mnist-convnet --strategy multi-worker-mirrored --global-batch-size 8 --steps 3 --emulate --summary-json "$work/s.json"
is "$status" 0 "three ranks with 3, 3 and 2 pictures measure one after the other" || diag "$err"
is "$(json "$work/s.json" 'j["emulated"] and j["step_ms"] > 0')" True "and emulate the measured times"
# A part of the model is measured beside the whole, and is to the file's times as it is to those: a file that is ten times as slow
# makes steps ten times as long; in such slow motion that being woken late, on a loaded machine, hardly counts.
times_ten() {
    python3 -c 'import json, sys
def slowed(value, key=""):
    if isinstance(value, dict): return {k: slowed(v, k) for k, v in value.items()}
    if isinstance(value, list): return [slowed(v, key) for v in value]
    return 10 * value if key.endswith("_seconds") else value
json.dump(slowed(json.load(open(sys.argv[1]))), open(sys.argv[2], "w"))' "$1" "$2"
}
"$train" plan --model mnist-cnn --batch-size 16 --nodes 1 --network 1us,1gbit --compute-json "$work/cnn.json" >"$work/out"
times_ten "$work/cnn.json" "$work/ten.json"
near_ten() { awk -v r="$1" 'BEGIN { exit !(r > 5 && r < 14) }'; }
for _ in 1 2 3; do # a machine that stops for a moment decides nothing
    for file in cnn ten; do
        capture "${ranks[@]}" 2 "$train" bench --model mnist-cnn --strategy hybrid --batch-size 16 --steps 5 --emulate="$work/$file.json" --dilation 40 --summary-json "$work/$file.s.json"
        [ "$status" = 0 ] || break 2
    done
    ratio=$(python3 -c 'import json, sys; a, b = (json.load(open(f))["step_ms"] for f in sys.argv[1:]); print(b / a)' "$work/cnn.s.json" "$work/ten.s.json")
    near_ten "$ratio" && break
done
is "$status" 0 "a part of the model is emulated by a file of the whole model" || diag "$err"
ok "$(near_ten "${ratio:-0}"; echo $?)" "ten times as long by one that is ten times as slow (${ratio:-not known})"
capture "${ranks[@]}" 2 "$train" bench --model mnist-convnet --strategy multi-worker-mirrored --batch-size 8 --steps 3 --emulate="$work/slow.json" --dilation 5 --summary-json "$work/s.json"
is "$status" 0 "time can be dilated" || diag "$err"
like "$out" "dilated: 5 times as long" "the dilation is printed"
is "$(json "$work/s.json" 'j["dilation"], j["step_ms"] >= 60')" "(5.0, True)" "a step takes five times its 20 ms"
capture "$train" bench --model mnist-convnet --dilation 5 --steps 1
is "$status" 64 "real computation is not dilated"
like "$err" "give --emulate" "the error names --emulate"
"$train" bench --model mnist-convnet --batch-size 8 --steps 2 --summary-json "$work/s.json" >/dev/null
is "$(json "$work/s.json" 'j["emulated"], j["loss"] > 0')" "(False, True)" "other summaries say that theirs is none"
capture "$train" bench --model mnist-convnet --emulate --profile
is "$status" 64 "a profile of sleep is refused"
capture "${ranks[@]}" 2 "$train" bench --model mnist-convnet --emulate
is "$status" 64 "--strategy auto, which measures real steps, is an error"
done_testing
