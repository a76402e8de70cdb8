#!/bin/bash
# layers.t: which folder may include which, as the table in doc/architecture.md says, and who may include others' headers.
# Every include of the sources is looked at, and every name that an object of the build uses.

# shellcheck source=tests/cluster/lib.sh
. "$(dirname "$0")/../cluster/lib.sh"
cd "$top_srcdir" || exit

# HEADERS of others, and the only files that include them; regular expressions both.
others='
slurm/ spank/(plugin|slurm_api|slurm_release)[.]
mpi[.]h agent/comm/mpi
(cuda|cublas|cudnn|nccl) nn/backend/cuda/
dnnl nn/backend/cpu/
openssl/ base/auth/
munge spank/stage/net/broadcast_auth[.]
hwloc spank/gpu/
hdf5 nn/file/keras/'

# "FOLDER: those it may include", of the table's rows; base/ is there for all.
arrows=$(sed -nE '/^\| folder/,/^$/s/^\| `([a-z/]+)\/` \|.*\|([^|]*)\|$/\1:\2/p' doc/architecture.md | sed -E 's/`([a-z/]+)\/`,?/\1/g')

# against: "FILE:LINE: what is wrong", of lines FILE:LINE:#include … that it reads.
against() {
    awk -v arrows="$arrows" -v others="$others" '
        function folder(path) { sub("/[^/]*$", "", path); return path }
        BEGIN {
            n = split(arrows, rows, "\n")
            for (i = 1; i <= n; i++) {
                m = split(rows[i], words, /[: ]+/)
                known[words[1]]
                for (k = 2; k <= m; k++) may[words[1], words[k]]
            }
            num = split(substr(others, 2), foreign, "\n")
        }
        {
            split($0, at, ":"); file = at[1]; from = folder(file); to = $0
            quoted = to ~ /include[ \t]*"/
            gsub(/^[^"<]*["<]|[">].*/, "", to)
            wrong = ""
            if (!quoted)
                for (i = 1; i <= num; i++) {
                    split(foreign[i], words, " ")
                    if (to ~ "^" words[1] && file !~ "^" words[2]) wrong = "<" to "> is for " words[2] " alone"
                }
            else if (from ~ /^include\//) wrong = "a public header includes " to
            else if (!(from in known)) wrong = from " has no row in doc/architecture.md"
            else if (to !~ /\// && to != "config.h") wrong = to " has no folder"
            else if (folder(to) != from && folder(to) != "base" && to ~ /\// && !((from, folder(to)) in may))
                wrong = from " -> " folder(to) " is no arrow of doc/architecture.md"
            if (wrong != "") print file ":" at[2] ": " wrong
        }'
}

# symbols: "use FOLDER NAME" or "define FOLDER NAME", of the build's objects; not of those whose source is gone.
symbols() {
    (cd "${top_builddir:?run this with make check}" && find base agent nn spank -name '*.o' -exec nm -A -P -g {} +) |
        awk '
            $2 ~ /^hpct_/ {
                folder = file = $1
                sub("(/[.]libs)?/[^/]*$", "", folder); sub("[.]o:$", "", file); sub(".*[/-]", "", file)
                print $3 == "U" ? "use" : "define", folder, $2, folder "/" file
            }' | sort -u | while read -r how folder name source; do
            [ ! -e "$source.c" ] && [ ! -e "$source.cu" ] || echo "$how $folder $name"
        done
}

# misused: "FOLDER uses NAME of FOLDER", of lines that symbols prints: those of folders that it may not include, directly or
# over others; but public names of every row above its own may be used.
misused() {
    awk -v arrows="$arrows" -v public="$(cat include/hpctrain/*.h | grep -oE '\<hpct_\w+' | sort -u)" '
        BEGIN {
            n = split(public, words, "\n"); for (i = 1; i <= n; i++) is_public[words[i]]
            n = split(arrows, rows, "\n")
            for (i = 1; i <= n; i++) {
                m = split(rows[i], words, /[: ]+/); row[words[1]] = i; may[words[1], words[1]]; may[words[1], "base"]
                for (k = 2; k <= m; k++)
                    for (f in row) if ((words[k], f) in may) may[words[1], f]
            }
        }
        $1 == "define" { defined[$3] = defined[$3] " " $2 }
        $1 == "use" { uses[$2 " " $3] }
        END {
            for (use in uses) {
                split(use, words, " "); from = words[1]; good = 0
                n = split(defined[words[2]], there, " ")
                for (i = 1; i <= n; i++)
                    good = good || (from, there[i]) in may || (words[2] in is_public && row[there[i]] < row[from])
                if (n > 0 && !good) print from " uses " words[2] " of" defined[words[2]]
            }
        }' | sort
}

seen=$(grep -rnE --include='*.[ch]' --include='*.cu' --include='*.cuh' '^[ \t]*#[ \t]*include[ \t]*["<]' base agent nn spank include)
is "$(against <<<"$seen")" "" "of $(wc -l <<<"$seen") includes none is against the arrows"
is "$(against <<<'nn/graph/x.c:7:#include "nn/run/step.h"')" \
    "nn/graph/x.c:7: nn/graph -> nn/run is no arrow of doc/architecture.md" "an include without an arrow is found"
like "$(against <<<'nn/plan/x.c:7:#include <cuda_runtime.h>')" "nn/backend/cuda/ alone" "so is a header reserved for another folder"
names=$(symbols)
is "$(misused <<<"$names")" "" "of $(grep -c ^use <<<"$names") names used none is against the arrows"
is "$(misused <<<$'use nn/graph hpct_run_x\ndefine nn/run hpct_run_x\nuse nn/file hpct_run_x')" \
    "nn/graph uses hpct_run_x of nn/run" "a name without an arrow is found"
is "$(awk -F'[: ]+' '{ for (i = 2; i <= NF; i++) if ($i ~ "/" && !($i in above)) print $1 " -> " $i; above[$1] }' <<<"$arrows")" "" \
    "arrows lead to rows above"
is "$(comm -3 <(cut -d: -f1 <<<"$seen" | sed 's|/[^/]*$||' | sort -u) <(cut -d: -f1 <<<"$arrows" | sort -u))" "" \
    "the table's rows are the folders of sources"
done_testing
