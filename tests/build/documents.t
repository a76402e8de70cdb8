#!/bin/bash
# documents.t: programs, man pages, README, plugstack.conf and bash completion have the same options, variables and arguments.
# Commands of README and man pages are run; what needs a cluster is run without srun. Documents name files that exist.
# shellcheck disable=SC2154,SC2034,SC2016

# shellcheck source=tests/build/lib.sh
. "$(dirname "$0")/lib.sh"
export LC_ALL=C OMP_NUM_THREADS=1
work=$(mktemp -d /tmp/hpc-train-documents.XXXXXX)
at_exit "rm -rf '$work'"

# page NAME: a manual page's lines without fonts, as words.
page() { sed -e 's/\\f[A-Z]//g' -e 's/\\//g' -e 's/^\.[BIR][BIR]* //' -e 's/"//g' "$top_srcdir/doc/man/$1"; }
# headings NAME: the lines that something is explained under.
headings() { page "$1" | sed -n '/^\.TP/{n;p}'; }
options_in() { grep -o -e '--[a-z][a-z-]*' | sort -u; }
is_same() { is "$(diff <(echo "$1") <(echo "$2"))" "" "$3"; }
# within A B NAME: every line of A is one of B.
within() { is "$(comm -23 <(echo "$1") <(echo "$2"))" "" "$3"; }

# ---- how man shows them ----
for file in "$top_srcdir"/doc/man/*; do
    is "$(awk -f "$top_srcdir/tests/man.awk" "$file")" "" "${file##*/}: no text behind a macro that joins it"
done
while IFS= read -r line; do
    echo "$line" >"$work/page.1"
    awk -f "$top_srcdir/tests/man.awk" "$work/page.1" >"$work/found"
    is "$? $(wc -l <"$work/found")" "1 1" "found: $line"
done <<'END'
.IR earlier\- NAME . A folder of one run
.BR \-\-metrics for the run
.BR fit evaluate
.IR DIR , which all nodes share
.RB \-\-x ; see
.BI \-\-seed " N" of weights
.BR x ) and
.IR file (see below) for
END
cat >"$work/page.1" <<'END'
.IR NAME . JOB . STEP
.BI step: E1 , E2 ,...[: FACTOR ]
.IR PORT s.
.BR \-\-mode " " auto | min | max
.IR file " (or " index ", where the pictures have no names), " class " and " probability ;
.RI [ batch ][ height ][ width ],
.B two words
END
is "$(awk -f "$top_srcdir/tests/man.awk" "$work/page.1")" "" "joined on purpose, or with spaces"

