# train_lib.sh: what the tests of training share; sourced after lib.sh. Offers the data set, running in the background, and
# finding a rank's process. Every command line holds $work, which tells this test's processes from all others.
# shellcheck shell=bash disable=SC2154,SC2034
# shellcheck source=tests/pictures.sh
. "$top_srcdir/tests/pictures.sh"
# shellcheck source=tests/rounding.sh
. "$top_srcdir/tests/rounding.sh"

fashion=/usr/share/datasets/fashion-mnist

# need_training: goes on only where hpc-train is installed on the cluster and Fashion-MNIST is here; leaves it in $data, and its first
# 256 pictures, and 64 to evaluate, in $pictures.
need_training() {
    [ -e "$fashion/train-images-idx3-ubyte.gz" ] || skip_all "Fashion-MNIST is missing: apt-get install dataset-fashion-mnist"
    sandbox_run hpc-train --version >/dev/null 2>&1 || skip_all "hpc-train is not installed on the cluster: ./quickstart up"
    data=$work/data
    copy_data data
    pictures=$work/pictures
    first_pictures "$work_here/pictures"
    choose_launcher
}

# choose_launcher: leaves in $launch what starts the ranks: srun, where it has PMIx over MPI; else with the plugin, over TCP.
choose_launcher() {
    launch=srun
    has_pmix || launch='srun --hpc-train'
}

# copy_data NAME: another copy of the data set, $work/NAME, to be spoilt.
copy_data() {
    mkdir "$work_here/$1" && cp "$fashion"/*.gz "$work_here/$1/" && chown -R --reference="$work_here" "$work_here/$1"
}

# fit OPTIONS…: what every run here has in common. quick OPTIONS…: where any model will do, one with a fortieth of the parameters and
# without the measurement of the network that finds the size of buckets.
fit="hpc-train fit --model mnist-cnn --strategy multi-worker-mirrored"
quick="hpc-train fit --model mnist-convnet --strategy multi-worker-mirrored --bucket-bytes 1000000"

# slow_steps: leaves in $slow what a command begins with so that its steps take 120 ms and more, nearly without a core, until
# hurry, and again from take_time on. Of a training that a test is to meet on its way: tests/cluster/slow_steps.c.
slow_steps() {
    cp "${top_builddir:?run by make check}/tests/cluster/.libs/slow_steps.so" "$work_here/slow_steps.so" || exit
    slow="env OMP_NUM_THREADS=1 LD_PRELOAD=$work/slow_steps.so"
}
hurry() { touch "$work_here/slow_steps.so.go"; }
take_time() { rm -f "$work_here/slow_steps.so.go"; }
# lasts: leaves in $lasts such a training, that goes on until it is ended.
lasts() {
    slow_steps
    lasts="$slow $quick --data $pictures --batch-size 4 --epochs 1000"
}

# begin CMD…: runs CMD on the cluster in the background, until `finish`; its output goes to $work_here/out and err, where
# nothing of an earlier one is left.
begin() {
    : >"$work_here/out"
    sandbox_run "$@" >"$work_here/out" 2>"$work_here/err" &
    began=$!
}

# finish: waits for it; leaves $out, $err, $status and $seconds since `mark`.
finish() {
    wait "$began"
    status=$?
    seconds=$((SECONDS - marked))
    out=$(cat "$work_here/out")
    err=$(cat "$work_here/err")
}

mark() { marked=$SECONDS; }

# wait_for COMMAND…: until it succeeds, at most 30 s.
wait_for() {
    local tries
    for ((tries = 0; tries < 300; tries++)); do
        "$@" && return 0
        sleep 0.1
    done
    return 1
}

trains() { grep -q '^Epoch 1/' "$work_here/out"; }

# processes PROGRAM: the pids of this test's processes that run it.
processes() {
    local file
    for file in $(grep -lsF "$work" /proc/[0-9]*/cmdline); do # by one process: a run may end while others look through a busy machine
        [[ $(readlink "${file%/cmdline}/exe") == */$1 ]] && basename "${file%/cmdline}"
    done
}

# rank_pid RANK: the process of that rank.
rank_pid() {
    local pid
    for pid in $(processes hpc-train); do
        if grep -qszx "SLURM_PROCID=$1" "/proc/$pid/environ"; then echo "$pid"; fi
    done
}

none_left() { [ -z "$(processes hpc-train)" ]; }
none_drained() { ! sandbox_run sinfo --noheader --Node --format=%T | grep -qE 'drain|down|fail'; }

# number KEY FILE: the value of a key in a JSON file that has one key on a line.
number() { sed -n "s/^ *\"$1\": \(.*[^,]\),\{0,1\}\$/\1/p" "$2"; }
