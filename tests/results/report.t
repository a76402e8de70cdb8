#!/bin/bash
# report.t: hpc-train report: form and numbers of its pages, tables and pictures, foreign text, files that are cut, missing or
# other programs', who can read what it writes, and --watch.
# shellcheck disable=SC2034,SC2154

# shellcheck source=tests/build/lib.sh
. "$(dirname "$0")/../build/lib.sh"
command -v python3 >/dev/null || skip_all "there is no python3"
work=$(mktemp -d /tmp/hpc-train-report.XXXXXX)
at_exit "rm -rf '$work'"
cd "$work" || exit
export OMP_NUM_THREADS=1 GOMP_SPINCOUNT=0 LC_ALL=C.UTF-8 TZ=UTC
lib() { python3 "$top_srcdir/tests/results/report.py" "$@"; }
report() { limit 60 "$top_builddir/hpc-train" report "$@"; }
make_run() { lib make "$@"; }
well_formed() { is "$(lib check "$1" 2>&1)" "" "${2:-$1}: its form"; }
column() { cut -f "$1" | tail -n +2; }

# ---- one run, of fit ----
limit 120 "$top_builddir/hpc-train" fit --data synthetic:256 --validation-data synthetic:64 --model mnist-convnet --log-dir fit --epochs 3 --batch-size 16 \
    --verbose 0 --summary-json fit.json
capture report fit
is "$status $out" "0 " "one run: report.html is written"
well_formed report.html
# of_keras COLUMN: a column of history.csv as Keras prints numbers, without the module under test
of_keras() { awk -F, -v name="$1" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) c = i; next }
    { x = $c < 0 ? -$c : $c; printf (x > 0 && x <= 1e-3) ? "%.4e\n" : "%.4f\n", $c }' "$2/history.csv"; }
i=2
for name in loss accuracy val_loss val_accuracy; do
    is "$(lib table report.html "By epoch" | column $i)" "$(of_keras $name fit)" "the table has history.csv's $name"
    i=$((i + 1))
done
report fit -o fit.csv && report fit --format md -o - >fit.md
is "$(cut -d, -f2,4 fit.csv | tail -n +2)" "$(awk -F, 'NR > 1 { print $4 "," $6 }' fit/history.csv)" "CSV: a row an epoch, with all digits"
is "$(awk -F'|' '/^\| [123] \|/ { gsub(/ /, ""); print $3 }' fit.md)" "$(of_keras loss fit)" "Markdown: the same numbers"
capture report fit.json -o -
like "$out" "images/s" "a --summary-json file is a run, too"
is "$(report fit.json --format csv -o - | cut -d, -f 1,2,7 | tail -1)" "fit.json,mnist-convnet,1" "without epochs its CSV has a row of the run"
is "$(report fit -o - --format html | cmp - report.html)" "" "- is standard output"
limit 120 "$top_builddir/hpc-train" fit --data synthetic:256 --model mnist-convnet --log-dir once --epochs 1 --batch-size 16 --verbose 0
report once -o once.html
like "$(<once.html)" "Loss by step" "one epoch: curves by step"
is "$(lib table once.html "By step" | column 3 | sed -n '1p;$p')" \
    "$(sed -nE '1s/.*"loss": ([0-9.]+).*/\1/p;$s/.*"loss": ([0-9.]+).*/\1/p' once/metrics.jsonl | xargs printf '%.4f\n')" "with metrics.jsonl's losses"
well_formed once.html

mkdir others
printf 'epoch,loss,val_loss,iou,val_iou,note,lr\n0,1,2,0.25,0.125,good,0.1\n1,0.5,1,0.75,0.5,,0.05\n' >others/history.csv
report others -o others.html
is "$(lib table others.html "By epoch" | cut -f 1,3-6)" $'epoch\tiou\tlr\tval. loss\tval. iou
1\t0.2500\t0.1000\t2.0000\t0.1250
2\t0.7500\t0.0500\t1.0000\t0.5000' "columns of other names are metrics, too"
like "$(<others.html)" ">iou by epoch</text>" "and drawn"
well_formed others.html "other columns"
is "$(report others --format csv -o - | cut -d, -f 1,8-)" $'epoch,iou,lr,val_iou\n1,0.25,0.1,0.125\n2,0.75,0.05,0.5' "and in the CSV"
report others fit -o several-others.html
is "$(lib table several-others.html "Validation iou by epoch" | column 2 | paste -sd' ')" "0.1250 0.5000 –" "of several runs those that have them are drawn"

