#!/bin/bash
# names.t: every name that other files see carries its folder: it begins with hpct_ and a word that doc/architecture.md gives to the
# folder; none has two definitions, and none is declared by another folder than the one
# that defines it. Declarations in headers and definitions in sources are looked at.

# shellcheck source=tests/cluster/lib.sh
. "$(dirname "$0")/../cluster/lib.sh"
cd "$top_srcdir" || exit

# "FOLDER WORD...", of the table's rows; base's names have words of their own.
words=$(sed -nE '/^\| folder/,/^$/s/^\| `([a-z/]+)\/` \| ([^|]*)\|.*/\1 \2/p' doc/architecture.md | tr -d '`,')
public=$(cat include/hpctrain/*.h | grep -oE '\<hpct_\w+' | sort -u)

# found FILE...: "FILE KIND NAME" of functions and types; KIND is declared, function or type. The form of clang-format is assumed:
# what begins in the first column is at file level, and a function's { has its own line.
found() {
    awk '
        function name(text) { return match(text, /hpct_[a-z0-9_]+/) ? substr(text, RSTART, RLENGTH) : "" }
        FNR == 1 { head = ""; comment = 0 }
        /^\/\*/ && !/\*\// { comment = 1 }
        comment { if (/\*\//) comment = 0; next }
        head != "" && /^\{/ { if (at != "") print FILENAME, "function", at; head = ""; next }
        /^(typedef )?(struct|enum|union) hpct_[a-z0-9_]+( \{|$)/ { sub(/^typedef /, ""); print FILENAME, "type", name($0); head = ""; next }
        /^typedef .*\(\*hpct_/ { sub(/.*\(\*/, ""); print FILENAME, "type", name($0); next }
        /^typedef (struct|enum|union) (hpct_[a-z0-9_]+) hpct_[a-z0-9_]+;/ { next }
        /^typedef [^({]* hpct_[a-z0-9_]+;/ { print FILENAME, "alias", name(substr($0, match($0, /hpct_[a-z0-9_]+;/))); next }
        /^[a-z]/ && !/^(static|typedef|extern "C")/ && match($0, /hpct_[a-z0-9_]+\(/) {
            at = substr($0, RSTART, RLENGTH - 1); head = $0
            if (/;$/) { print FILENAME, "declared", at; head = "" }
            next
        }
        head != "" && /;$/ { print FILENAME, "declared", at; head = "" }
        /^(extern )?const hpct_[a-z0-9_]+ \*?(const )?hpct_[a-z0-9_]+(\[.*\])?( = .*|;)$/ {
            kind = /^extern/ ? "declared" : "function"
            sub(/ = .*|\[.*|;$/, ""); sub(/.*[ *]/, ""); print FILENAME, kind, $0
        }' "$@"
}

# twice: names of functions that have two definitions, and of types that have two in different folders.
twice() {
    awk '{ folder = $1; sub("/[^/]*$", "", folder); key = $2 == "type" ? $3 " " folder : $3 " " $1 }
        ($2 == "function" || $2 == "type") && !seen[key]++ { if (had[$2, $3] != "") print $3 ": " had[$2, $3] ", " $1; had[$2, $3] = $1 }'
}

# elsewhere: names that a header declares and sources of other folders alone define.
elsewhere() {
    awk '{ folder = $1; sub("/[^/]*$", "", folder) }
        $2 == "function" { where[$3] = where[$3] " " folder " " }
        $2 == "declared" && $1 ~ /[.](h|cuh)$/ { header[$3] = $1; from[$3] = folder }
        END {
            for (n in header)
                if (where[n] != "" && index(where[n], " " from[n] " ") == 0) print header[n] ": " n " of" where[n]
        }' | sed 's/ *$//' | sort
}

# astray: names that do not begin with a word of their folder.
astray() {
    awk -v words="$words" -v public="$public" '
        BEGIN {
            n = split(public, names, "\n"); for (i = 1; i <= n; i++) is_public[names[i]]
            n = split(words, rows, "\n")
            for (i = 1; i <= n; i++) { m = split(rows[i], w, " "); for (k = 2; k <= m; k++) allowed[w[1]] = allowed[w[1]] " " w[k] }
        }
        $2 != "declared" && !($3 in is_public) {
            folder = $1; sub("/[^/]*$", "", folder); good = folder == "base"
            m = split(allowed[folder], w, " ")
            for (k = 1; k <= m; k++) good = good || $3 == "hpct_" w[k] || index($3, "hpct_" w[k] "_") == 1
            if (!good) print $1 ": " $3
        }'
}

mapfile -t sources < <(find base agent nn spank -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh')
# Two implementations of the same, of which a program has one: without HDF5, and of base/ in a module.
names=$(found "${sources[@]}" | grep -vE '^(nn/file/keras/no_hdf5|nn/backend/module_status)[.]c ')
is "$(astray <<<"$names")" "" "$(wc -l <<<"$names") names begin with a word of their folder"
is "$(twice <<<"$names")" "" "none is defined twice"
is "$(elsewhere <<<"$names")" "" "a header declares what its folder defines"
is "$(astray <<<'nn/split/x.c function hpct_ckpt_open')" "nn/split/x.c: hpct_ckpt_open" "a name with another folder's word is found"
is "$(twice <<<$'nn/run/x.h type hpct_run_part\nagent/train/y.h type hpct_run_part')" "hpct_run_part: nn/run/x.h, agent/train/y.h" \
    "so is a type with two meanings"
is "$(elsewhere <<<$'nn/plan/x.h declared hpct_run_x\nnn/run/x.c function hpct_run_x')" "nn/plan/x.h: hpct_run_x of nn/run" \
    "so is a declaration of what another folder defines"
done_testing
