#!/bin/bash
# documents.t: programs, manual pages, README, the administrator's file and bash completion name the same options,
# variables and arguments, none more and none less.
# shellcheck disable=SC2154

# shellcheck source=tests/cluster/lib.sh
. "$(dirname "$0")/../cluster/lib.sh"
top_builddir=${top_builddir:-$top_srcdir/build}
export LC_ALL=C

# page NAME: a manual page's lines without fonts, as words.
page() { sed -e 's/\\f[A-Z]//g' -e 's/\\//g' -e 's/^\.[BIR][BIR]* //' -e 's/"//g' "$top_srcdir/doc/$1"; }
# headings NAME: the lines that something is explained under.
headings() { page "$1" | sed -n '/^\.TP/{n;p}'; }
options_in() { grep -o -e '--[a-z][a-z-]*' | sort -u; }
is_same() { is "$(diff <(echo "$1") <(echo "$2"))" "" "$3"; }
# within A B NAME: every line of A is one of B.
within() { is "$(comm -23 <(echo "$1") <(echo "$2"))" "" "$3"; }

# ---- the plugin: its table of options, the manual, README, completion ----
table=$(grep -o '{"hpc-train[a-z-]*",' "$top_srcdir/spank/options.c" | sed 's/{"\(.*\)",/--\1/' | sort -u)
like "$table" "--hpc-train-stage" "the table of options is found"
is_same "$table" "$(headings spank_hpc_train.8 | grep -e '^--' | options_in)" "spank_hpc_train(8) explains the plugin's options"
is_same "$table" "$(page spank_hpc_train.8 | sed -n '/^.SH SYNOPSIS/,/^.SH DESC/p' | options_in)" "and has them in its synopsis"
is_same "$table" "$(sed -n 's/^| `\(--hpc-train[a-z-]*\).*/\1/p' "$top_srcdir/README.md" | sort -u)" "README's table has them"
within "$(options_in <"$top_srcdir/etc/completion/hpc-train-slurm" | grep hpc-train)" "$table" "completion knows no other"
variables=$(tr -d '\n' <"$top_srcdir/spank/options.c" | grep -o '"HPC_TRAIN[A-Z_]*"' | tr -d '"' | sort -u)
is "$(wc -l <<<"$variables")" "$(wc -l <<<"$table")" "each has a variable"
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
for command in $("$top_builddir/hpc-train" --help | sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) .*/\1/p'); do
    helps+=("$("$top_builddir/hpc-train" "$command" --help)")
    ok "$(page hpc-train.1 | grep -q "^hpc-train $command"; echo $?)" "hpc-train.1 has the command $command"
done
same_options hpc-train.1 "hpc-train --help" "${helps[@]}"
same_options hpc-train-stage.1 "hpc-train-stage --help" "$("$top_builddir/hpc-train-stage" --help)" \
    "$("$top_builddir/hpc-train-stage" --out --help)"
for helper in hpc-train-stage hpc-train; do # completion offers what --help lists
    ok "$(grep -q -e "$helper.*--help" "$top_srcdir/etc/completion/$helper"; echo $?)" "completion of $helper asks --help"
done
# what hpc-train-check prints a line for
is_same "$(grep -oE '(right|wrong|check_file)\("[a-z_]*"' "$top_srcdir/spank/check/main.c" | cut -d '"' -f 2 | sort -u)" \
    "$(headings hpc-train-check.8 | tr -s ', ' '\n' | grep . | sort -u)" "hpc-train-check(8) explains every line"
done_testing