# ---- ranks ----
make_run slow workers=4 nodes=2 slow=2 epochs=2
capture report slow -o slow.html
is "$status" 0 "a run with all files"
like "$err" "Slow: rank 2 on node1 \(15.0 ms\).*1.3 times the median of the others, 10.0 ms" "the slow rank is named with its node"
well_formed slow.html
is "$(lib table slow.html "By rank" | sed -n 4p)" $'2\tnode1\t16.0\t0.500\t10.0\t3.00\t1.00\t1.00\t0.500\t102\tslow' "where its time goes"
like "$(<slow.html)" "2 · node1: forward 10.0" "bars have tooltips"
like "$(lib table slow.html "$(($(grep -c '<table' slow.html) - 1))")" "command.hpc-train fit --data 'my data'.*seed.7.*2 nodes.node0, node1" "settings"
{ cat slow/pace.jsonl; sed '1!d;s/"forward_ms": \[5/"forward_ms": [7/;s/"step_ms": \[16/"step_ms": [18/' slow/pace.jsonl; } >again
mkdir resumed && cp slow/run.json resumed && cp again resumed/pace.jsonl
report resumed -o resumed.html 2>/dev/null
is "$(lib table resumed.html "By rank" | sed -n '2p' | cut -f 5)" 7.00 "of a step that was done again the later line counts"
mkdir absent && cp slow/run.json absent && sed -E 's/, [0-9.]+\]/, null]/g' slow/pace.jsonl >absent/pace.jsonl
capture report absent -o absent.html
is "$(lib table absent.html "By rank" | sed -n 5p | cut -f 1,3)" $'3\t–' "a worker that was never there has no times" || diag "$err"
like "$err" "Slow: rank 2 .*the median of the others, 10.0 ms" "and is no measure for others"
sed -E '1s/, [0-9.]+\]/, null]/g' slow/pace.jsonl >absent/pace.jsonl
report absent -o absent.html 2>/dev/null
is "$(lib table absent.html "By rank" | sed -n 5p | cut -f 3,5)" "$(lib table slow.html "By rank" | sed -n 5p | cut -f 3,5)" \
    "the means of one that came late are over its own steps"
make_run many workers=512 nodes=64 slow=77
report many -o many.html 2>/dev/null
well_formed many.html "512 ranks"
is "$(grep -c 'Of 512 ranks the 19 slowest and the 4 fastest' many.html)" 1 "512 ranks: the slowest and the fastest are drawn"
is "$(lib table many.html "By rank" | wc -l)" 513 "the table has all"
make_run long epochs=1000
report long -o long.html
well_formed long.html "1000 epochs"
is "$(lib table long.html "By epoch" | wc -l)" 1001 "1000 epochs: the table has all"
ok "$([ "$(wc -c <long.html)" -lt 400000 ]; echo $?)" "and the page stays small"

# ---- several runs ----
for n in 1 2 4 8; do make_run w$n workers=$n epochs=8; done
report w1 w2 w4 w8 -o several.html --beside "$top_srcdir/doc/results/published.csv"
well_formed several.html
is "$(lib table several.html 0 | cut -f 1,3,4 | sed -n 4p)" $'w4\t4\t256' "a row a run"
is "$(lib table several.html 0 | column 11 | paste -sd' ')" "1.00 1.80 3.25 5.86" "speed-up: images/s beside the run with the fewest workers"
is "$(lib table several.html 0 | column 12 | paste -sd' ')" "1.00 0.901 0.812 0.732" "efficiency"
is "$(lib table several.html "Loss by epoch" | column 3)" "$(of_keras loss w2)" "the curves' numbers are in tables"
for title in "Time of an epoch" "Images per second" Speed-up Efficiency; do like "$(<several.html)" ">$title</text>" "chart: $title"; done
is "$(lib table several.html "Seconds of the whole" | sed -n '3p' | cut -f 1,3,7)" $'2\t422.2 / 0.0121 / 0.9968\t131.9 / 0.0127 / 0.9966' "--beside: the published figures"
like "$(lib table several.html "Seconds of the whole" | sed -n '2p' | cut -f 2)" "^162 / 0.0125 / 0.9958$" "beside the runs' own"
mkdir bare bare-once
cp fit/{history.csv,metrics.jsonl} bare
cp once/{history.csv,metrics.jsonl} bare-once
report bare bare-once -o two.html
like "$(<two.html)" "Comparison of 2 runs" "runs without speeds are compared"
unlike "$(<two.html)" "Beside other figures|Speed by workers" "without charts of nothing"
is "$(report w1 w2 --format csv -o - | python3 -c 'import csv,sys; print(*[(r["run"], r["workers"], r["model"]) for r in csv.DictReader(sys.stdin)])')" \
    "('w1', '1', 'mnist-cnn') ('w2', '2', 'mnist-cnn')" "CSV: a row a run"
