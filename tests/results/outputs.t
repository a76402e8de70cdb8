#!/bin/bash
# outputs.t: what cannot be written is known before step 1; links, modes, names and left-over files; signals; limits of the
# shell; what has diverged replaces nothing.
# shellcheck disable=SC2154,SC2046

# shellcheck source=tests/results/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$work" || exit
unset HPC_TRAIN_RESCUE_DIR

# refused STATUS MESSAGE OPTION…: before step 1
refused() {
    local want=$1 message=$2
    shift 2
    capture fit "$@"
    is "$status" "$want" "$* fails" || diag "$err"
    like "$err" "$message" "the error says why"
    unlike "$out" "Epoch 1/2" "before step 1"
}

# ---- before step 1 ----
mkdir folder
long=$(printf 'n%.0s' {1..256})
for option in --save-weights --summary-json --timeline --metrics-file; do
    refused 74 "$option: folder is a folder: give the name of a file" $option folder
    refused 74 "$option: .*nnn: writing failed: File name too long" $option "$long"
    refused 74 "$option: none/x: .*No such file" $option none/x
    : >file && refused 74 "$option: file/x: .*Not a directory" $option file/x
done
refused 64 "the value is empty" --save-weights ""
(sleep 0; exit 0) & dead=$!
wait $dead
touch ".tmp0-$dead"
refused 74 "--save-weights: none/ ends in a slash: give the name of a file" --save-weights none/
ok "$([ -e ".tmp0-$dead" ]; echo $?)" "a file with such a temporary name is kept"
mkdir -p log/history.csv
refused 74 "--log-dir: log/history.csv is a folder" --log-dir log
is "$(ls log)" history.csv "no other log is started"
rmdir log/history.csv
# shellcheck disable=SC2094 # that is the point
fit --verbose 0 --summary-json printed >printed 2>errors
is "$? $(cat errors)" "74 hpc-train: --summary-json: printed is where this program prints: give another name" "a result does not replace what is printed"
if [ "$(id -u)" = 0 ] && mknod disk b 7 4711 2>/dev/null; then
    refused 74 "--save-weights: disk is a disk: give the name of a file" --save-weights disk
else
    skip "a disk" "none can be made here"
fi
if command -v python3 >/dev/null; then
    python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("socket")'
    refused 74 "--summary-json: socket is a socket: give the name of a file" --summary-json socket
else
    skip "a socket" "no python3 here"
fi
if [ "$(id -u)" = 0 ] && mkdir added && chattr +a added 2>/dev/null; then
    at_exit "chattr -a '$work/added'"
    refused 74 "--save-weights: added/w: renaming a file in its folder failed: Operation not permitted" --save-weights added/w
    chattr -a added
else
    skip "a folder where nothing gets another name" "no chattr here"
fi
capture limit 60 "$top_builddir/hpc-train" plan --model mnist-convnet --nodes 2 --network 1us,1gbit --json folder
is "$status $out" "74 " "plan: before anything is measured"
like "$err" "--json: folder is a folder" "the error says why"
if [ "$(id -u)" = 0 ] && chattr +i file 2>/dev/null; then
    at_exit "chattr -i '$work/file'"
    refused 74 "--save-weights: file: writing failed: Operation not permitted" --save-weights file
    chattr -i file
else
    skip "a file that cannot be changed" "no chattr here"
fi
if unshare -m true 2>/dev/null; then
    mkdir small
    capture unshare -m bash -c 'mount -t tmpfs -o size=100k tmpfs small && shift 0 && exec "$@"' x "$top_builddir/hpc-train" fit \
        --model mnist-convnet --data "$work/pictures" --steps-per-epoch 2 --batch-size 8 --save-weights small/w
    is "$status" 74 "a disk that is too small is refused"
    like "$err" "small/w: [0-9]+ bytes cannot be written: No space left on device" "the error has the required size"
    unlike "$out" "Epoch" "before step 1"
else
    skip "a small disk" "no mount here"
fi

# ---- one name for two ----
both() { # MESSAGE OPTION…
    capture fit "${@:2}"
    is "$status" 64 "${*:2}: one file for two outputs" || diag "$err"
    like "$err" "$1" "the error names both options"
}
ln -s ./one.json two.safetensors
both "--summary-json and --timeline would be one file" --summary-json one.json --timeline ./one.json
both "--summary-json and --save-weights would be one file" --summary-json one.json --save-weights two.safetensors
both "--timeline and --log-dir would be one file" --timeline log/../log/metrics.jsonl --log-dir log
both "--metrics-file and --log-dir would be one file" --metrics-file log/status.json --log-dir log
cp "$work/pictures/train-labels-idx1-ubyte" "$work/labels"
both "--save-weights .*train-labels-idx1-ubyte would replace what --data reads" \
    --save-weights "$work/pictures/train-labels-idx1-ubyte" --validation-data "$work/pictures/train-labels-idx1-ubyte"
