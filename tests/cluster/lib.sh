# lib.sh: TAP in bash, and the way into the running sandbox; sourced by tests/cluster/*.t. Offers on_cluster, sandbox_run,
# capture, ok, is, like, unlike, skip, diag, limit, use_key and done_testing. It must not know what is being tested.
# shellcheck shell=bash

top_srcdir=${top_srcdir:-$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)}
sandbox=$top_srcdir/etc/sandbox/sandbox
tests_run=0
finished=

# use_key FILE: makes a step's key there, for ranks that no plugin starts.
use_key() {
    (umask 077 && head -c 32 /dev/urandom | od -An -v -tx1 | tr -d ' \n' >"$1")
    export HPC_TRAIN_KEY_FILE=$1
}

# ---- results -------------------------------------------------------------------------------------------------------

# ok STATUS NAME: passes when STATUS is 0. Typically: some command; ok $? "does it".
ok() {
    tests_run=$((tests_run + 1))
    if [ "$1" = 0 ]; then echo "ok $tests_run - $2"; else echo "not ok $tests_run - $2"; fi
    return "$1"
}

# is GOT WANT NAME: passes when both strings are the same.
is() {
    if [ "$1" = "$2" ]; then ok 0 "$3"; else ok 1 "$3" || { diag "got:  $1" "want: $2"; false; }; fi
}

# like GOT REGEX NAME: passes when GOT matches the extended regular expression; unlike when it does not.
like() {
    if [[ $1 =~ $2 ]]; then ok 0 "$3"; else ok 1 "$3" || { diag "got:        $1" "should match: $2"; false; }; fi
}
unlike() {
    if [[ ! $1 =~ $2 ]]; then ok 0 "$3"; else ok 1 "$3" || { diag "got:            $1" "should not match: $2"; false; }; fi
}

# tap_of WHAT COMMAND...: the TAP that COMMAND prints becomes ours; one more failure when it ends with an error.
tap_of() {
    local line
    while IFS= read -r line; do
        case $line in
        'ok '*) ok 0 "${line#ok * - }" ;;
        'not ok '*) ok 1 "${line#not ok * - }" ;;
        1..*) ;;
        *) diag "$line" ;;
        esac
    done < <("${@:2}" 2>&1; status=$?; [ $status = 0 ] || echo "not ok 0 - $1 ended with $status")
}

# skip NAME REASON: counts one test as skipped.
skip() {
    tests_run=$((tests_run + 1))
    echo "ok $tests_run - $1 # SKIP $2"
}

# skip_all REASON: ends the program; call it before the first test.
skip_all() {
    echo "1..0 # SKIP $1"
    finished=1
    exit 0
}

# diag LINE...: a remark on the results, each line marked as a comment.
diag() { printf '%s\n' "$@" | sed 's/^/# /'; }

# done_testing: prints the plan. A program that ends without it fails.
done_testing() {
    echo "1..$tests_run"
    finished=1
}

# at_exit COMMAND: runs it when the program ends, whatever ends it.
exit_commands=
at_exit() { exit_commands="$1; $exit_commands"; }
ending() {
    local status=$?
    trap '' INT TERM HUP
    eval "$exit_commands"
    [ -n "$finished" ] || echo "Bail out! ended early with status $status"
    exit $status
}
trap ending EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

# ---- running things ------------------------------------------------------------------------------------------------

# limit SECONDS CMD...: runs CMD, ends it when it takes too long (status 124, or 137 when it had to be killed).
limit() { timeout --foreground --kill-after=5 "$@"; }

# capture CMD...: runs CMD; leaves its standard output in $out, its standard error in $err, its exit status in $status. Whether
# srun had to wait for an earlier job's nodes is no matter of the test's. It starts nothing else: some tests call it a thousand times.
captured=$(mktemp -d) || exit
at_exit "rm -rf '$captured'"
captures=0
# shellcheck disable=SC2034
capture() {
    local errors=$captured/$BASHPID.$((captures++))
    out=$("$@" 2>"$errors")
    status=$?
    err=$(<"$errors")
    [[ $err != *"srun: job "* ]] ||
        err=$(sed -E '/^srun: job [0-9]+ (queued and waiting for|has been allocated) resources$/d' "$errors")
}