report w1 ./w1 fit/../w2 -o same.html
is "$(lib table same.html 0 | column 1 | paste -sd' ')" "w1 ./w1 w2" "equal names are told apart by the path"
report w1 w1 -o same.html
is "$(lib table same.html 0 | column 1 | paste -sd,)" "w1,w1 (2)" "equal paths by a number"
"$top_builddir/hpc-train" plan --model mnist-cnn --nodes 1,2,4 --network 50us,1gbit --json plan.json >/dev/null
capture report w1 w2 w4 --plan plan.json -o planned.html
is "$(lib table planned.html predicted | cut -f 1 | paste -sd' ')" "workers 1 2 4" "--plan: predicted lines, with their table"
well_formed planned.html
capture report w1 w2 --plan fit.json
is "$status" 65 "--plan: another file is an error"
capture report w1 --beside fit.json
is "$status" 65 "--beside: another file is an error"
printf '# of\n# others\nworkers,a<b>,c\n1,2,\n2,3\n' >figures.csv
capture report w1 --beside figures.csv
like "$status $err" "^65 .*figures.csv, line 5: the first line is workers,SYSTEM" "a line without figures is named"
sed -i '5d' figures.csv
capture report w1 --beside figures.csv -o figures.html
is "$(lib table figures.html "Seconds of the whole" | cut -f 1,3,4)" $'workers\ta<b>\tc\n1\t2\t–' "one run can have figures beside it, too"
well_formed figures.html
like "$(lib words figures.html)" "of others" "with the words of the file"
capture report w1 --beside figures.csv -o figures.csv
is "$status" 64 "a file of figures is not replaced"
make_run other workers=1 model=resnet50
report other w1 -o models.html
is "$(lib table models.html 0 | column 11 | paste -sd' ')" "1.00 1.00" "runs of two models are not compared"

cp -r w2 hybrid2 && cp -r w4 hybrid4
sed -i 's/"strategy": "multi-worker-mirrored"/"strategy": "hybrid"/g' hybrid[24]/run.json
report w1 w2 w4 hybrid2 hybrid4 -o strategies.html
is "$(grep -oE '>(hybrid|multi-worker-mirrored)</text>' strategies.html | sort -u | wc -l)" 2 "strategies with as many workers are lines of their own"
limit 120 "$top_builddir/hpc-train" bench --model mnist-convnet --steps 4 --emulate --dilation 4 --summary-json dilated.json >/dev/null
report w1 dilated.json --format csv -o emulated.csv
is "$(python3 -c '
import csv, json
row, bench = list(csv.DictReader(open("emulated.csv")))[1], json.load(open("dilated.json"))
print(row["device"], row["seconds"], abs(float(row["images_per_second"]) / bench["images_per_second"] - 4) < 1e-6)')" "cpu, emulated  True" \
    "emulated computation is said, and its dilated time is not shown"

# ---- pictures ----
report slow -o one.svg 2>/dev/null && report w1 w2 -o several.svg
well_formed one.svg
well_formed several.svg
capture report slow -o one.png
is "$status" 64 "no other pictures than SVG"
report fit.json -o none.svg 2>err
is "$?" 65 "no chart: no picture"
is "$(lib contrast several.html 2>&1)" "" "contrast of colours, light and dark"