# ---- the plugin: its table of options, the manual, README, completion ----
table=$(grep -o '{"hpc-train[a-z-]*",' "$top_srcdir/spank/options.c" | sed 's/{"\(.*\)",/--\1/' | sort -u)
like "$table" "--hpc-train-stage" "the table of options is found"
is_same "$table" "$(headings spank_hpc_train.8 | grep -e '^--' | options_in)" "spank_hpc_train(8) explains the plugin's options"
is_same "$table" "$(page spank_hpc_train.8 | sed -n '/^.SH SYNOPSIS/,/^.SH DESC/p' | options_in)" "and has them in its synopsis"
is_same "$table" "$(sed -n 's/^| `\(--hpc-train[a-z-]*\).*/\1/p' "$top_srcdir/README.md" | sort -u)" "README's table has them"
within "$(options_in <"$top_srcdir/etc/completion/hpc-train-slurm" | grep hpc-train)" "$table" "completion knows no other"
variables=$(tr -d '\n' <"$top_srcdir/spank/options.c" | grep -o '"HPC_TRAIN[A-Z_]*"' | tr -d '"' | sort -u)
is "$(wc -l <<<"$variables")" "$(wc -l <<<"$table")" "each option has a variable"
is_same "$variables" "$(page spank_hpc_train.8 | sed -n '/^.SH OPTIONS/,/^.SH ENV/{/^Environment:/{n;p}}' | sed 's/[^A-Z_].*//' | sort -u)" "which the manual names"
# values that are words, as srun --help shows them: all are in README's row and in the manual
while IFS=$'\t' read -r option values; do
    for value in $(tr '|' '\n' <<<"$values" | grep -o '^[a-z][a-z]*'); do
        like "$(grep "^| \`${option}[=[]" "$top_srcdir/README.md")" "[=|[]$value" "README: $option=$value"
        ok "$(page spank_hpc_train.8 | grep -qw -e "$value"; echo $?)" "spank_hpc_train(8): $option=$value"
    done
done < <(tr -d '\n' <"$top_srcdir/spank/options.c" | grep -o '{"hpc-train[a-z-]*", *"[^"]*"' | sed 's/{"\(.*\)", *"\(.*\)"/--\1\t\2/' | grep '[a-z]|[a-z]')

# ---- its arguments in plugstack.conf: the table of settings, the file's comments, the manual, the error's list ----
keys=$(grep -o '{"[a-z_]*", set_' "$top_srcdir/spank/settings.c" | cut -d '"' -f 2 | sort)
like "$keys" tmpdir "the table of settings is found"
is_same "$keys" "$(sed -n 's/^#   \([a-z_]*\)=.*/\1/p' "$top_srcdir/etc/plugstack.conf.d/hpc-train.conf.in" | sort)" "hpc-train.conf explains every argument"
is_same "$keys" "$(headings spank_hpc_train.8 | sed -n 's/^\([a-z_]*\)=.*/\1/p' | sort)" "and so does the manual"
is_same "$keys" "$(tr -d '\n' <"$top_srcdir/spank/settings.c" | grep -o "is not known: .* are\"" | grep -o '[a-z_]*=' | tr -d = | sort)" "a wrong one is answered with all of them"

# ---- the programs: --help and the manual ----
# same_options PAGE NAME HELP...: what the texts list is explained in the page, and nothing else.
same_options() {
    local listed
    listed=$(printf '%s\n' "${@:3}" | sed -n 's/^ \{1,8\}\(-[A-Za-z?], *\)\{0,1\}\(--[a-z][a-z-]*\).*/\2/p' | sort -u)
    like "$listed" "--" "$2 lists options"
    within "$listed" "$({ page "$1"; echo --help --usage; } | options_in)" "$1 has all that $2 lists"
    within "$(headings "$1" | grep -e '^-' | options_in)" "$(sort -u <<<"$listed"$'\n--version')" "and no other"
}
commands=$("$top_builddir/hpc-train" --help | sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) *\(.*\)/\1\t\2/p')
is_same "$commands" "$(page hpc-train.1 | sed -n 's/^hpc-train-\([a-z]*\)(1)\tT{$/\1/; T; N; s/\n/\t/p')" "hpc-train(1) lists the commands, as --help does"
while IFS=$'\t' read -r command summary; do
    like "$(page "hpc-train-$command.1")" "hpc-train-$command - $summary" "hpc-train-$command(1) has the name that --help has"
    help=$("$top_builddir/hpc-train" "$command" --help)
    is "$(tail -n 1 <<<"$help")" "Manual page: hpc-train help $command" "hpc-train $command --help says where the page is"
    case $command in
    data | checkpoint) ;; # they have no options
    *) same_options "hpc-train-$command.1" "hpc-train $command --help" "$help" ;;
    esac
done <<<"$commands"
same_options hpc-train-stage.1 "hpc-train-stage --help" "$("$top_builddir/hpc-train-stage" --help)" \
    "$("$top_builddir/hpc-train-stage" --out --help)"
for helper in hpc-train-stage hpc-train; do # completion offers what --help lists
    ok "$(grep -q -e "$helper.*--help" "$top_srcdir/etc/completion/$helper"; echo $?)" "completion of $helper asks --help"
done
# what hpc-train-check prints a line for
is_same "$(grep -oE '(right|wrong|check_file)\("[a-z_]*"' "$top_srcdir/spank/check/main.c" | cut -d '"' -f 2 | sort -u)" \
    "$(headings hpc-train-check.8 | tr -s ', ' '\n' | grep . | sort -u)" "hpc-train-check(8) explains every line"
# ---- layers: the table of Keras' classes, the manual, doc/layers.md ----
classes=$({ echo InputLayer; sed -n '/^static const hpct_keras_class classes/,/^};/s/^ \{4\}{"\([A-Za-z0-9]*\)",.*/\1/p' "$top_srcdir/nn/file/keras/layers.c"; } | sort)
like "$classes" Conv2D "the table of classes is found"
is_same "$classes" "$(page hpc-train-models.7 | sed -n '/^Layers: InputLayer/,/\.$/p' | sed 's/^Layers://; s/([^)]*)//g' | tr -s ', .' '\n' | grep . | sort)" \
    "hpc-train-models(7) has the classes of layers"
is_same "$classes" "$(sed -n 's/^| \([A-Za-z0-9]*\) | yes |.*/\1/p' "$top_srcdir/doc/layers.md" | sort)" "doc/layers.md says yes to them"
ok "$(grep '^| [A-Z]' "$top_srcdir/doc/layers.md" | cut -d '|' -f 2 | sort -fc; echo $?)" "and is in order"
within "$(printf ' %s \n' Conv3D LSTM Lambda | sort)" "$(sed -n 's/^|\([^|]*\)| no |.*/\1/p' "$top_srcdir/doc/layers.md" | sort)" "it names others, too"

# ---- files and tests that documents name ----
# is_program NAME: a test whose source has another name.
is_program() { grep -rqw --include=local.mk -e "${1//[^a-zA-Z0-9]/_}_SOURCES" "$top_srcdir/tests"; }
mapfile -t documents < <(cd "$top_srcdir" && printf '%s\n' README.md CONTRIBUTING.md CHANGELOG.md tests/README.md doc/*.md)
missing=()
for document in "${documents[@]}"; do
    folder=$(dirname "$top_srcdir/$document")
    while read -r link; do
        [ -e "$folder/$link" ] || missing+=("$document: link $link")
    done < <(grep -o '](\([^)#]*\)' "$top_srcdir/$document" | cut -c 3- | grep -v '^$\|://' | sort -u)
    while read -r name; do
        compgen -G "$top_srcdir/$name*" >/dev/null || is_program "$name" || missing+=("$document: $name")
    done < <(grep -oE '`(agent|base|debian|doc|etc|include|m4|nn|spank|tests)/[A-Za-z0-9_./-]+`' "$top_srcdir/$document" | tr -d '`' | sort -u)
    while read -r test; do
        [ -e "$top_srcdir/$test" ] || [ -e "$top_srcdir/$test.c" ] || is_program "$test" || missing+=("$document: TESTS $test")
    done < <(grep -o 'TESTS="[^"]*"' "$top_srcdir/$document" | cut -d '"' -f 2 | tr ' ' '\n' | sort -u)
