#!/bin/bash
# top.t: hpc-train top on files of a run: the plain form, and on a terminal (util-linux' script), which is given back whatever
# ends it.
# shellcheck disable=SC2034,SC2154,SC2016

# shellcheck source=tests/build/lib.sh
. "$(dirname "$0")/lib.sh"
work=$(mktemp -d /tmp/hpc-train-top.XXXXXX)
at_exit "rm -rf '$work'"
export LC_ALL=C
unset NO_COLOR
top=("$top_builddir/hpc-train" top)
mkdir "$work/run" "$work/run/logs" "$work/none" "$work/bin"
cd "$work" || exit

# status STATE TIME STEP: a status.json.
status() {
    cat <<END
{"format":1,"time":$2,"state":"$1","job":"123","model":"mnist-cnn","workers":2,"epoch":2,"epochs":4,"step":$3,"steps":100,
"loss":0.25,"accuracy":0.9,"val_loss":0.3,"val_accuracy":0.8,"learning_rate":0.01,"step_ms":20.0,"images_per_second":6400.0,
"seconds_left":100.0,"job_ends":$((${2} + 50)),"losses":[1.0,0.5,null,0.25],"ranks":[
{"rank":0,"node":"node0","step_ms":20.0,"wait_ms":4.0,"input_ms":1.0,"memory_mb":812.0,"gpu":null},
{"rank":1,"node":"no\u001b[2Jde","step_ms":20.0,"wait_ms":10.0,"input_ms":0.0,"memory_mb":640.0,"gpu":0.5}]}
END
}
now() { date +%s; }

# ---- not a terminal ----
status finished 1700000000 50 >run/status.json
plain="mnist-cnn, 2 ranks, job 123: finished
 37 % [===============                         ]
epoch 2/4, step 50/100
loss      0.2500     #,?_
accuracy  0.9000
val_loss 0.3000, val_accuracy 0.8000
20.0 ms per step, 6400 images/s, learning rate 0.01

 rank  node               ms/step   waits   input    memory     GPU
    0  node0                 20.0    20 %     5 %    812 MB       -
    1  no?[2Jde              20.0    50 %     0 %    640 MB    50 %"
capture "${top[@]}" run
is "$status $out$err" "0 $plain" "printed once, without escape sequences, also those of names"
is "$("${top[@]}" run/status.json)" "$plain" "the file itself"
is "$(cd run && "${top[@]}")" "$plain" "the working folder"
like "$(LC_ALL=C.UTF-8 "${top[@]}" run)" 'loss      0.2500     █▃[?]▁' "blocks where the locale is UTF-8"
status running "$(now)" 50 >run/status.json
like "$("${top[@]}" --once run)" ': running.*1:40 left, the job ends in (50|4[0-9]) s: too soon' "a run that the job's time limit cuts"
status running "$(($(now) - 45))" 50 >run/status.json
like "$("${top[@]}" run)" ': running, no news for (4[5-9]|[5-9][0-9]) s' "a run that has stopped writing"

# ---- what is not the state of a run ----
refused() { # STATUS MESSAGE NAME ARGUMENT…
    capture "${top[@]}" "${@:4}"
    is "$status" "$1" "$3"
    like "$err" "$2" "$3: the error says so"
}
refused 66 "none has no status.json: give the --log-dir of a run, or --job" "a folder without the file" none
mkdir -p runs/n1 "runs/n 2" alone/it
status running "$(now)" 50 >runs/n1/status.json
cp runs/n1/status.json alone/it
status running "$(now)" 50 >"runs/n 2/status.json"
touch -d '1 hour ago' runs/n1/status.json
# typed ARGUMENT…: the command that the message ends with does what it says
typed() {
    capture "${top[@]}" "$@"
    local hint=${err##*: hpc-train }
    like "$(PATH=$top_builddir:$PATH bash -c "hpc-train $hint" 2>&1)" "^mnist-cnn, 2 ranks" "top ${1-}: the hint, $hint, can be typed"
}
refused 66 "runs has no status.json.*; below it there are 2 runs, the newest: hpc-train top 'runs/n 2'$" "a folder of runs" runs
typed runs
refused 66 "; below it there is one: hpc-train top alone/it$" "a folder of one run" alone/
typed alone
cd runs || exit
typed
typed ./
cd ..
refused 66 "missing cannot be read" "a folder that is missing" missing
echo '{"epoch": 1, "step": 1, "loss": 0.5}' >none/status.json
refused 65 "none/status.json: it is not the state of a run" "a foreign file" none
head -c 200 run/status.json >none/status.json
refused 65 "none/status.json: it is not JSON" "a cut file" none
refused 64 "give one run, not run and none" "two runs" run none
refused 64 "both given" "a run and a job" run --job 123
refused 64 "'x' is not a whole number" "a job that is no number" --job x
refused 64 "once" "a mistyped option" --one

# ---- the run of a job ----
cat >bin/squeue <<END
#!/bin/sh
case \$* in *'--jobs 123 --format %A %Z') echo '123 $work/run' ;; *'--jobs 7 --format'*) echo '7 $work/run' ;; *) exit 1 ;; esac
END
chmod 755 bin/squeue
mv run/status.json run/logs/
is "$(PATH=$work/bin:$PATH "${top[@]}" --job 123 | sed 's/:.*//' | head -n 1)" "mnist-cnn, 2 ranks, job 123" "--job: below the job's working folder"
PATH=$work/bin:$PATH refused 66 "status.json of job 7: give the --log-dir" "a job without a run" --job 7
PATH=$work/bin:$PATH refused 74 "--job 5: squeue does not answer, or does not know the job: give the --log-dir of the run" "a job that squeue does not know" --job 5
mv run/logs/status.json run/

