#!/bin/bash
# plugin_sanitizers.t: the plugin's tests once more, in a sandbox in which the plugin and its helpers are built with
# ASan and UBSan. The runtime is loaded into those programs of Slurm that load the plugin. A finding ends the process that
# made it, and is written to a file.
# HPC_TRAIN_SANITIZED="plugin.t plugin_safety.t" runs these instead of all.

# shellcheck source=tests/cluster/lib.sh
. "$(dirname "$0")/lib.sh"
[ "$(id -u)" = 0 ] || skip_all "the sandbox needs root"
: "${top_builddir:?run this with make check-long}"
unset MAKEFLAGS MFLAGS MAKELEVEL HPC_TRAIN_LONG
PATH=$PATH:/usr/sbin:/sbin
installed=${HPC_TRAIN_SANDBOX:-$top_srcdir/.sandbox}/root/opt/hpc-train
[ -e "$installed/lib/slurm/spank_hpc_train.so" ] || skip_all "the plugin is not installed in the sandbox's folder"
runtime=$(realpath "$(gcc -print-file-name=libasan.so)")
[ -e "$runtime" ] || skip_all "there is no libasan"

build=$top_builddir/sanitizers-plugin
mkdir -p "$build"
logged() {
    limit 900 "$@" >>"$build/log" 2>&1 || { ok 1 "builds with sanitizers"; tail -n 20 "$build/log" | sed 's/^/# /'; exit 1; }
}
: >"$build/log"
[ -e "$build/Makefile" ] || logged env --chdir="$build" "$top_srcdir/configure" -q --prefix=/opt/hpc-train --enable-sanitizers
logged make -C "$build" -s -j"$(nproc)" spank/spank_hpc_train.la hpc-train-stage hpc-train-gpus
# The helpers get no environment that would tell them where to write what is found.
logged gcc -c -o "$build/asan_options.o" "$top_srcdir/tests/cluster/asan_options.c"
rm -f "$build/hpc-train-stage" "$build/hpc-train-gpus"
logged make -C "$build" -s hpc-train-stage hpc-train-gpus LIBS="$(sed -n 's/^LIBS = //p' "$build/Makefile") $build/asan_options.o"
ok 0 "builds with sanitizers"

own=$(mktemp -d /tmp/hpc-train-sanitized.XXXXXX)
export HPC_TRAIN_SANDBOX=$own
at_exit "'$sandbox' down >/dev/null; rm -rf '$own'"
mkdir -p "$own/root/opt"
cp -a "$installed" "$own/root/opt"
cp "$build/spank/.libs/spank_hpc_train.so" "$own/root/opt/hpc-train/lib/slurm/"
cp "$build/hpc-train-stage" "$own/root/opt/hpc-train/bin/"
cp "$build/hpc-train-gpus" "$own/root/opt/hpc-train/libexec/hpc-train/"
preload=/opt/hpc-train/lib/asan_options.so
logged gcc -shared -fPIC -o "$own/root$preload" "$top_srcdir/tests/cluster/asan_options.c"
mkdir -p "$own/root/opt/hpc-train/real" "$own/shared" && mkdir -m 1777 "$own/shared/sanitizer"
for program in srun sbatch salloc slurmd slurmstepd; do
    path=$(command -v $program) instead=$own/root/opt/hpc-train/instead
    cp "$path" "$own/root/opt/hpc-train/real/$program"
    mkdir -p "$instead${path%/*}"
    case $program in # as they are called otherwise; slurmstepd writes its title over that
    slurm*) called=$path ;;
    *) called=$program ;;
    esac
    # shellcheck disable=SC2016
    printf '#!/bin/bash\nLD_PRELOAD="%s %s" exec -a %s /opt/hpc-train/real/%s "$@"\n' $preload "$runtime" "$called" $program >"$instead$path"
    chmod 755 "$instead$path"
done

# With BAD=1 srun has something that must be found.
printf '%s\n' '#include <stdlib.h>' '__attribute__((constructor)) static void bad(void)' \
    '{ volatile char *p = malloc(8); if (getenv("BAD")) p[8] = 1; }' >"$own/bad.c"
logged gcc -shared -fPIC -fsanitize=address -o "$own/root/opt/hpc-train/lib/bad.so" "$own/bad.c"
sed -i "s|\.so $runtime|& /opt/hpc-train/lib/bad.so|" "$own"/root/opt/hpc-train/instead/usr/bin/srun

start() { "$sandbox" down >/dev/null; limit 180 "$sandbox" up 4 >/dev/null; }
start
ok $? "a sandbox with the sanitizers' runtime starts" || exit
is "$(sandbox_run --root bash -c 'grep -l libasan $(pgrep -x "slurmd(-wlm)?" | sed "s|.*|/proc/&/maps|") | wc -l')" 4 "slurmd has libasan loaded"
like "$(nm -D "$own/root/opt/hpc-train/lib/slurm/spank_hpc_train.so")" "__asan_report_" "the plugin is checked"
for helper in hpc-train-stage hpc-train-gpus; do
    like "$(nm "$build/$helper")" " T __asan_default_options" "$helper says where all can see it what is found"
done

# A wrong address in srun itself.
capture sandbox_run env BAD=1 srun -N1 true
ok "$(compgen -G "$own/shared/sanitizer/report.srun.*" >/dev/null; echo $?)" "a finding would be reported"
rm -f "$own"/shared/sanitizer/report*
capture sandbox_run srun -N1 --hpc-train sh -c 'echo "[$LD_PRELOAD]"'
is "$out" "[]" "the tasks run without"

passed() { grep -q '^1\.\.[1-9]' "$own/$1.out" && ! grep -Eq '^(not ok|Bail out)' "$own/$1.out"; }
for test in ${HPC_TRAIN_SANITIZED:-$(cd "$top_srcdir/tests/cluster" && ls plugin*.t)}; do
    [[ $test = plugin_sanitizers.t || $test = plugin_cost.t ]] && continue # what it costs says nothing here
    # A task that is forked while another thread of slurmstepd holds a lock of ASan's own allocator waits for it for ever,
    # before it is a program: what fails once is tried again, on other daemons.
    for try in 1 2; do
        limit 1500 bash "$top_srcdir/tests/cluster/$test" >"$own/$test.out" 2>&1
        passed "$test" && break
        [ $try = 2 ] || { diag "$test: once more, after:" "$(grep -A 6 -E '^(not ok|Bail out)' "$own/$test.out" | head -n 20)"; start; }
    done
    if passed "$test"; then
        ok 0 "$test: $(grep -c '^ok' "$own/$test.out") tests"
    else
        ok 1 "$test"
        grep -A 6 -E '^(not ok|Bail out)' "$own/$test.out" | head -n 60 | sed 's/^/# /'
    fi
    found=$(find "$own" -maxdepth 3 -path '*/shared/sanitizer/report*' | sort)
    is "$found" "" "$test: no findings" || while read -r file; do head -n 40 "$file" | sed 's/^/# /'; done <<<"$found"
    rm -f "$own"/shared/sanitizer/report*
    "$sandbox" status >/dev/null 2>&1 || start # some start sandboxes of their own
done

done_testing