done
is "${missing[*]}" "" "documents name files and tests that exist" || diag "${missing[@]}"

# ---- commands in README and man pages ----
# commands DOCUMENT: the lines of its code blocks, continuations joined; a script is one line that begins with "script ".
commands() {
    case $1 in
    *.md) awk '/^```/ { within = !within; on = within && $0 == "```"; if (on) print "block"; next } on' "$top_srcdir/$1" ;;
    *) sed -n '/^\.\(nf\|EX\)/,/^\.\(fi\|EE\)/p' "$top_srcdir/$1" |
        sed -e 's/^\.\(nf\|EX\)/block/' -e '/^\.\(fi\|EE\)/d' -e 's/\\-/-/g' -e 's/\\e/\\/g' ;;
    esac | awk '
        function out() { if (is_script) print "script " text; else printf "%s", lines; text = lines = ""; is_script = 0 }
        /^block$/ { out(); next }
        /^#!|^#SBATCH|^trap |^scontrol / { is_script = 1 }
        { text = text $0 "\001"; lines = lines $0 "\n" }
        END { out() }'
}
# hpc_train_part LINE: the hpc-train command in it, without srun and what is behind it; a model in the place of "...".
hpc_train_part() { grep -oE '(^| )hpc-train (fit|evaluate|predict|export|bench|plan|summary|info|data|check( |$))[^&;|>]*' <<<"$1" |
    sed "s/^ //; s/ \.\.\./ --model mnist-convnet/; s/ *#.*//; s|[$]SLURM_TMPDIR|$work|"; }
# runs LINE: hpc-train in $work, where small data sets have the names that documents use.
runs() {
    local words
    read -ra words <<<"$1"
    (cd "$work" && HPC_TRAIN_DATA=$work/mnist SLURM_TMPDIR=$work limit 120 "${launch[@]}" "$top_builddir/hpc-train" "${words[@]:1}") >"$work/out" 2>&1
}
# known_options LINE: the plugin's options in it are those of its table.
known_options() { within "$(grep -oE -e '--hpc-train(-[a-z-]+)?' <<<"$1" | sort -u)" "$table" "$document: options of ${1//$'\001'/; }"; }

first_pictures "$work/mnist"
mkdir "$work/results"
cp "$top_srcdir/tests/strategy/random.json" "$work/model.json"
python3 - "$work" <<'END'
import gzip, struct, sys, zipfile
def npy(shape, data):
    text = f"{{'descr': '|u1', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode() + data
