#!/bin/bash
# options.t: what the command's options take: names from the tables that they come from, numbers in their ranges; what is mistyped
# is answered with what was meant, and what can be refused without data is refused before they are read.
# shellcheck disable=SC2154,SC2034

# shellcheck source=tests/build/lib.sh
. "$(dirname "$0")/lib.sh"
work=$(mktemp -d /tmp/hpc-train-options.XXXXXX)
at_exit "rm -rf '$work'"
first_pictures "$work/pictures"
export OMP_NUM_THREADS=1
train=$hpc_train
man=$top_srcdir/doc/man/hpc-train-fit.1
mapfile -t commands < <("$train" --help | sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) .*/\1/p')

# ---- names ----
# names_of OPTION: from the table that values are looked up in.
names_of() {
    "$train" fit "--$1=none-such" 2>&1 | sed -n 's/.*\(there are: \|must be \)//p' | sed 's/, and FILE.*//; s/ or / /; s/,//g'
}
# help_of COMMAND OPTION: its paragraph in --help, as one line.
help_of() {
    "$train" "$1" --help | awk -v option="--$2=" '
        /^      --/ { on = index($0, option) }
        /^$/ { on = 0 }
        on { sub(/^ +/, ""); printf "%s ", $0 }'
}
man_of() { # OPTION: its paragraph in the man page, with what is listed below it
    sed 's/\\-/-/g; s/\\f[BIR]//g' "$man" | awk -v option="--$1" '
        /^\.S[HS]/ { on = 0 }
        /^\.TP/ { item = 1; next }
        item && /^\.B[IR]* --/ { on = $2 == option || index($0, option ",") }
        { item = 0 }
        on { printf "%s ", $0 }'
}
for option in model optimizer strategy hybrid-form precision device comm wire scale lr-scaling schedule loss metrics; do
    names=$(names_of "$option")
    ok "$([[ $names == *\ * ]]; echo $?)" "--$option has names: $names"
    help=$(help_of fit "$option")
    page=$(man_of "$option")
    for name in $names; do
        like " ${help//[,;:()]/ }" " ${name}[ .[]" "--help has --$option $name"
        like " ${page//[^a-z0-9_-]/ } " " $name " "the man page has it, too"
    done
done

