#!/bin/bash
# report_picture.sh: doc/report/w1.html and w1.png (rsvg-convert), README's picture: the MNIST CNN, 64 pictures per node, on 1, 2,
# 4 and 8 nodes with emulated computation and links of 10 Gb/s. Time is dilated DILATION (16) times, so that what the nodes do
# besides sleeping does not show on few cores; the links of the cluster, which is up already, are as many times slower:
#   ./quickstart up 8 --rate 625000kbit/800ms && STEPS=40 tests/bench/report_picture.sh; ./quickstart down
set -u
# shellcheck source=tests/bench/speedup_lib.sh
. "$(dirname "$0")/speedup_lib.sh"
model=(--model mnist-cnn --batch-size 64)
[ -e "$home" ] || { echo "report_picture.sh: start the cluster first: ./quickstart up 8 --rate 625000kbit/800ms" >&2 && exit 66; }
[ -e "$home/compute.json" ] || on 1 hpc-train plan "${model[@]}" --nodes 1 --network 1us,1gbit --compute-json compute.json || exit
runs=()
for strategy in multi-worker-mirrored hybrid; do
    for nodes in 1 2 4 8; do
        runs+=("$strategy-$nodes")
        on "$nodes" hpc-train bench "${model[@]}" --strategy $strategy --steps "$steps" --emulate=compute.json \
            --dilation "${DILATION:-16}" --summary-json "$strategy-$nodes" || exit
    done
done
cd "$home" && for format in html svg; do "$top/build/hpc-train" report "${runs[@]}" -o "$top/doc/report/w1.$format" || exit; done
rsvg-convert --zoom 2 -o "$top/doc/report/w1.png" "$top/doc/report/w1.svg" && rm "$top/doc/report/w1.svg"
