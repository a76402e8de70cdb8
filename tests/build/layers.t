#!/bin/bash
# layers.t: which folder may include which, as the table in doc/architecture.md says, and who may include others' headers.
# Every include of the sources is looked at.

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

seen=$(grep -rnE --include='*.[ch]' --include='*.cu' --include='*.cuh' '^[ \t]*#[ \t]*include[ \t]*["<]' base agent nn spank include)
is "$(against <<<"$seen")" "" "of $(wc -l <<<"$seen") includes none is against the arrows"
is "$(against <<<'nn/graph/x.c:7:#include "nn/run/step.h"')" \
    "nn/graph/x.c:7: nn/graph -> nn/run is no arrow of doc/architecture.md" "an include without an arrow is found"
like "$(against <<<'nn/plan/x.c:7:#include <cuda_runtime.h>')" "nn/backend/cuda/ alone" "so is a header reserved for another folder"
is "$(awk -F'[: ]+' '{ for (i = 2; i <= NF; i++) if ($i ~ "/" && !($i in above)) print $1 " -> " $i; above[$1] }' <<<"$arrows")" "" \
    "arrows lead to rows above"
is "$(comm -3 <(cut -d: -f1 <<<"$seen" | sed 's|/[^/]*$||' | sort -u) <(cut -d: -f1 <<<"$arrows" | sort -u))" "" \
    "the table's rows are the folders of sources"
done_testing