# ---- a terminal ----
command -v script >/dev/null || { skip "a terminal" "there is no script (util-linux)"; done_testing; exit; }
export TERM=xterm
enter=$'\e[?1049h\e[?25l' leave=$'\e[?25h\e[?1049l'
escape=$'\e'

# on_terminal COMMAND: as a bash of its own, on a terminal of 24 lines of 80 columns; what it shows comes to the file `shown`,
# and what is written to descriptor 7 are keys.
on_terminal() {
    rm -f keys shown pid before after
    mkfifo keys
    # shellcheck disable=SC2094
    limit 120 script -qefc "bash -c 'stty rows 24 cols 80; tty >tty; stty -g >before; $1; stty -g >after'" /dev/null <keys >shown 2>&1 &
    terminal=$!
    exec 7>keys
}
# until_shown TEXT: until the terminal has shown it, or is gone.
until_shown() { until grep -qF -e "$1" shown 2>/dev/null || ! kill -0 $terminal 2>/dev/null; do sleep 0.05; done; }
ended() { wait $terminal; exec 7>&-; }
# given_back NAME: the last sequence leaves the other screen and shows the cursor, and keys are as before.
given_back() {
    like "$(cat shown)" "[?]1049h.*[?]25h$escape\[[?]1049l[^$escape]*$" "$1: the terminal is given back"
    is "$(cat after)" "$(cat before)" "$1: keys are as before"
}
run_top='sh -c "echo \$\$ >pid; exec '"$top_builddir"'/hpc-train top run"; echo "status $?" >ended'

status running "$(now)" 50 >run/status.json
on_terminal "$run_top"
until_shown "step 50/100"
status running "$(now)" 51 >new && mv new run/status.json
until_shown "step 51/100"
like "$(cat shown)" "step 51/100" "it is drawn again when the file is replaced"
like "$(cat shown)" "$escape\[31m1:40 left, the job ends in .*too soon$escape\[0m" "what will not fit is red"
unlike "$(cat shown)" "$escape\[2J" "names send no escape sequences"
head -c 100 run/status.json >new && mv new run/status.json
until_shown "it is not JSON"
like "$(tail -n 5 shown)" "it is not JSON" "a cut file is said"
mv run/status.json .
until_shown "status.json cannot be"
stty rows 9 cols 30 <"$(cat tty)"
until_shown "mnist-cnn, 2 ranks, job 123: ${escape}[32mr${escape}[0m"
like "$(cat shown)" "cannot be.*mnist-cnn, 2 ranks, job 123: $escape\[32mr$escape\[0m" "the state before stays, in the new size"
printf q >&7
ended
is "$(cat ended)" "status 0" "q ends it"
given_back "q"
mv status.json run/
status running "$(now)" 50 >run/status.json

for signal in INT TERM HUP; do
    on_terminal "$run_top"
    until_shown "step 50/100"
    kill -$signal "$(cat pid)"
    ended
    is "$(cat ended)" "status $(case $signal in INT) echo 0 ;; TERM) echo 143 ;; HUP) echo 129 ;; esac)" "SIG$signal ends it"
    given_back "SIG$signal"
done

on_terminal "set -m; $run_top; stty -g >stopped; for i in {1..200}; do grep -q '1049l' shown && break; sleep 0.05; done; cp shown shown.stopped; fg; echo \"status \$?\" >ended"
until_shown "step 50/100"
kill -TSTP "$(cat pid)"
until [ -e shown.stopped ] || ! kill -0 $terminal 2>/dev/null; do sleep 0.05; done
is "$(cat ended)" "status 148" "SIGTSTP stops it"
is "$(cat stopped)" "$(cat before)" "with the keys as before"
like "$(cat shown.stopped)" "[?]25h$escape\[[?]1049l[^$escape]*$" "and the terminal given back"
until [ "$(grep -cF -e "$enter" shown)" -ge 2 ] || ! kill -0 $terminal 2>/dev/null; do sleep 0.05; done
printf q >&7
ended
is "$(cat ended)" "status 0" "after that it goes on, until q"
given_back "SIGTSTP and q"

export NO_COLOR=1
on_terminal "$run_top"
until_shown "too soon"
printf q >&7
ended
unlike "$(cat shown)" "$escape\[[0-9;]*m" "NO_COLOR: no colours"
like "$(cat shown)" "[?]1049h" "NO_COLOR: it is still redrawn"
unset NO_COLOR
TERM=dumb on_terminal "$run_top"
ended
unlike "$(cat shown)" "$escape" "TERM=dumb: no escape sequences"
is "$(cat ended)" "status 0" "TERM=dumb: printed once"
on_terminal "${run_top/top run/top --once run}"
ended
unlike "$(cat shown)" "$escape" "--once: no escape sequences"
like "$(cat shown)" "step 50/100" "--once: the state"
done_testing
