#!/bin/bash
# completion.t: what bash completes for hpc-train, hpc-train-stage, and the --hpc-train options of Slurm's commands
# (an srun of the test's own prints the plugin's help).
# shellcheck disable=SC2034,SC2154,SC2317

# shellcheck source=tests/cluster/lib.sh
. "$(dirname "$0")/../cluster/lib.sh"
top_builddir=${top_builddir:-$top_srcdir/build}
work=$(mktemp -d /tmp/hpc-train-completion.XXXXXX)
at_exit "rm -rf '$work'"
mkdir "$work/bin" "$work/files"
touch "$work/files/data.npz"
ln -s "$top_builddir/hpc-train" "$top_builddir/hpc-train-stage" "$work/bin"
# Slurm's help, with its long lines broken as popt does
cat >"$work/bin/srun" <<'END'
#!/bin/sh
cat <<'HELP'
      --hint=...              application bindings hint
      --hpc-train=on|off      prepare the tasks; every
                              other --hpc-train option implies it
      --hpc-train-env=LIST    set the variables

      --hpc-train-bind=closest|rank|map:I,J,...|none
                              which GPU
      --hpc-train-stage=SRC[:DST],...
                              copy files
      --hpc-train-hide        show each task only its own GPU
HELP
END
chmod 755 "$work/bin/srun"
PATH=$work/bin:$PATH
cd "$work/files" || exit

# complete_line WORD...: what is offered for the last word, with what stands before it; '=' is a word of its own, as
# in a terminal.
complete_line() {
    local line=$* function
    read -ra COMP_WORDS <<<"${line//=/ = }"
    [[ $line == *= || $line == *\  ]] && COMP_WORDS+=('')
    [[ $line == *= ]] && unset 'COMP_WORDS[-1]'
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1)) COMP_LINE=$line COMP_POINT=${#line} COMPREPLY=()
    function=$(complete -p "$1" | sed -n 's/.* -F \([^ ]*\) .*/\1/p')
    "$function" "$1" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}" 2>/dev/null
    out=${COMPREPLY[*]}
}

# names_of OPTION: what fit knows, from the table that it looks values up in.
names_of() {
    hpc-train fit "--$1=none-such" 2>&1 | sed -n 's/.*\(there are: \|must be \)//p' | tr -d , | sed 's/ or / /'
}

# shellcheck source=etc/completion/hpc-train
. "$top_srcdir/etc/completion/hpc-train"
complete_line hpc-train ""
like " $out " " fit .* --version " "the commands"
for name in $("$top_builddir/hpc-train" --help | sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) .*/\1/p'); do
    like " $out " " $name " "the command $name"
done
complete_line hpc-train help ev
is "$out" evaluate "help: the commands"
complete_line hpc-train fit --bat
is "$out" "--batch-size=" "an option with its ="
complete_line hpc-train fit --model=mnist-conv
is "$out" mnist-convnet "a model"
complete_line hpc-train fit --model=mobilenetv2-
is "$out" mobilenetv2-torchvision "a model in another form"
for option in optimizer strategy hybrid-form precision device comm wire scale lr-scaling schedule; do
    for name in $(names_of $option); do
        complete_line hpc-train fit "--$option=$name"
        like " $out " " ${name}[ :]" "--$option=$name"
    done
done
complete_line hpc-train fit --schedule=cos
is "$out" cosine "a schedule"
complete_line hpc-train fit --lr-scaling=
is "$out" "none linear sqrt" "how the rate scales"
complete_line hpc-train info --ad
is "$out" --admin "an option without a value"
complete_line hpc-train fit --data=dat
is "$out" data.npz "a file"
complete_line hpc-train fit --scale=sy
is "$out" symmetric "a scaling"
complete_line hpc-train data i
is "$out" info "data's subcommands"
complete_line hpc-train data info dat
is "$out" data.npz "data info: files"
complete_line hpc-train checkpoint ver
is "$out" verify "checkpoint's subcommands"
complete_line hpc-train top dat
is "$out" data.npz "top: files"
complete_line hpc-train top --on
is "$out" --once "top: options"
complete_line hpc-train checkpoint export dat
is "$out" data.npz "checkpoint export: files"
complete_line hpc-train report --format=s
is "$out" svg "report's formats"
complete_line hpc-train export --format=s
is "$out" safetensors "export's formats"
complete_line hpc-train report dat
is "$out" data.npz "report: runs are files"
# shellcheck source=etc/completion/hpc-train-stage
. "$top_srcdir/etc/completion/hpc-train-stage"
complete_line hpc-train-stage --prog
like "$out" "^--progress-fd" "options of hpc-train-stage"
complete_line hpc-train-stage dat
is "$out" data.npz "hpc-train-stage: files"

# ---- Slurm's commands ----
_of_slurm() { COMPREPLY=(--hint=); }
_completion_loader() { complete -F _of_slurm "$1"; }
# shellcheck source=etc/completion/hpc-train-slurm
. "$top_srcdir/etc/completion/hpc-train-slurm"
complete_line srun --hpc-train-
is "$out" "--hpc-train-env= --hpc-train-bind= --hpc-train-stage= --hpc-train-hide" "the plugin's options, from srun --help"
complete_line srun --hpc-train-b
is "$out" "--hpc-train-bind=" "srun: an option of the plugin"
complete_line srun --hpc-train-bind=
is "$out" "closest rank map: none" "its values"
complete_line srun --hpc-train-bind=cl
is "$out" closest "srun: a value"
complete_line srun --hpc-train=o
is "$out" "on off" "on and off"
complete_line srun --hpc-train-env=to
is "$out" torch "frameworks"
complete_line srun --hpc-train-roles=ch
is "$out" chief "roles"
complete_line srun --hpc-train-stage=dat
is "$out" data.npz "files to stage"
complete_line srun --h
like " $out " " --hpc-train .* --hint= " "Slurm's own completion still works"
complete_line srun -N2 ho
is "$out" "--hint=" "for options of Slurm, too"
complete_line sbatch -N2 ho
is "$out" "--hint=" "for each Slurm command"
unset -f _completion_loader
complete_line salloc ho
is "$out" "" "without Slurm's completion: no error"
done_testing