# ---- numbers ----
# Each option of each command is of one of two kinds by what its value is called; a new kind has to find its place here.
words='auto\|FILE.json|FILE.csv|NAME|NAME\|FILE|FILE.prom|FILE|FILE\|measured|PATH|DIR|LIST|HOW|synthetic|epoch\|N\|Ns\|Nm|auto\|never\|PATH|powersgd:RANK\|topk:SHARE|METRIC|METRIC:KEY=VALUE,...|METRIC=VALUE|stop\|resume|auto\|min\|max|PATTERN|PATTERN=FACTOR|L,B\|measured'
numbers='N|N\|auto|X|F|H|K|M|S|STEPS|0\|1\|2|WxH|JOB|PORT'
# refused_number COMMAND OPTION VALUE: with 64, and the range.
refused_number() {
    capture "$train" "$1" "--$2=$3"
    [ "$status" = 64 ] || { fault="$1 --$2='$3' ends with $status: $err"; return 1; }
    [[ $err =~ --$2:\ .*(from\ [-0-9.e+]+\ to\ [-0-9.e+]+|1\ to\ [0-9]+\ each|the\ value\ is\ empty) ]] ||
        { fault="$1 --$2='$3' does not say the range: $err"; return 1; }
}
# An option gets every fourth of these, each option others; all of them in check-long.
no_numbers=('' ' 5' '5 ' 5x x nan -nan inf -inf -1 1e999 -1e999 99999999999999999999 0x10 '5,5' '5 6' '٣')
[ -n "${HPC_TRAIN_LONG-}" ] && every=1 || every=4
count=0 fault=
for command in "${commands[@]}"; do
    [ "$command" != data ] && [ "$command" != checkpoint ] || continue
    while IFS='=' read -r option value; do
        option=${option%[}
        option=${option#--}
        value=${value%]}
        if [[ $value =~ ^($words)$ ]]; then continue; fi
        ok "$([[ $value =~ ^($numbers)$ ]]; echo $?)" "$command --$option=$value is a number" ||
            diag "value '$value' is none of $numbers: add it to numbers or words"
        count=$((count + 1))
        fault=
        for ((i = every == 1 ? 0 : count % every; i < ${#no_numbers[@]}; i += every)); do
            refused_number "$command" "$option" "${no_numbers[i]}" || break
        done
        ok "$([ -z "$fault" ]; echo $?)" "$command --$option: not a number, or out of range: an error" || diag "$fault"
        [[ $err =~ a\ whole\ number\ from\ ([0-9]+)\ to\ ([0-9]+) ]] || continue
        least=${BASH_REMATCH[1]} most=${BASH_REMATCH[2]} fault=
        refused_number "$command" "$option" $((least - 1))
        # beyond what bash counts to, what is refused above is enough
        [ "$most" = 9223372036854775807 ] || refused_number "$command" "$option" $((most + 1))
        ok "$([ -z "$fault" ]; echo $?)" "$command --$option: accepts $least to $most only" || diag "$fault"
    done < <("$train" "$command" --help | grep -oE -- '^ {1,8}(-.,)? *--[a-z][a-z-]*\[?=[^ ]+' | sed 's/^[^-]*//; s/,$//')
done
ok "$([ $count -gt 40 ]; echo $?)" "$count options were tried"
parts_refused() { # OPTION=VALUE…: numbers within values
    local value
    for value; do
        capture "$train" fit "--$value"
        is "$status" 64 "$value is refused"
        like "$err" "^hpc-train: --${value%%=*}[:=]" "the error names the option"
    done
}
parts_refused schedule=step:nan schedule=step:-1 'schedule=step: 3' schedule=step:0x3 schedule=step:3:2 schedule=exponential:inf \
    schedule=exponential:0 schedule=staircase:0.5:0 schedule=cosine:2 schedule=polynomial:0 schedule=polynomial:1:1e9 \
    schedule=constant:1 compress=powersgd:0 compress=powersgd:257 compress=topk:0 compress=topk:nan compress=topk:1.1 \
    augment=crop:0 augment=crop:-1 augment=crop:9999999999999 \
    augment=crop augment=turn:1 augment=rotation augment=rotation: augment=rotation:1.1 augment=rotation:-0.1 augment=zoom:nan \
    augment=translation:1.5 augment=translation augment=contrast:2 augment=contrast:0x1 augment=rand-augment:2 augment=rand-augment:17:0.5 augment=rand-augment:2:1.5 \
    augment=rand-augment:2.5:1 augment=rand-augment:2: augment=mixup:-1 augment=mixup:inf augment=cutmix:101 augment=flip,cutmix:x \
    resize=4294967320x24 resize=24 resize=0x24 resize=24x24x3 \
    data=synthetic:0 data=synthetic:-5 data=synthetic: data=synthetic:1e3 data=synthetic:18446744073709551617 validation-data=synthetic:x

# ---- what is mistyped ----
meant() { # OPTION-OR-NAME WORD…
    local want=$1
    shift
    capture "$train" "$@"
    is "$status" 64 "$* is refused"
    is "$(wc -l <<<"$err")" 1 "the error is one line"
    like "$err" "did you mean $want\\?" "with the nearest option"
}
meant --model fit --modell mnist-cnn
meant --epochs fit --max_epochs 3
meant --epochs fit --epoch_count=3
meant --epochs fit -epochs 3
meant --epochs fit $'\xe2\x80\x93epochs' 3
meant --epochs fit epochs=3
meant --batch-size fit --train-batch-size 3
meant --n-gpus fit --num_gpus 2
meant --n-gpus fit --gpus 2
meant --n-gpus fit --ngpus=2
meant --validation-data fit --val_data x
meant --learning-rate fit --learningrate 0.1
meant --nodes plan --nodse 3
meant --weights evaluate --wieghts x
meant --steps bench --step-count 3
meant --admin info --adminn
meant fit train
meant evaluate evaluat
meant --version --versoin
meant --batch-size fit --bs 3
meant --weight-decay fit --wd 1e-4
meant multi-worker-mirrored fit --strategy MultiWorkerMirroredStrategy
meant mnist-cnn fit --model mnistcnn
meant resnet50v2 fit --model ResNet50V2
meant resnet101v2 fit --model resnet101
meant adam fit --optimizer Adam
meant local-sgd fit --strategy local_sgd
meant mirrored fit --strategy mirored
meant columns fit --strategy hybrid --hybrid-form column
meant bf16 fit --precision bf16-mixed
meant cosine fit --schedule cosin
meant symmetric fit --scale sym
meant linear fit --lr-scaling lin
meant huber fit --loss hubert
meant recall fit --metrics precision,recal
meant auc evaluate --metrics ac
capture "$train" fit --wandb_project x
is "$status" 64 "a word similar to none is an error"
like "$err" "unknown option '--wandb_project'; hpc-train fit --help lists" "is answered with where the list is"
capture "$train" fit --data --epochs 3
like "$status $err" "^64 .*--data needs a value: --data=PATH; it is followed by the option --epochs" "an option is no other one's value"
capture "$train" fit --data= --epochs 3
like "$status $err" "^64 .*--data: the value is empty" "an empty value, as of an unset variable, is an error"
capture "$train" fit --epochs
like "$status $err" "^64 .*--epochs needs a value: --epochs=N" "a missing value at the end is an error"
capture "$train" fit --nesterov=yes
like "$status $err" "^64 .*--nesterov takes no value" "a value for an option without one is an error"
for words in -h help 'help --help' 'data -h' 'data info --help' 'checkpoint -h' 'checkpoint list --help'; do
    # shellcheck disable=SC2086 # several words
    capture "$train" $words
    like "$status $out" "^0 Usage: hpc-train " "$words is help"
done
for words in checkpoint 'checkpoint list' 'checkpoint list a b' 'checkpoint export a' 'checkpoint remove a'; do
    # shellcheck disable=SC2086 # several words
    capture "$train" $words
    like "$status $err" "^64 hpc-train: checkpoint[: ].*give " "$words is answered with what to give"
done

# ---- the manual's pages: by a man of the test's own, or by --help where there is none ----
mkdir "$work/man"
cat >"$work/man/man" <<'END'
#!/bin/sh
[ "$1" != -w ] || exec test "$3" != hpc-train-plan
echo "page $*"
END
chmod 755 "$work/man/man"
for words in 'help fit' '--help fit'; do
    # shellcheck disable=SC2086 # several words
    capture env PATH="$work/man:$PATH" "$train" $words
    is "$status $out$err" "0 page 1 hpc-train-fit" "$words opens the page"
done
for command in "${commands[@]}"; do
    capture env PATH=/nowhere "$train" help "$command"
    is "$status $out$err" "0 $("$train" "$command" --help)" "help $command without man is its --help"
done
capture env PATH="$work/man:$PATH" "$train" help plan
is "$status $out$err" "0 $("$train" plan --help)" "help without the page, too"
capture "$train" help fitt
like "$status $err" "^64 hpc-train: unknown command 'fitt' .did you mean fit" "help of an unknown command is an error"
capture "$train" fit --device gpu
like "$status $err" "^64 .*--device: 'gpu' is unknown; GPUs are cuda" "a GPU is not taken for a processor"
capture "$train" fit "--$(printf 'x%.0s' {1..3000})=3"
is "$status" 64 "an option longer than any"
capture "$train" fit -h
like "$status $out" "^0 Usage: hpc-train fit" "-h is --help"

# ---- before the data ----
early() { # MESSAGE OPTION…: the data are not there, and that is not what is said
    local want=$1
    shift
    capture "$train" fit --model mnist-convnet --data "$work/none" "$@"
    is "$status" 64 "$* is refused before the data are looked for"
    like "$err" "$want" "the error says why"
}
early "strategy 'multi' is unknown .did you mean multi-worker-mirrored" --strategy multi
early "metrics precision,precision: precision is given twice" --metrics precision,precision
early "metrics is about validation data: it needs --validation-data" --metrics f1
early "confusion-matrix is about validation data: it needs --validation-data" --confusion-matrix "$work/matrix.csv"
for option in "--metrics f1" "--confusion-matrix $work/matrix.csv"; do
    # shellcheck disable=SC2086 # two words
    early "${option%% *} is not for --strategy parameter-server" $option --validation-data "$work/none" --strategy parameter-server
done
early "val_f1 needs --metrics f1" --stop-at val_f1=1 --validation-data "$work/pictures" --data "$work/pictures" --metrics auc
early "focal-gamma and --focal-alpha are for focal losses" --focal-gamma 2
early "huber-delta is for --loss huber" --huber-delta 2 --loss mean_squared_error
early "the loss has no label smoothing" --label-smoothing 0.1 --loss huber
early "loss kl_divergence needs probabilities, the outputs of mnist-cnn are logits" --loss kl_divergence --model mnist-cnn
early "hybrid-form is for strategy hybrid, not mirrored" --strategy mirrored --hybrid-form rows
early "local-sgd changes the results: give --allow-lossy" --strategy local-sgd
early "are for strategy parameter-server, not multi-worker-mirrored" --max-staleness 3
early "are for strategy parameter-server, not pipeline" --strategy pipeline --ps-sync
early "backup-workers needs --ps-sync" --strategy parameter-server --backup-workers 1
early "leave out --ps-sync" --strategy parameter-server --ps-sync --max-staleness 1
early "compress-warmup is for --compress" --compress-warmup 5
early "no layer of model mnist-convnet matches 'conv'; there are: conv2d, max_pooling2d" --freeze conv
early "no layer of model mnist-convnet matches ''" --freeze 'conv*,,dense'
early "all layers with weights are frozen .*nothing is left to train" --freeze 'conv*' --freeze dense
early "no layer of model mnist-convnet matches 'x=0'" --learning-rate-of x=0=0.5
early "'dense=0.0': to keep the weights of layers, give --freeze 'dense'" --learning-rate-of dense=0.0
early "'=0.1' should be PATTERN=FACTOR" --learning-rate-of =0.1
early "learning-rate-of: .*from 1e-30 to" --learning-rate-of dense=-1
early "skip-mismatch is for --weights" --skip-mismatch
early "adam has beta_1" --optimizer adam --momentum 0.5
early "momentum 1 must lie in" --momentum 1
early "cannot be shared among 4 replicas" --global-batch-size 3 --replicas 4
early "replicas goes with mirrored" --strategy hybrid --replicas 2
early "set the same number: give one" --n-gpus 2 --replicas 3
early "n-gpus 0 selects CPUs" --n-gpus 0 --device cuda
capture mpirun --allow-run-as-root --oversubscribe --bind-to none -n 2 "$train" fit --model mnist-convnet --data "$work/none" --strategy central-storage
is "$status" 64 "central-storage with two ranks is an error"
is "$(grep -c 'keeps the weights in one process, and there are 2 ranks' <<<"$err")" 1 "rank 0 prints it before data is read"

# ---- batches ----
fit() { # NAME OPTION…: its losses are then in $work/NAME/history.csv
    local name=$1
    shift
    capture "$train" fit --model mnist-convnet --data "$work/pictures" --epochs 2 --log-dir "$work/$name" --summary-json "$work/$name.json" "$@"
}
loss() { cut -d, -f 4 "$work/$1/history.csv" | tail -n 2 | paste -s; }
fit whole --batch-size 256
is "$status" 0 "a batch of all 256 pictures" || diag "$err"
unlike "$out" "larger than the data set" "is not reported"
fit larger --batch-size 1000000
is "$status" 0 "a batch larger than the data set is accepted" || diag "$err"
like "$out" "a batch of 1000000 is larger than the data set: an epoch is one step of all 256" "is reported as one step of all samples"
is "$(loss larger)" "$(loss whole)" "with Keras' loss"
fit auto --batch-size auto --replicas 2 --steps-per-epoch 1
like "$status $out" "^0 batch size (32|64|128|256) takes" "auto chooses a batch size" || diag "$err"
fit again --batch-size 512 --steps-per-epoch 1
like "$out" "a batch of 512 is larger than the data set: each sample is 2.0 times in a step" "with steps per epoch, samples repeat"

# ---- the course's line ----
fit course --batch_size 64 --n_gpus 2 --device cpu
is "$status" 0 "--batch_size 64 --n_gpus 2" || diag "$err"
like "$out" "1 rank of 2 replicas, global batch 64" "are two replicas with one batch"
like "$out" "learning rate times 2, the number of GPUs" "and the learning rate doubles, which is printed"
like "$(cat "$work/course.json")" '"learning_rate": 0.02,' "and saved"
fit twice --batch-size 64 --learning-rate 0.02
is "$(awk -v a="$(loss course | cut -f 2)" -v b="$(loss twice | cut -f 2)" 'BEGIN { d = a - b; print d * d < 1e-8 }')" 1 \
    "which trains as one replica with that rate does"
fit none --batch-size 64 --n-gpus 2 --device cpu --lr-scaling none
like "$(cat "$work/none.json")" '"learning_rate": 0.01,' "--lr-scaling none leaves the rate"
fit global --global-batch-size 64 --n-gpus 2 --device cpu
like "$(cat "$work/global.json")" '"learning_rate": 0.01,' "a global batch does not scale the learning rate"
fit zero --batch-size 64 --n_gpus 0
is "$status" 0 "--n_gpus 0 selects CPUs" || diag "$err"
if ! "$train" info | grep -q "^gpu.*cuda 0"; then
    fit gpu --batch-size 64 --n_gpus 1
    [ "$status" = 0 ] || like "$status $err" "^78 .*take --device cpu" "GPUs that are asked for and not there are not replaced in silence"
fi

# ---- alone in a job ----
in_job() { # NODES TASKS COMMAND…
    capture env SLURM_JOB_ID=7 SLURM_JOB_NUM_NODES="$1" SLURM_NTASKS="$2" "${@:3}" "$train" fit --model mnist-convnet \
        --data "$work/pictures" --steps-per-epoch 1 --verbose 0
    is "$status" 0 "a job of $1 nodes with $2 tasks" || diag "$err"
}
in_job 4 4
is "$(grep -c "one process, on one of this job's 4 nodes: .* start it with srun" <<<"$err")" 1 "without a launcher: a warning about the single process"
in_job 1 8
like "$err" "one process, though this job has 8 tasks" "also on one node"
in_job 1 1
is "$err" "" "a job of one task is what it wants"
in_job 4 4 env SLURM_STEP_ID=4294967290 SLURM_STEP_NODELIST=n0
like "$err" "one process, on one of this job's 4 nodes" "salloc's shell on a node is no step of srun"
in_job 4 4 env SLURM_STEP_ID=3 SLURM_STEP_NODELIST=n0
is "$err" "" "no warning in a step of srun with one task"
capture env WORLD_SIZE=4 "$train" fit --model mnist-convnet --data "$work/pictures" --steps-per-epoch 1 --verbose 0
like "$err" "one process by itself, though WORLD_SIZE .of torchrun. is 4" "a warning under other launchers"
in_job 4 4 env PRTE_MCA_ras=^slurm PRTE_MCA_plm=^slurm mpirun --allow-run-as-root -n 1 # Open MPI 6 would ask Slurm for job 7
unlike "$err" "one process" "no warning if one process was requested"
# ---- weights of classes ----
# weights_say STATUS TEXT WANT: of a file with this text.
weights_say() {
    echo "$2" >"$work/weights.json"
    capture "$train" fit --model mnist-cnn --data "$work/pictures" --steps-per-epoch 1 --verbose 0 --class-weight "$work/weights.json"
    like "$status $err" "^$1 .*--class-weight: $work/weights.json: $3" "'$2' is refused"
}
weights_say 65 '{"0": -1}' 'the weight of class "0" should be a number'
weights_say 65 '{"10": 1}' '"10" is neither .* from 0 to 9'
weights_say 65 '[1]' 'expected an object'
weights_say 65 '{"0": 1' 'line '
capture "$train" fit --model mnist-cnn --data "$work/pictures" --class-weight "$work/no-weights.json"
like "$status $err" "^66 .*--class-weight: .*$work/no-weights.json" "a file that is not there is one"
capture "$train" fit --model mnist-cnn --data "$work/pictures" --class-weight auto --loss huber --steps-per-epoch 1 --verbose 0
is "$status" 0 "several outputs are classes, whatever the loss" || diag "$err"

done_testing