is "$(cmp labels "$work/pictures/train-labels-idx1-ubyte" 2>&1)" "" "the labels are unchanged"
both "--summary-json .*labels would replace what --validation-data reads" --summary-json labels --validation-data "$work/labels"
both "--metrics-file .*labels would replace what --validation-data reads" --metrics-file labels --validation-data "$work/labels"
mkdir below && ln -s "$work/pictures/train-labels-idx1-ubyte" below/link
capture env HPC_TRAIN_DATA="$work/pictures" "$top_builddir/hpc-train" fit --model mnist-convnet --steps-per-epoch 1 --timeline below/link
is "$status $(cmp labels "$work/pictures/train-labels-idx1-ubyte" 2>&1)" "64 " "also for a folder in \$HPC_TRAIN_DATA, through a link"
mkdir data && cp "$work"/pictures/* data
for i in 1 2; do
    fit --verbose 0 --data data --save-weights data/w --summary-json data/s.json --timeline data/t.json --log-dir data
    is "$?" 0 "files that are no data may be in the data folder, run $i"
done
echo '{"class_name": "Sequential"}' >model.json
capture limit 60 "$top_builddir/hpc-train" bench --model model.json --summary-json ./model.json
is "$status $(wc -c <model.json)" "64 29" "bench: a model is not replaced"

# ---- what they become ----
mkdir real && echo earlier >real/w && chmod 640 real/w
ln -s real/w link && ln -s link linked && ln -s real/absent dangling
touch "real/w.tmp0-$dead" "real/w.tmp7-$dead" "real/w.tmp0-$$" "real/other.tmp0-$dead" "real/w.tmp0-x"
fit --verbose 0 --save-weights linked --summary-json dangling
is "$?" 0 "outputs through links"
is "$(readlink linked) $(readlink link) $(readlink dangling)" "link real/w real/absent" "links are kept"
ok "$([ "$(stat -c %s real/w)" -gt 100000 ]; echo $?)" "and lead to the new file"
is "$(stat -c %a real/w) $(stat -c %a real/absent)" "640 644" "modes are kept; a new file follows the umask"
is "$(cd real && echo *)" "absent other.tmp0-$dead w w.tmp0-$$ w.tmp0-x" "only temporary files of dead processes are removed"
(umask 077; fit --verbose 0 --save-weights private)
is "$(stat -c %a private)" 600 "another umask"
if [ "$(id -u)" = 0 ]; then
    chown 12345:23456 real/w
    fit --verbose 0 --save-weights real/w
    is "$(stat -c '%u:%g %a' real/w)" "12345:23456 640" "the owner stays"
fi
if python3 - 2>/dev/null <<'END'; then
import os, struct
def acl(*entries):
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *e) for e in entries)
none = 0xffffffff
for name in "listed", "unlisted/w":
    os.makedirs("unlisted", exist_ok=True)
    open(name, "w").write("earlier")
    os.chmod(name, 0o660)
os.setxattr("listed", "system.posix_acl_access", acl((1, 6, none), (2, 6, 12345), (4, 0, none), (16, 6, none), (32, 0, none)))
os.setxattr("unlisted", "system.posix_acl_default", acl((1, 7, none), (2, 7, 12345), (4, 5, none), (16, 7, none), (32, 5, none)))
END
    acl_of() { python3 -c 'import os, sys; print("".join(os.getxattr(sys.argv[1], n).hex() for n in os.listxattr(sys.argv[1]) if "acl" in n))' "$1"; }
    before=$(acl_of listed)
    fit --verbose 0 --save-weights listed --summary-json unlisted/w
    is "$? $(acl_of listed)" "0 $before" "an ACL is kept: without it the group could do what its mask said"
    is "$(acl_of unlisted/w) $(stat -c %a unlisted/w)" " 660" "no ACL is inherited from the folder"
else
    skip "ACLs" "no python3, or no ACLs here"
fi
long=$(printf 'n%.0s' {1..255})
fit --save-weights "$long" --summary-json /proc/self/fd/1 >printed
is "$?" 0 "a name as long as may be"
like "$(head -n 1 printed) $(cat printed)" '^training: .*mnist-convnet.*"steps": 4' "the summary follows the other output"
fit --verbose 0 --summary-json /proc/self/fd/1 | cat >printed
like "$(cat printed)" '"steps": 4' "also into a pipe"
# Devices of our own: a fault would replace the system's.
if mknod null c 1 3 2>/dev/null && mknod full.device c 1 7 && : 2>/dev/null >null; then
    fit --verbose 0 --timeline null --save-weights null
    is "$? $(stat -c %F null)" "0 character special file" "a device stays what it is"
    has_devices=yes
else
    skip "a device" "none can be made here"
fi
printf '\x01\x02\x03' >real/x && cp real/x old
fit --verbose 0 --timeline t.json --save-weights x.weights.h5 && cp t.json t.old
capture fit --timeline t.json --log-dir . --epochs 1000000 --validation-data none
is "$status $(cmp t.json t.old 2>&1)" "66 " "a run that is refused later leaves an earlier file"

# ---- an earlier log ----
mkdir logs && echo earlier >logs/history.csv && echo earlier >logs/metrics.jsonl
fit --log-dir logs --epochs 1000 --steps-per-epoch 1000000 >/dev/null 2>&1 &
pid=$!
until [ -n "$(find logs -name 'metrics.jsonl.tmp*' -size +0)" ] || ! kill -0 $pid 2>/dev/null; do sleep 0.05; done
is "$(cat logs/history.csv logs/metrics.jsonl)" "earlier
earlier" "an earlier log stays until an epoch has ended"
pkill -TERM -P $pid # of timeout
wait $pid
is "$? $(cat logs/history.csv) $(cat logs/*.tmp* 2>/dev/null)" "143 earlier " "also if no epoch has ended"
fit --log-dir logs >/dev/null 2>&1
is "$(wc -l <logs/history.csv) $(wc -l <logs/metrics.jsonl)" "3 4" "a later run replaces it"

# ---- event files ----
fit --verbose 0 --log-dir plain --save-weights w.plain
fit --verbose 0 --log-dir histograms --histogram-every 1 --save-weights w.histograms
tags() { tr -c '[:alnum:]_/' '\n' <"$(ls $1/train/events.out.tfevents.*)" | grep -c "^$2"; }
is "$(cmp w.plain w.histograms 2>&1) $(tags histograms dense/kernel/gradient) $(tags histograms dense/kernel/histogram) $(tags plain dense/kernel/histogram)" \
    " 2 2 0" "--histogram-every writes histograms, and changes no weight"
fit --verbose 0 --log-dir histograms --histogram-every 2 --gradient-accumulation 2 >/dev/null
is "$(tags histograms dense/kernel/gradient) $(tags histograms dense/kernel/histogram) $(tags histograms epoch_loss)" "0 1 2" \
    "no gradients while they are accumulated; the first epoch and each second one after it"
is "$(ls plain histograms histograms/earlier-events)" "histograms:
earlier-events
history.csv
metrics.jsonl
pace.jsonl
run.json
status.json
train

histograms/earlier-events:
train

plain:
history.csv
metrics.jsonl
pace.jsonl
run.json
status.json
train" "an earlier run's event files are moved away"

# ---- a log that is taken away ----
fit --log-dir taken --save-weights w.taken --epochs 1000 --steps-per-epoch 2 >/dev/null 2>errors &
pid=$!
until [ -s taken/history.csv ] || ! kill -0 $pid 2>/dev/null; do sleep 0.05; done
rm -r taken
pkill -TERM -P $pid
wait $pid
is "$(sed '/the state of the run could not be written/d; s/ in [^ ]*rescued/ in rescued/g; s/tfevents[^ ;]*/tfevents/g' errors)" "hpc-train: taken/run.json: making a file in its folder failed: No such file or directory; what it was to hold is in rescued-run.json; taken/history.csv was removed or replaced by another program; what it was to hold is in rescued-history.csv; taken/metrics.jsonl was removed or replaced by another program; what it was to hold is in rescued-metrics.jsonl; taken/train/events.out.tfevents was removed or replaced by another program; what it was to hold is in rescued-events.out.tfevents; the weights are in w.taken" \
    "a log that another program removed is saved elsewhere, and told"
