#!/bin/bash
# Numbers as labels on a device: losses and metrics are the CPU's, whether pictures stay there or are sent, and with a replica on each
# of several devices.
# shellcheck disable=SC2034,SC2154

# shellcheck source=tests/gpu_without/machine/lib.sh
. "$(dirname "$0")/lib.sh"

python3 - "$own" <<'END'
import os, random, struct, sys, zlib
random.seed(6)
own = sys.argv[1]
os.mkdir(f"{own}/rows")
os.mkdir(f"{own}/sizes") # the same, of two sizes: decoded in each step, and sent
def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
tables = [open(f"{own}/{name}.csv", "w") for name in ("numbers", "several")]
for table in tables:
    table.write("file,a,b,c\n")
for i in range(26):
    values = [random.randrange(256) for _ in range(3)]
    rows = [bytes(min(255, v + random.randrange(40)) for _ in range(10) for v in values) for _ in range(10)]
    twice = [bytes(row[k] for x in range(10) for _ in range(2) for k in range(3 * x, 3 * x + 3)) for row in rows for _ in range(2)]
    for folder, side, lines in (("rows", 10, rows), ("sizes", 20 if i % 3 == 0 else 10, twice if i % 3 == 0 else rows)):
        with open(f"{own}/{folder}/{(i * 7) % 26:02}.png", "wb") as file:
            file.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)) +
                       chunk(b"IDAT", zlib.compress(b"".join(b"\0" + line for line in lines))) + chunk(b"IEND", b""))
    tables[0].write(f"{(i * 7) % 26:02}.png," + ",".join(str(v / 64) for v in values) + "\n")
    tables[1].write(f"{(i * 7) % 26:02}.png," + ",".join(str(int(v > 120)) for v in values) + "\n")
END
cat >"$own/rows.json" <<'END'
{"class_name": "Sequential", "config": {"name": "rows", "layers": [
    {"class_name": "InputLayer", "config": {"batch_shape": [null, 10, 10, 3], "name": "input"}},
    {"class_name": "Conv2D", "config": {"name": "first", "filters": 4, "kernel_size": [3, 3], "activation": "relu"}},
    {"class_name": "Flatten", "config": {"name": "flatten"}},
    {"class_name": "Dense", "config": {"name": "head", "units": 3}}]}}
END
# fit_rows NAME OPTION…: short last batches; the second of two epochs replays what is recorded
fit_rows() {
    capture "$train" fit --model "$own/rows.json" --data "$own/$data" --labels "$own/$labels.csv" --validation-data "$own/$data" --resize 10x10 \
        --validation-labels "$own/$labels.csv" --loss $loss --global-batch-size 4 --epochs 3 --seed 3 --learning-rate 0.02 --verbose 0 \
        --log-dir "$own/log-$1" --bucket-bytes 50000 "${@:2}"
    is "$status" 0 "$labels, $1" || diag "$err"
}
same_history() { # NAME: all columns of all epochs
    ok "$(python3 - "$own/log-cpu/history.csv" "$own/log-$1/history.csv" <<'END'
import csv, sys
a, b = (list(csv.DictReader(open(path))) for path in sys.argv[1:])
print(int(not (len(a) == len(b) == 3 and a[0].keys() == b[0].keys() and
               all(abs(float(x[k]) - float(y[k])) < 2e-4 * max(1, abs(float(x[k]))) for x, y in zip(a, b) for k in x))))
END
    )" "$labels, $1: losses and metrics are the CPU's" || diag "$(paste -sd'\n' "$own/log-cpu/history.csv" "$own/log-$1/history.csv")"
}
data=rows
for case in "numbers mean_squared_error" "several binary_crossentropy"; do
    read -r labels loss <<<"$case"
    fit_rows cpu --device cpu
    rm -f "$own/account"
    fit_rows resident --device cuda
    same_history resident
    is "$(sed 's/ bytes sent.*//' "$own/account")" $((3 * 52 * (12 + 3 * 4))) \
        "$labels: each sample's number and targets are sent"
    fit_rows augmented --device cuda --augment crop:1
    data=sizes fit_rows sent --device cuda
    same_history sent
    HPC_TRAIN_TEST_NCCL=1 HPC_TRAIN_TEST_DEVICES=3 fit_rows replicas --device cuda --replicas 3
    same_history replicas
    for seed in ${HPC_TRAIN_LONG:+2 3} 1; do
        HPC_TRAIN_TEST_SCHEDULE=$seed fit_rows chance --device cuda
        same_history chance
        data=sizes HPC_TRAIN_TEST_SCHEDULE=$seed fit_rows chance-sent --device cuda
        same_history chance-sent
    done
done
done_testing
