#!/bin/bash
# install.t: what make install puts where, that an administrator's changes stay, and that uninstalling takes back the rest.
# shellcheck disable=SC2154

# shellcheck source=tests/cluster/lib.sh
. "$(dirname "$0")/../cluster/lib.sh"
top_builddir=${top_builddir:-$top_srcdir/build}
root=$(mktemp -d /tmp/hpc-train-install.XXXXXX)
at_exit "rm -rf '$root'"
declare -A value # of make's variables
while IFS='=' read -r name folder; do value[$name]=$folder; done < <(env -u MAKEFLAGS -u MAKELEVEL make --silent -C "$top_builddir" \
    --eval 'show:; @:$(foreach name,$(filter %dir,$(.VARIABLES)),$(info $(name)=$($(name))))' show)
run_make() { capture env -u MAKEFLAGS -u MAKELEVEL make -C "$top_builddir" --silent "$@" DESTDIR="$root"; }

run_make install
ok "$status" "make install" || diag "$err"
for file in bindir/hpc-train bindir/hpc-train-stage sbindir/hpc-train-check pkglibexecdir/hpc-train-gpus \
    libdir/libhpctrain.so spankdir/spank_hpc_train.so slurmconfdir/plugstack.conf.d/hpc-train.conf \
    tmpfilesdir/hpc-train.conf startcompletiondir/hpc-train-slurm completiondir/hpc-train completiondir/hpc-train-stage hpctraindir/hpctrain.h \
    pythonmoduledir/hpc_train.py $(cd "$top_srcdir/doc/man" && for page in *; do echo "man${page##*.}dir/$page"; done); do
    ok "$([ -s "$root${value[${file%%/*}]}/${file#*/}" ]; echo $?)" "$file is installed"
done

# ---- what Slurm's processes get with the plugin, and what a node without GPUs need not have ----
needs() { readelf --dynamic "$root${value[${1%%/*}]}/${1#*/}" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -vE '^(libc|libasan|libubsan|ld-linux.*)\.so'; }
is "$(needs spankdir/spank_hpc_train.so | sed 's/^libcrypto\.so.*/libcrypto.so/' | sort)" $'libcrypto.so\nlibjansson.so.4' "the plugin needs libc, libcrypto and jansson alone"
is "$(needs pkglibexecdir/hpc-train-gpus)" "" "hpc-train-gpus needs neither hwloc nor NVML to start"
like "$(readelf --dynamic "$root${value[spankdir]}/spank_hpc_train.so")" "NODELETE" "and stays in memory, as a thread that looks a name up may"
is "$(nm --dynamic --defined-only "$root${value[spankdir]}/spank_hpc_train.so" | awk '{ print $3 }' | grep -vE '^(slurm_spank_|plugin_(name|type|version)$|spank_plugin_version$)')" "" "the plugin shows Slurm its entries alone"

# ---- tmpfiles.d: the parent of the job directories, and a cleaner of /tmp beside it ----
if [ "$(id -u)" = 0 ] && command -v systemd-tmpfiles >/dev/null; then
    machine=$root/machine lines=$root${value[tmpfilesdir]}/hpc-train.conf
    mkdir -p "$machine/etc" "$machine/tmp" && cp /etc/passwd /etc/group "$machine/etc"
    systemd-tmpfiles --root="$machine" --create "$lines"
    is "$(stat -c '%a %u' "$machine/tmp/hpc-train")" "711 0" "at boot the parent of the job directories is created"
    mkdir "$machine/tmp/hpc-train/7"
    touch "$machine/tmp/hpc-train/7/data" "$machine/tmp/other"
    echo 'd /tmp 1777 root root 1s' >"$machine/clean"
    sleep 1.5
    systemd-tmpfiles --root="$machine" --clean "$machine/clean" "$lines"
    is "$(cd "$machine/tmp" && find . -type f)" ./hpc-train/7/data "removal of old files keeps its contents"
    rm -r "$machine"
else
    skip "tmpfiles.d" "it needs root and systemd-tmpfiles"
fi

# ---- plugstack.conf.d/hpc-train.conf ----
conf=${value[slurmconfdir]}/plugstack.conf.d/hpc-train.conf
installed=$root$conf
is "$(grep -v '^#' "$installed")" "optional ${value[spankdir]}/spank_hpc_train.so" "it loads the installed plugin, as optional"
echo "# changed" >>"$installed"
run_make install
like "$out" "$installed has been changed and stays" "a changed file is kept, and make install reports it"
is "$(tail -n 1 "$installed")" "# changed" "the changed file is unchanged"
run_make uninstall
ok "$status" "make uninstall" || diag "$err"
is "$(cd "$root" && find . -not -type d)" ".$conf" "nothing else is left"
rm "$installed"
run_make install
run_make uninstall
is "$(find "$root" -not -type d)" "" "an unchanged one goes as well"
done_testing
