#!/bin/bash
# admin.t: hpc-train info --admin (hpc-train-check) on a node of a sandbox of its own: each thing that it looks at is
# broken once, named, and mended again.

# shellcheck disable=SC2016 # inner shells expand
# shellcheck source=tests/cluster/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cluster/plugin_lib.sh
. "$(dirname "$0")/plugin_lib.sh"
old_abi=${top_builddir:-$top_srcdir/build}/tests/cluster/old/.libs/spank_hpc_train.so
[ -e "$old_abi" ] || skip_all "tests/cluster/old/spank_hpc_train.la is not built"
own_sandbox
here=$own/root/opt/hpc-train plugin=/opt/hpc-train/lib/slurm/spank_hpc_train.so
chmod -R go-w "$here" # what the checker's umask left

check() { capture on_node node0 env "$@" /opt/hpc-train/bin/hpc-train info --admin; }
# found LINE NAME: the only thing wrong is LINE, and the exit status is 78.
found() {
    is "$status" 78 "$2: ends with 78"
    like "$(grep ^WRONG <<<"$out")" "^WRONG  $1[^"$'\n'"]*\$" "$2: reported in one line"
}
conf() { sandbox_run --root sh -c 'echo "$1" >/etc/slurm/plugstack.conf.d/hpc-train.conf' conf "$1"; }

# ---- slurmd was started before the plugin was installed ----
mv "$here/lib/slurm/spank_hpc_train.so" "$own/plugin.so"
limit 60 "$sandbox" up 2 >/dev/null || { ok 1 "a sandbox without the plugin starts"; exit 1; }
check
found "plugstack +neither /etc/slurm/plugstack.conf nor a file that it includes names spank_hpc_train.so: add a line" "no line in plugstack.conf"
mv "$own/plugin.so" "$here/lib/slurm/spank_hpc_train.so"
conf "optional $plugin"
check
like "$out" "WRONG  slurmd +pid [0-9]+ was started without $plugin: restart slurmd" "a slurmd from before is noticed"
is "$status" 78 "and ends with 78"
"$sandbox" down >/dev/null

# ---- all is well ----
limit 60 "$sandbox" up 2 >/dev/null || { ok 1 "a sandbox starts"; exit 1; }
check
is "$status" 0 "a fresh sandbox has no errors" || diag "$out$err"
is "$(awk '{ print $1, $2 }' <<<"$out")" "$(printf 'ok %s\n' plugstack plugin slurmd symbols arguments helper gpu_helper directory disk ports)" "all checks were made"
on_node node0 sh -c 'cp "$(command -v sleep)" /tmp/slurmd && exec setpriv --reuid=33 --regid=33 --clear-groups /tmp/slurmd 600' &
named=$!
for ((i = 0; i < 300; i++)); do on_node node0 pgrep -u 33 -x slurmd >/dev/null && break; sleep 0.1; done
check
is "$status $(grep -c slurmd <<<"$out")" "0 1" "a stranger's process named slurmd is not taken for one" || diag "$out$err"
on_node node0 pkill -u 33 -x slurmd
wait $named
capture sandbox_run hpc-train info --admin
is "$status" 0 "an ordinary user may run it" || diag "$out$err"
capture on_node node0 setpriv --reuid=user --regid=user --init-groups /opt/hpc-train/bin/hpc-train info --admin
is "$status" 0 "on a compute node, too" || diag "$out$err"
sandbox_run --root sh -c "sed -i /^PlugStackConfig/d /etc/slurm/slurm.conf && scontrol reconfigure"
capture sandbox_run scontrol show config
like "$out" "PlugStackConfig += \(null\)" "slurm.conf need not name plugstack.conf"
check
is "$status" 0 "with the files beside slurm.conf" || diag "$out$err"

# ---- Slurm and the plugin's file ----
on_node node0 sh -c 'mkdir /tmp/mute && for name in sh timeout slurmd; do ln -s "$(command -v $name)" /tmp/mute/$name; done'
check PATH=/tmp/mute
found "slurm +.scontrol show config. fails: start slurmctld" "no controller"
mv "$here/lib/slurm/spank_hpc_train.so" "$own/plugin.so"
check
found "plugin +$plugin: No such file or directory; install it" "no plugin"
cp "$old_abi" "$here/lib/slurm/spank_hpc_train.so"
check
found "plugin +$plugin is built for Slurm 21.08, but Slurm [0-9]+.[0-9]+ runs here and will not load it: build it" "another Slurm's plugin"
echo "no plugin at all" >"$here/lib/slurm/spank_hpc_train.so"
check
found "plugin +$plugin is not a plugin with a plugin_version" "a file that is none"
head -c 2000 "$own/plugin.so" >"$here/lib/slurm/spank_hpc_train.so"
check
found "plugin +$plugin is not a plugin with a plugin_version" "a plugin that is cut off"
rm "$here/lib/slurm/spank_hpc_train.so"
cp "$own/plugin.so" "$here/lib/slurm/spank_hpc_train.so"
chmod 666 "$here/lib/slurm/spank_hpc_train.so"
check
found "plugin +$plugin must belong to root and be writable by root alone" "a plugin that others may write"
chmod 644 "$here/lib/slurm/spank_hpc_train.so"
chown 12000 "$here/lib/slurm/spank_hpc_train.so"
check
found "plugin +$plugin must belong to root" "a plugin of another owner"
rm "$here/lib/slurm/spank_hpc_train.so"
mv "$own/plugin.so" "$here/lib/slurm/spank_hpc_train.so" # the very file that slurmd has loaded
chmod 755 "$here/lib/slurm/spank_hpc_train.so"
conf "optional spank_hpc_train.so"
check
found "plugin +.*/spank_hpc_train.so: No such file or directory" "a relative path is looked up in Slurm's folder"