# slurm_at_least RELEASE: whether the Slurm here is of that release, such as 23.11, or a later one.
slurm_at_least() {
    local here
    here=$(slurmd -V | sed 's/^[^ ]* \([0-9]*\.[0-9]*\).*/\1/')
    [ "$(printf '%s\n' "$1" "$here" | sort -V | head -n 1)" = "$1" ]
}

# sandbox_run [--root] CMD...: runs CMD on the login node as the ordinary user, for at most $run_limit seconds. What is not
# done by then is ended with all that it has started: they are a process group of their own. One srun that stayed would keep
# the output open, and so everybody who reads it.
run_limit=120
cluster_end= # when all of the program is to have ended, as $SECONDS counts
sandbox_run() {
    local seconds=$run_limit
    if [ -n "$cluster_end" ] && [ $((cluster_end - SECONDS)) -lt "$seconds" ]; then
        seconds=$((cluster_end - SECONDS))
        # Later, and in what it does at its end, there is still a little time for each command.
        [ $seconds -gt 0 ] || { kill -TERM $$ && seconds=20; }
    fi
    # 9: nobody but the program itself shall hold the lock.
    setpriv --pdeathsig=TERM timeout --kill-after=5 "$seconds" "$sandbox" run "$@" 9>&-
}
# In a process group that is not the terminal's, a command that reads from it would be stopped.
if [ -t 0 ]; then exec </dev/null; fi

# folder_in_memory NAME: makes a folder there, if there are 2 GB for it and programs in it may be run, as some file systems take a
# millisecond for each of thousands of files; else, and with HPC_TRAIN_LONG, in /tmp.
folder_in_memory() {
    local parent=/tmp
    if [ -z "${HPC_TRAIN_LONG-}" ] && [ -w /dev/shm ] && ! grep -q '^[^ ]* /dev/shm [^ ]* [^ ]*noexec' /proc/mounts &&
        [ "$(stat --file-system --format='%a * %S / 1000000' /dev/shm | xargs expr)" -gt 2000 ]; then
        parent=/dev/shm
    fi
    mktemp -d "$parent/$1.XXXXXX"
}

# has_pmix: whether this Slurm starts the ranks of MPI programs; many have no mpi_pmix.
has_pmix() { sandbox_run srun --mpi=list 2>&1 | grep -qw pmix; }

# take_cluster: waits until no other program uses the sandbox, or one of those that `quickstart check` starts inside its
# folder, and leaves that in HPC_TRAIN_SANDBOX. One program at a time: some of them fill a node's disk or take its ports.
take_cluster() {
    local first=${HPC_TRAIN_SANDBOX:-$top_srcdir/.sandbox} folder file files=() taken
    for folder in "$first" "$first"/{second,third,fourth}; do
        [ ! -d "$folder" ] || { exec {file}>"$folder/tests.lock" && files+=("$file" "$folder"); }
    done
    taken=$(python3 "$top_srcdir/tests/cluster/take_lock.py" 1200 "${files[@]}") || return
    exec 9>&"${taken%% *}"
    for file in "${files[@]}"; do
        [[ $file == /* ]] || exec {file}>&-
    done
    export HPC_TRAIN_SANDBOX=${taken#* }
}

# on_cluster [N]: goes on only where a sandbox with at least N nodes (default 2) runs; otherwise all tests are skipped.
# Leaves $work, a fresh folder in the shared file system as the cluster sees it, and $work_here, the same seen from outside.
on_cluster() {
    local nodes
    [ "$(id -u)" = 0 ] || skip_all "the sandbox needs root"
    "$sandbox" run true >/dev/null 2>&1 || skip_all "no sandbox runs: ./quickstart up, or set HPC_TRAIN_SANDBOX"
    take_cluster || skip_all "other tests have held the sandbox for 20 minutes"
    cluster_end=$((SECONDS + ${HPC_TRAIN_LONG:+3}600))
    nodes=$(sandbox_run sinfo --noheader --Node --format=%n | wc -l)
    [ "$nodes" -ge "${1:-2}" ] || skip_all "the sandbox has $nodes nodes, ${1:-2} are needed"
    work=$(sandbox_run mktemp -d "/shared/home/user/${0##*/}.XXXXXX") || exit
    # shellcheck disable=SC2034
    work_here=$HPC_TRAIN_SANDBOX$work
    at_exit "sandbox_run scancel --user=user; sandbox_run --root rm -rf '$work'"
}