like "$(head -n 2 rescued-history.csv | tr '\n' ' ')" "^epoch,accuracy,learning_rate,loss 0,[0-9.]+,[0-9.]+,[0-9.]+ $" "complete from its beginning"
ok "$([ "$(tail -n +2 rescued-history.csv | cut -d, -f1 | tr '\n' ' ')" = "$(seq 0 $(($(wc -l <rescued-history.csv) - 2)) | tr '\n' ' ')" ]; echo $?)" "to its end"

# ---- two runs with one name for their results ----
# meanwhile COMMAND...: a run of all outputs in two/, ended by a signal after COMMAND; leaves $status and errors
meanwhile() {
    local pid
    rm -rf two/log
    fit $(all_in two) --epochs 1000 --steps-per-epoch 2 >/dev/null 2>errors &
    pid=$!
    until [ -s two/log/history.csv ] || ! kill -0 $pid 2>/dev/null; do sleep 0.05; done
    "$@"
    pkill -TERM -P $pid
    wait $pid
    status=$?
}
overwrite() { for name in w.safetensors s.json t.json; do echo other >two/$name; done; }
mkdir two
meanwhile overwrite
is "$(cat two/w.safetensors two/s.json two/t.json | xargs)" "other other other" "what another run has written since the first step stays"
like "$(tail -n 1 errors)" "two/w.safetensors has been written by another program since this run began, and stays: give each run a name of its own.*the weights are in .*two/rescued-w.safetensors" \
    "which is told, with where this run's are"