with zipfile.ZipFile(sys.argv[1] + "/mnist.npz", "w") as archive:
    for split, name, n in (("train", "train", 256), ("test", "t10k", 64)):
        images, labels = (open(f"{sys.argv[1]}/mnist/{name}-{kind}", "rb").read()
                          for kind in ("images-idx3-ubyte", "labels-idx1-ubyte"))
        archive.writestr(f"x_{split}.npy", npy((n, 28, 28), images[16:]))
        archive.writestr(f"y_{split}.npy", npy((n,), labels[8:]))
END
launch=()
runs "hpc-train fit --model model.json --save-weights start.weights.h5"
ok $? "weights for README's example" || diag "$(cat "$work/out")"
usage=$("$top_srcdir/quickstart" --help 2>&1)
for document in README.md $(cd "$top_srcdir" && echo doc/man/*); do
    count=0
    while IFS= read -r line; do
        count=$((count + 1)) launch=()
        case $line in
        'script '*) # of a job: its syntax, and the options of all that it starts
            script=$(tr '\001' '\n' <<<"${line#script }")
            ok "$(bash -n <<<"$script" 2>/dev/null; echo $?)" "$document: the job script is valid" || diag "$script"
            known_options "$line"
            within "$(grep -oE 'hpc-train-stage --nodes.*' <<<"${script//$'\\\n'/}" | options_in)" \
                "$("$top_builddir/hpc-train-stage" --help | options_in)" "$document: options of hpc-train-stage in it"
            while read -r part; do
                runs "$part"
                ok $? "$document: $part" || diag "$(cat "$work/out")"
            done < <(hpc_train_part "$script")
            ;;
        ./quickstart*) # run by tests/cluster/quickstart.t and tests/distros/order
            read -ra words <<<"${line%%#*}"
            like "$usage" "quickstart${words[1]:+ ${words[1]}}" "$document: $line"
            known_options "$line"
            ;;
        './configure && make'*) # run by configure.t and install.t, and on whole systems by tests/packages
            ok "$(for target in check install; do grep -q "^$target:" "$top_builddir/Makefile" || exit 1; done; echo $?)" "$document: $line"
            ;;
        dpkg-buildpackage*) ok "$(grep -q "$line" "$top_srcdir/tests/packages/debian.t"; echo $?)" "$document: debian.t runs $line" ;;
        'make dist && rpmbuild'*) ok "$(grep -q 'rpmbuild -t' "$top_srcdir/tests/packages/rpm.t"; echo $?)" "$document: rpm.t runs $line" ;;
        'cc mnist.c'*)
            part=${line%% &&*}
            # shellcheck disable=SC2086 # several words
            (mkdir "$work/c" && cd "$work/c" && cp "$top_srcdir/etc/examples/mnist.c" . && limit 60 ${part/cc/gcc -I"$top_srcdir/include" -L"$top_builddir/.libs"} &&
                LD_LIBRARY_PATH=$top_builddir/.libs limit 60 ./mnist ../mnist) >"$work/out" 2>&1
            ok $? "$document: $line" || diag "$(cat "$work/out")"
            known_options "$line"
            ;;
        'hpc-train info --admin') # what it finds on this machine is no matter
            runs "hpc-train info --help"
            ok $? "$document: $line"
            like "$(cat "$work/out")" "--admin" "$document: the option exists"
            ;;
        hpc-train\ * | mpirun\ * | srun\ *' hpc-train '*)
            if [[ $line == mpirun* ]]; then
                command -v mpirun >/dev/null || { skip "$document: $line" "there is no mpirun"; continue; }
                launch=(mpirun --allow-run-as-root --oversubscribe --bind-to none -np 2)
            fi
            runs "$(hpc_train_part "$line")"
            ok $? "$document: $line" || diag "$(cat "$work/out")"
            known_options "$line"
            ;;
        *) ok 1 "$document: this test has no rule for: $line" ;;
        esac
    done < <(commands "$document")
    diag "$document: $count commands"
done
ok "$(awk '/^```python/ { on = 1; next } /^```/ { on = 0 } on' "$top_srcdir/README.md" | python3 -c 'import ast, sys; ast.parse(sys.stdin.read())'; echo $?)" \
    "README's Python is Python (tests/peers/nn_files.t runs such lines with Keras)"
done_testing