# ---- its arguments and what they name ----
conf "optional $plugin tmp_dir=/tmp"
check
found "arguments +plugstack.conf: argument 'tmp_dir=/tmp' is not known" "an unknown argument"
conf "optional $plugin helper=/nowhere/stage"
check
found "helper +/nowhere/stage: No such file or directory; install hpc-train-stage" "no helper"
conf "optional $plugin gpu_helper=/etc/passwd"
check
found "gpu_helper +/etc/passwd is not a file that everybody can run" "a helper that cannot be run"
conf "optional $plugin ports=30000-40000"
check
found "ports +30000-40000 meet the kernel's ports of outgoing connections" "ports that the kernel gives away"

# ---- the directory and its disk ----
conf "required $plugin tmpdir=/var/tmp/jobs"
on_node node0 install -d -o 12000 -m 711 /var/tmp/jobs
check
found "directory +/var/tmp/jobs .*" "a directory of another owner"
on_node node0 sh -c 'chown 0 /var/tmp/jobs; chmod 777 /var/tmp/jobs'
check
found "directory +/var/tmp/jobs .*" "a directory that everybody may write"
on_node node0 sh -c 'rmdir /var/tmp/jobs; mkdir -m 711 /var/tmp/elsewhere; ln -s elsewhere /var/tmp/jobs'
check
found "directory +/var/tmp/jobs .*" "a directory behind a link"
on_node node0 sh -c 'rm /var/tmp/jobs; mkdir -m 711 /var/tmp/jobs; mount -t tmpfs -o size=8m,mode=711 small /var/tmp/jobs'
check
found "disk +/var/tmp/jobs has 8.4 MB in all, less than 1.1 GB: give tmpdir= on a larger disk" "too small a disk"
on_node node0 umount /var/tmp/jobs
mkdir "$own/shared/container"
cat >"$own/shared/container/scontrol" <<END
#!/bin/sh
$(command -v scontrol) "\$@" | sed -e 's,^JobContainerType.*,JobContainerType = job_container/tmpfs,' \
    -e 's,^NamespaceType.*,NamespaceType = namespace/tmpfs,'
END
chmod 755 "$own/shared/container/scontrol"
check PATH="/shared/container:$PATH"
is "$status" 0 "a private /tmp of jobs does not matter if the directory is elsewhere" || diag "$out$err"
conf "required $plugin"
check PATH="/shared/container:$PATH"
found "directory +/tmp/hpc-train is hidden from the tasks, as (job_container|namespace)/tmpfs gives each job folders of its own at /tmp,/dev/shm: give tmpdir= elsewhere" "a directory that the tasks do not see"
conf "required $plugin tmpdir=/var/tmp/jobs stage_max=900T"
check
found "disk +/var/tmp/jobs has .*, less than 990 TB .stage_max=." "a disk smaller than what may be staged"
conf "optional $plugin"

# ---- what the plugin takes of Slurm's library ----
mkdir "$own/shared/library"
if gcc -shared -x c -o "$own/shared/library/libslurmfull.so" - <<<'int slurm_conf, slurm_conf_get_nodeaddr, slurm_conf_get_hostname,
    slurm_signal_job_step, slurm_kill_job_step, slurm_complete_job, slurm_job_step_layout_get, slurm_job_step_layout_free;'; then
    cat >"$own/shared/library/scontrol" <<END
#!/bin/sh
$(command -v scontrol) "\$@" | sed 's,^PluginDir.*,PluginDir = /shared/library,'
END
    chmod 755 "$own/shared/library/scontrol"
    check PATH="/shared/library:$PATH"
    found "symbols +/shared/library/libslurmfull.so has no slurm_conf_get_addr: cloud and dynamic nodes are addressed by their NodeName" \
        "a library of Slurm's without a function"
else
    skip "a library of Slurm's without a function" "there is no gcc"
fi
if slurm_at_least 25.05; then
    like "$(nm -D --defined-only "$here/lib/slurm/spank_hpc_train.so")" " slurm_spank_init_failure_mode" "a failing start costs the job, not the node"
fi

# ---- the checker itself ----
mv "$here/sbin/hpc-train-check" "$own/hpc-train-check"
check
is "$status" 78 "without the plugin's package: status 78"
like "$err" "hpc-train-check cannot be started: No such file or directory; it is installed with the Slurm plugin" "the error names the missing program"
mv "$own/hpc-train-check" "$here/sbin/hpc-train-check"
check
is "$status" 0 "finally no errors" || diag "$out$err"
done_testing