is "$(find two -name 'rescued-*' -size +1 -printf '%f\n' | sort | xargs)" "rescued-s.json rescued-w.safetensors" "they are there"
rm two/rescued-*
meanwhile chmod 600 two/w.safetensors two/s.json two/log/history.csv
is "$(ls two | xargs)" "log s.json t.json w.safetensors" "what was there before is replaced, also when its mode has changed" || diag "$(cat errors)"
meanwhile rm two/w.safetensors two/s.json
is "$(ls two | xargs)" "log s.json t.json w.safetensors" "what has gone meanwhile is replaced" || diag "$(cat errors)"

# ---- a log that cannot be written ends nothing ----
if [ -n "${has_devices-}" ]; then
    mkdir full && ln -s ../full.device full/history.csv
    capture fit --log-dir full --save-weights w.full
    is "$status" 74 "a full disk under --log-dir"
    like "$out" "full/history.csv: writing failed: No space left on device; it is tried again" "reported when it occurs"
    like "$err" "full/history.csv: writing failed.*; the weights are in w.full" "and at the end, with the path of the weights"
    like "$out" "Epoch 2/2" "training continues"
    ok "$([ -s w.full ]; echo $?)" "the weights are saved"
else
    skip "a full disk under --log-dir" "no device for it"
fi

# ---- limits, and pipes that nobody reads ----
capture bash -c 'ulimit -f 100; exec "$@"' x "$top_builddir/hpc-train" fit --model mnist-convnet --data "$work/pictures" \
    --steps-per-epoch 2 --batch-size 8 --save-weights w.limit
is "$status" 74 "ulimit -f is an error of writing"
like "$err" "w.limit: [0-9]+ bytes cannot be written: File too large" "the error names the file"
mkfifo unread
capture fit --save-weights unread
is "$status" 74 "a pipe without a reader does not block the run"
like "$err" "unread: nobody reads this pipe; the weights are in ./rescued-unread" "and the weights are saved"
deep=$work$(printf "/$(printf 'p%.0s' {1..240})%.0s" {1..8})
mkdir -p "$deep"
capture fit --save-weights "$deep/w" --learning-rate 1e6 --epochs 3
like "$err" "the weights are in .*pp/diverged-w$" "a long name is printed completely"
fit --save-weights w.pipe 2>errors | true
is "${PIPESTATUS[0]}" 74 "a closed standard output does not stop training"
ok "$([ -s w.pipe ]; echo $?)" "the weights are saved"
like "$(cat errors)" "standard output cannot be written" "the error is printed"
fit >/dev/full 2>errors
is "$? $(cat errors)" "74 hpc-train: standard output cannot be written" "output is a result: failing to write it is an error"

fit --save-weights w.closed --seed 5 >&- 2>errors
is "$? $(cat errors)" "74 hpc-train: standard output cannot be written" "a standard output that is closed, too"
fit --verbose 0 --save-weights w.open --seed 5
is "$(cmp w.closed w.open 2>&1)" "" "nothing that is printed gets into a file"