# ---- foreign text ----
evil='<script>alert(1)</script>"'\''&|,]]>'
make_run evil "model=$evil" "word=$evil" slow=1 state=stopped
mkdir -p "$evil" && cp evil/* "./$evil/"
printf 'not json <script>alert(2)</script>\n' >>"./$evil/pace.jsonl"
for run in evil "./$evil"; do
    report "$run" -o evil.html 2>/dev/null
    well_formed evil.html "foreign text"
    is "$(grep -c '<script' evil.html)" 0 "no element of a foreign name"
    like "$(lib words evil.html)" "<script>alert" "it is shown as text"
    report "$run" -o evil.svg 2>/dev/null
    well_formed evil.svg "foreign text in a picture"
done
mkdir scripted && printf 'epoch,loss,<script>x</script>\n0,1,2\n1,1,2\n' >scripted/history.csv
report scripted -o scripted.html
well_formed scripted.html "a column of foreign text"
is "$(grep -c '<script' scripted.html)" 0 "as text there, too"
report evil w1 -o evils.html 2>/dev/null
well_formed evils.html "foreign text in a comparison"
is "$(grep -c '<script' evils.html)" 0 "as text there, too"
unlike "$(report evil --format md -o - 2>/dev/null)" "<script" "and in Markdown"
is "$(report evil w1 --format csv -o - 2>/dev/null | python3 -c 'import csv,sys; print(next(csv.DictReader(sys.stdin))["model"])')" "$evil" "and in CSV, where it is read back"
make_run control "word=$(printf '\033]0;x\007\302\233')"
printf 'epoch,loss\n0,1\n\033[2J\n' >control/history.csv
capture report control -o control.html
unlike "$out$err$(<control.html)" $'[\001-\010\013-\037]' "no control characters on the terminal or the page"
printf 'a\xff\xfeb' >bytes; mkdir "$(<bytes)" && cp once/history.csv "$(<bytes)/"
report "$(<bytes)" -o bytes.html
ok "$(iconv -f UTF-8 -t UTF-8 bytes.html >/dev/null 2>&1; echo $?)" "a name that is not UTF-8: the page is"

# ---- losses that are small, or no numbers ----
mkdir small
printf 'epoch,loss,accuracy\n0,0.00101,1\n1,0.001,0.5\n2,-0.0004,0\n3,2e9,1\n' >small/history.csv
report small -o small.html
is "$(lib table small.html "By epoch" | column 2 | paste -sd' ')" "0.0010 1.0000e-03 -4.0000e-04 2.0000e+09" "digits as Keras'"
is "$(lib table small.html "By epoch" | column 3 | paste -sd' ')" "1.0000 0.5000 0.0000 1.0000" "and none of zero"
mkdir nan
printf 'epoch,accuracy,learning_rate,loss\n0,0.1,0.01,2\n1,0.1,0.01,nan\n2,0.2,0.01,inf\n3,0.2,0.01,1\n4,0.2,0.01,0.5\n' >nan/history.csv
capture report nan -o nan.html
is "$status" 0 "NaN and infinite losses"
like "$err" "loss is not finite in 2 epochs, first in epoch 2" "are said"
is "$(lib table nan.html "By epoch" | column 2 | paste -sd' ')" "2.0000 nan inf 1.0000 0.5000" "and in the table"
is "$(grep -o 'd="M[^"]*"' nan.html | grep -c 'M.*M')" 1 "and a gap in the line"
well_formed nan.html

# ---- cut, missing, other programs' ----
# fails STATUS REGEX NAME RUN: nothing can be shown
fails() {
    capture report "$4" -o failed.html
    is "$status" "$1" "$3: $1"
    like "$err" "$2" "$3: the message"
    ok "$([ ! -e failed.html ]; echo $?)" "$3: no page"
}
mkdir empty foreign
fails 66 "empty has none of run.json, status.json, history.csv, metrics.jsonl and pace.jsonl" "an empty folder" empty
mkdir -p "runs/b/it's" && cp -r w1 runs/w1 && cp -r w1 runs/w10 && cp -r w1 runs/w2 && cp w1/history.csv "runs/b/it's"
fails 66 "runs has none of .*; below it there are 4 runs: hpc-train report 'runs/b/it'.''s' runs/w1 runs/w2 runs/w10$" "a folder of runs" runs
capture bash -c "hpc-train() { '$top_builddir/hpc-train' \"\$@\"; }; ${err##*4 runs: } -o typed.html"
is "$status $err$(grep -c "Comparison of 4 runs" typed.html)" "0 2" "the hint can be typed as it stands"
mkdir -p deep && mv runs/w10 deep/ && rm -r runs
fails 66 "deep has none of .*; below it there is one: hpc-train report deep/w10$" "a folder of one run" deep
mkdir crowd && for n in {1..12}; do mkdir "crowd/n$n" && : >"crowd/n$n/run.json"; done
fails 66 "; below it there are 12 runs, the first of them: hpc-train report crowd/n1 crowd/n2 .* crowd/n8$" "a folder of many" crowd
fails 66 "nowhere: there is no such file or folder" "no folder" nowhere
printf 'a,b\n1,2\n' >foreign/history.csv
printf '{"scripts": {}}' >foreign/run.json
fails 65 "foreign: nothing in it can be shown: run.json is not a run.json" "other programs' files" foreign
fails 65 "plan.json is neither a folder nor a file of --summary-json" "another JSON file" plan.json
: >nothing
fails 65 "nothing is neither" "an empty file" nothing
cp -r slow cut
for file in run.json history.csv pace.jsonl; do truncate -s -5 cut/$file; done
capture report cut -o cut.html
is "$status" 0 "cut files: what is left is shown"
like "$err" "run.json is not a run.json.*, or is cut" "run.json is named"
like "$err" "history.csv: line 3, the last, is cut" "the line of history.csv"
like "$err" "pace.jsonl: the last line is cut" "that of pace.jsonl"
like "$(lib words cut.html)" "run.json is not a run.json.*line 3, the last, is cut" "also on the page"
is "$(lib table cut.html "By epoch" | wc -l)" 2 "the whole epoch is there"
well_formed cut.html
sed -i '2s/0[.]2/x/' long/history.csv
capture report long -o long.html
like "$err" "history.csv: 1 line cannot be read, first line 2" "a damaged line is counted"
capture report nowhere w1 foreign -o some.html
is "$status" 0 "of several runs those that can be read are shown"
like "$err" "nowhere: there is no such.*foreign: nothing" "the others are said"
like "$(lib words some.html)" "nowhere: there is no such" "also on the page"
capture report w1 -o w1/history.csv
is "$status $(head -c 5 w1/history.csv)" "64 epoch" "a run's own file is not replaced"
like "$err" "is a file of a run" "that is the message"
capture report w1 -o /nonexistent/x.html
is "$status" 74 "a report that cannot be written: 74"
for wrong in "w1 -o x.pdf" "w1 --format pdf" "" "w1 -o" "w1 --watch --format md" "w1 --watch -o x.svg" "w1 --watch -o -" \
    "w1 --watch=8080" "w1 --formt md"; do
    # shellcheck disable=SC2086
    capture report $wrong
    is "$status" 64 "report $wrong: 64"
done
like "$err" "did you mean --format" "a mistyped option"

# ---- who can read it ----
chmod 755 "$work"
mkdir above && cp -r w1 above/run
ln -s above/run link
# readable MODE NAME [RUN...]: what this report can be read by
readable() {
    rm -f mode.html
    report "${@:3}" -o mode.html 2>/dev/null
    is "$(stat -c %a mode.html)" "$1" "readable as its run: $2"
}
readable 644 "by all" above/run
for file in run.json history.csv pace.jsonl; do
    chmod 600 above/run/$file
    readable 600 "$file by its owner alone" above/run
    chmod 644 above/run/$file
done
chmod 640 above/run/history.csv
readable 640 "a file by its group" above/run
chmod 644 above/run/history.csv
for modes in 700:600 750:640 711:644 705:604; do
    chmod "${modes%:*}" above/run
    readable "${modes#*:}" "a folder of mode ${modes%:*}" above/run
    chmod 755 above/run
    chmod "${modes%:*}" above
    readable "${modes#*:}" "a folder above it of mode ${modes%:*}" above/run
    readable "${modes#*:}" "the same through a link" link
    chmod 755 above
done
chmod 700 above
readable 600 "one of two runs by its owner alone" w1 above/run
chmod 755 above
report above/run -o mode.html && chmod 644 mode.html && chmod 700 above/run
report above/run -o mode.html
is "$(stat -c %a mode.html)" 600 "a page is replaced that all could read"
(umask 077 && rm mode.html && report w1 -o mode.html)
is "$(stat -c %a mode.html)" 600 "the umask counts, too"
for format in md csv svg; do
    report above/run -o mode.$format
    is "$(stat -c %a mode.$format)" 600 "$format as the page"
done
cp fit.json private.json && cp plan.json private-plan.json && chmod 600 private.json private-plan.json
readable 600 "a summary by its owner alone" private.json
readable 600 "a plan by its owner alone" w1 w2 --plan private-plan.json
chmod 600 figures.csv
readable 600 "figures beside it by their owner alone" w1 --beside figures.csv
chmod 755 above/run
if [ "$(id -u)" = 0 ]; then
    chmod 640 above/run/run.json && chgrp 12345 above/run/run.json
    readable 600 "a file by another group" above/run
    chmod 644 above/run/run.json
fi
if command -v setfacl >/dev/null && setfacl -m u:12345:--- above/run/run.json 2>/dev/null; then
    readable 600 "a file with an ACL" above/run
else
    skip "a file with an ACL" "setfacl does nothing here"
fi

# ---- a run under way, and --watch ----
make_run live workers=2 state=running epochs=2
printf '2,0.9' >>live/history.csv
capture report live -o live.html
is "$status $err" "0 " "a run under way: a line that is not complete yet is no error"
like "$(lib words live.html)" "Under way: epoch 3 of 8, step 120 of 469, some 12 min left" "where it is"
unlike "$(<live.html)" 'http-equiv="refresh"' "a page that nobody writes again does not reload itself"
# watch: the report of live, written again and again, until its first page is there
watch() {
    rm -f watched.html
    "$top_builddir/hpc-train" report live --watch -o watched.html >watch.out 2>watch.err &
    watcher=$!
    at_exit "kill $watcher 2>/dev/null"
    until [ -s watch.out ] || ! kill -0 $watcher 2>/dev/null; do sleep 0.05; done
}
# until_page REGEX
until_page() { until grep -q "$1" watched.html || ! kill -0 $watcher 2>/dev/null; do sleep 0.1; done; }
watch
is "$(<watch.out)" "watched.html: written every 5 s until the run has finished; Ctrl-C ends this" "--watch says what it does"
like "$(<watched.html)" 'http-equiv="refresh" content="5"' "its page reloads itself"
like "$(<watched.html)" '<details open>' "with nothing folded, which a reload would close"
well_formed watched.html "a page that reloads itself"
is "$(find /proc/$watcher/fd -lname 'socket:*' | wc -l)" 0 "--watch has no socket"
sed -i 's/"step": 120/"step": 130/' live/status.json
chmod 640 live/status.json
until_page "step 130 of 469"
is "$(tail -n 1 watched.html) $(stat -c %a watched.html)" "</html> 640" "it is written anew, whole, and readable as its run"
kill -INT $watcher
wait $watcher
is "$? $(<watch.err)$(grep -c 'http-equiv="refresh"' watched.html)" "0 0" "Ctrl-C ends it with 0, and a page that does not reload itself"
make_run live workers=2 state=stopped
watch
sed -i 's/"state": "stopped"/"state": "finished"/' live/run.json
wait $watcher
is "$? $(<watch.err)$(grep -c 'http-equiv="refresh"' watched.html)" "0 0" "one that is stopped is waited for; it ends when the run has finished"
like "$(lib words watched.html)" "Finished" "with the last state"
make_run live workers=2 state=running epochs=2
watch
mv live gone
wait $watcher
is "$?" 66 "a run's folder that is gone: 66"
like "$(<watch.err)" "live: there is no such file or folder" "which it says"
mv gone live
capture report w1 --watch -o watched.html
is "$status $err" "0 " "a run that has finished: one page"
done_testing