# ---- signals ----
for signal in USR1 USR2 HUP XCPU TERM INT; do
    rm -f w.signal
    env --default-signal=INT "$top_builddir/hpc-train" fit --model mnist-convnet --data "$work/pictures" --epochs 1000000 \
        --steps-per-epoch 2 --batch-size 8 --save-weights w.signal --summary-json s.signal --log-dir signal.$signal >/dev/null 2>errors &
    pid=$!
    until [ -s signal.$signal/history.csv ] || ! kill -0 $pid 2>/dev/null; do sleep 0.05; done
    kill -$signal $pid
    for ((i = 0; i < 600; i++)); do kill -0 $pid 2>/dev/null || break; sleep 0.1; done
    kill -KILL $pid 2>/dev/null
    wait $pid
    got=$?
    is "$got" $((128 + $(kill -l $signal))) "SIG$signal ends it"
    like "$(cat errors)" "stopped by SIG$signal after step [0-9]+, in epoch [0-9]+ of 1000000; the weights so far are in w.signal" "the message names the signal"
    like "$(cat s.signal)" "\"stopped_by\": \"SIG$signal\"" "the summary has the signal, too"
    ok "$([ -s w.signal ]; echo $?)" "the weights are saved"
done

# ---- what diverges ----
fit --verbose 0 --save-weights good --summary-json good.json && cp good good.old && cp good.json good.json.old
capture fit --learning-rate 1e6 --save-weights good --summary-json good.json --epochs 3
is "$status" 65 "a run that diverges fails"
like "$out" "loss: ([0-9.]+e\+[0-9]+|nan)" "large losses are short"
like "$out" "training has diverged: the loss is not finite or 100 times that of step 1" "reported in its epoch"
like "$err" "training diverged: the loss was .* in the first step and .* in the last: a smaller --learning-rate.*; the weights are in ./diverged-good" "and at the end"
is "$(cmp good good.old 2>&1)$(cmp good.json good.json.old 2>&1)" "" "good files stay"
ok "$([ -s diverged-good ] && [ -s diverged-good.json ]; echo $?)" "its own weights are saved beside them"
python3 - good nan <<'END' 2>/dev/null
import struct, sys
data = bytearray(open(sys.argv[1], "rb").read())
data[-4:] = struct.pack("<f", float("nan"))
open(sys.argv[2], "wb").write(data)
END
capture fit --learning-rate 1000 --save-weights good --epochs 5
is "$status $(cmp good good.old 2>&1)" "65 " "a loss that stays at a hundred times what it was, too"
if [ -s nan ]; then
    capture "$top_builddir/hpc-train" evaluate --model mnist-convnet --data "$work/pictures" --weights nan
    is "$status" 65 "evaluate: NaN is no result"
    like "$err" "finite" "the warning is printed"
else
    skip "evaluate: NaN" "no python3 here"
fi

# ---- two ranks ----
if command -v mpirun >/dev/null; then
    two() {
        limit 60 mpirun --allow-run-as-root --oversubscribe --bind-to none -n 2 "$top_builddir/hpc-train" fit --model mnist-convnet \
            --data "$work/pictures" --steps-per-epoch 2 --batch-size 8 --strategy multi-worker-mirrored "${buckets[@]}" --verbose 0 "$@"
    }
    capture two --save-weights folder
    like "$err" "rank 0 .*folder is a folder" "two ranks: rank 0 prints the error"
    capture two --save-weights "$deep/w" --learning-rate 1e6 --epochs 2
    like "$err" "the weights are in .*pp/diverged-[0-9-]*w" "a long name is printed completely"
    capture two --save-weights good --learning-rate 1e6 --epochs 2
    is "$(grep -c "training diverged: .*; the weights are in ./diverged-[0-9]*-*good" <<<"$err") $(cmp good good.old 2>&1)" "1 " \
        "divergence is reported once, and replaces no file"
    two --save-weights w.two --epochs 1000000 --log-dir two.log >/dev/null 2>errors &
    pid=$!
    until [ -s two.log/history.csv ] || ! kill -0 $pid 2>/dev/null; do sleep 0.05; done
    for one in $(pgrep -f -- "--log-dir two.log"); do
        if grep -qz OMPI_COMM_WORLD_RANK=1 "/proc/$one/environ" && [ "$(readlink "/proc/$one/cwd")" = "$work" ]; then kill -USR1 "$one"; fi
    done
    wait $pid
    is "$(grep -c "stopped by SIGUSR1 after step [0-9]*, .*; the weights so far are in w.two" errors)" 1 "SIGUSR1 to rank 1 ends both"
    ok "$([ -s w.two ]; echo $?)" "the weights are saved"
else
    skip "two ranks" "there is no mpirun"
fi
done_testing
