#!/bin/bash
# debian.t: the Debian packages, built in a bare system from what `make dist` packs, installed in another one beside
# Slurm, used there under Slurm's daemons, and removed without a trace. Needs root and the network; takes minutes. CI runs it on two
# releases, with DEB_BUILD_OPTIONS=nocheck, which leaves lintian out, too, and HPC_TRAIN_BARE_SUITE.
# shellcheck disable=SC2016,SC2154 # inner shells expand; lib.sh sets out, err and status

# shellcheck source=tests/cluster/lib.sh
. "$(dirname "$0")/../cluster/lib.sh"
# shellcheck source=tests/packages/bare.sh
. "$top_srcdir/tests/packages/bare.sh"
needs_bare
log=${top_builddir:-$top_srcdir/build}/debian-packages-$suite.log
: >"$log"
# apt_in SYSTEM ARGUMENT...: apt-get there; what it says is in the log.
apt_in() {
    in_bare "$1" timeout 600 apt-get -q -y --no-install-recommends "${@:2}" >>"$log" 2>&1 && return
    diag "$(tail -n 30 "$log")"
    return 1
}
with_packages() { # NAME PACKAGE...: another bare system, with these
    new_bare "$1" && apt_in "$bare" update && apt_in "$bare" install "${@:2}" && return
    ok 1 "a bare system gets ${*:2}"
    exit 1
}

# ---- built from what build-dep installs ----
make_tarball || exit
[[ ${DEB_BUILD_OPTIONS-} == *nocheck* ]] || lintian=lintian
with_packages build build-essential xz-utils ${lintian-}
tar -xf "$tarball" -C "$bare/srv"
source=/srv/$(basename "$tarball" .tar.xz)
apt_in "$bare" build-dep "$source"
ok $? "the build dependencies can be installed"
in_bare "$bare" timeout 1800 env --chdir="$source" DEB_BUILD_OPTIONS="${DEB_BUILD_OPTIONS-}" dpkg-buildpackage -us -uc -b >>"$log" 2>&1
ok $? "$suite: dpkg-buildpackage builds, and the unit tests pass, unless DEB_BUILD_OPTIONS has nocheck" || { diag "$(tail -n 30 "$log")"; exit 1; }
if [ -n "${lintian-}" ]; then
    capture in_bare "$bare" timeout 300 sh -c 'lintian --allow-root --fail-on error,warning /srv/*.changes'
    ok "$status" "lintian reports no error and no warning" || diag "$out$err"
fi
debs=$bare_work/debs
mkdir "$debs" && cp "$bare"/srv/*.deb "$debs"
rm -rf --one-file-system "$bare"
deb() { ls "$debs/$1"_*.deb; }

# ---- what is in them ----
contents() { dpkg-deb --contents "$(deb "$1")" | awk '$1 !~ /^d/ { print $6 }' | sed -e "s|$(dpkg-architecture -qDEB_HOST_MULTIARCH 2>/dev/null || gcc -print-multiarch)|ARCH|" -e 's|^\.||' -e '\|^/usr/share/doc/|d' -e '\|^/usr/share/lintian/|d' | LC_ALL=C sort; }
is "$(contents slurm-spank-hpc-train)" "\
/etc/bash_completion.d/hpc-train-slurm
/etc/slurm/plugstack.conf.d/hpc-train.conf
/usr/bin/hpc-train-stage
/usr/lib/ARCH/slurm-wlm/spank_hpc_train.so
/usr/lib/tmpfiles.d/hpc-train.conf
/usr/libexec/hpc-train/hpc-train-gpus
/usr/sbin/hpc-train-check
/usr/share/bash-completion/completions/hpc-train-stage
/usr/share/man/man1/hpc-train-stage.1.gz
/usr/share/man/man8/hpc-train-check.8.gz
/usr/share/man/man8/spank_hpc_train.8.gz" "the plugin's package"
is "$(contents hpc-train)" "\
/usr/bin/hpc-train
/usr/lib/ARCH/libhpctrain.so.0
/usr/lib/ARCH/libhpctrain.so.0.0.0
/usr/share/bash-completion/completions/hpc-train
/usr/share/hpc-train/published.csv
/usr/share/hpc-train/python/hpc_train.py
/usr/share/man/man1/hpc-train-bench.1.gz
/usr/share/man/man1/hpc-train-check.1.gz
/usr/share/man/man1/hpc-train-checkpoint.1.gz
/usr/share/man/man1/hpc-train-data.1.gz
/usr/share/man/man1/hpc-train-evaluate.1.gz
/usr/share/man/man1/hpc-train-export.1.gz
/usr/share/man/man1/hpc-train-fit.1.gz
/usr/share/man/man1/hpc-train-info.1.gz
/usr/share/man/man1/hpc-train-launch.1.gz
/usr/share/man/man1/hpc-train-plan.1.gz
/usr/share/man/man1/hpc-train-predict.1.gz
/usr/share/man/man1/hpc-train-report.1.gz
/usr/share/man/man1/hpc-train-summary.1.gz
/usr/share/man/man1/hpc-train-top.1.gz
/usr/share/man/man1/hpc-train.1.gz
/usr/share/man/man7/hpc-train-models.7.gz" "the command's"
headers=$(cd "$top_srcdir/include" && ls hpctrain/*.h)
is "$(contents hpc-train-dev)" "$(printf '%s\n' "$headers" | sed 's|^|/usr/include/|'; echo /usr/lib/ARCH/libhpctrain.so)" "headers of the -dev package"
is "$(dpkg-deb --field "$(deb slurm-spank-hpc-train)" Maintainer Section)" "Maintainer: hpc-train maintainers <maintainers@hpc-train.invalid>
Section: admin" "and their fields"

# ---- installed beside Slurm, of that release only ----
with_packages node slurmctld slurmd slurm-client munge iproute2 bash-completion procps
node=$bare
slurm=$(in_bare "$node" dpkg-query --show --showformat='${Version}' slurm-wlm-basic-plugins)
release=$(cut -d . -f 1,2 <<<"$slurm")
like "$(dpkg-deb --field "$(deb slurm-spank-hpc-train)" Depends)" "slurm-wlm-basic-plugins \(>= $release\), slurm-wlm-basic-plugins \(<< ${release%.*}\.[0-9]+~\)" "the plugin's package needs Slurm $release"
# Every file but apt's and dpkg's own, and what daemons and logs write.
files() {
    in_bare "$node" find / -xdev -not -path '/var/lib/dpkg/*' -not -path '/var/cache/*' -not -path '/var/lib/apt/*' \
        -not -path '/var/log/*' -not -path '/srv/*' -not -path '/var/lib/slurm/*' -not -path '/var/lib/munge/*' \
        -not -path '/run/*' -not -path '/home/*' | LC_ALL=C sort
}
configure_slurm() {
    in_bare "$node" sh -c 'cat >/etc/slurm/slurm.conf; echo CgroupPlugin=cgroup/v1 >/etc/slurm/cgroup.conf
        useradd --create-home --shell /bin/bash someone' <<'CONF'
ClusterName=bare
SlurmctldHost=node0
StateSaveLocation=/var/lib/slurm/slurmctld
SlurmdSpoolDir=/var/lib/slurm/slurmd
SlurmctldLogFile=/var/log/slurm/slurmctld.log
SlurmdLogFile=/var/log/slurm/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SlurmdParameters=config_overrides
MpiDefault=none
ReturnToService=2
SchedulerParameters=sched_interval=1,bf_interval=1,batch_sched_delay=0
NodeName=node0 CPUs=4 RealMemory=1000
PartitionName=main Nodes=ALL Default=YES
CONF
}
configure_slurm
start_bare "$node" node0 || { ok 1 "the system starts"; exit 1; }
into_bare sh -c 'mkdir -p /run/munge && chown munge:munge /run/munge && runuser -u munge munged && slurmctld -c && slurmd' ||
    { ok 1 "Slurm's daemons start"; exit 1; }
as_user() { into_bare runuser -u someone -- env --chdir=/home/someone "$@"; }
idle() { for _ in {1..40}; do [ "$(into_bare timeout 5 sinfo --noheader --format=%t 2>/dev/null)" = idle ] && return; sleep 0.5; done; return 1; }
idle
ok $? "a bare system with Slurm runs" || { diag "$(into_bare tail -n 20 /var/log/slurm/slurmctld.log /var/log/slurm/slurmd.log)"; exit 1; }
capture as_user srun echo fine
is "$out" fine "and runs steps"
before=$(files)

cp "$debs"/*.deb "$node/srv/packages"
for name in slurm-spank-hpc-train hpc-train hpc-train-dev; do packages+=("/srv/packages/$(basename "$(deb $name)")"); done
apt_in "$node" install "${packages[@]}"
ok $? "apt-get installs the packages"
like "$(tail -n 40 "$log")" "systemctl restart slurmd .*jobs go on; without it job directories are not removed" "and says what to do, where"
capture as_user srun --hpc-train sh -c 'echo "$HPC_TRAIN_RANK"'
is "$out$err" 0 "a step is prepared at once, as it says"
like "$(into_bare ls /tmp/hpc-train)" "^[0-9]+$" "and its job directory is not removed"
into_bare find /tmp/hpc-train -mindepth 1 -delete
capture into_bare hpc-train info --admin
like "$out" "WRONG  slurmd +pid [0-9]+ was started without /usr/lib/.*/spank_hpc_train.so: restart slurmd" "hpc-train info --admin says that slurmd is to be restarted"
is "$(grep -c WRONG <<<"$out")" 1 "no other check fails" || diag "$out"
into_bare sh -c 'kill "$(cat /run/slurmd.pid 2>/dev/null || pgrep -o slurmd)"; while pgrep slurmd >/dev/null; do sleep 0.1; done; slurmd'
idle
capture into_bare hpc-train info --admin
is "$status" 0 "after the fix no check fails" || diag "$out$err"

# ---- used ----
is "$(as_user srun --help | grep -o -e '--hpc-train[a-z-]*[=[:space:]]' | tr -d '= ' | LC_ALL=C sort -u)" \
    "$(sed -n 's/.*{"\(hpc-train[a-z-]*\)",.*/--\1/p' "$top_srcdir/spank/options.c" | LC_ALL=C sort -u)" "srun --help shows every option"
as_user sh -c 'echo words >data; printf "#!/bin/sh\n#SBATCH --ntasks=2 --hpc-train-stage=data\nsrun cat \$SLURM_TMPDIR/data\n" >job'
capture as_user srun -n2 --hpc-train-stage=data sh -c 'echo "$HPC_TRAIN_RANK of $WORLD_SIZE: $(cat "$HPC_TRAIN_DATA")"'
is "$(sort <<<"$out")" $'0 of 2: words\n1 of 2: words' "steps are prepared" || diag "$err"
capture as_user sh -c 'sbatch --wait --output=out --error=err job >/dev/null; cat out'
is "$out" $'words\nwords' "jobs are prepared" || diag "$err"
capture as_user srun -n2 --hpc-train-bind=closest --hpc-train-stage-out=result:result.%s sh -c 'echo "$WORLD_SIZE" >"$SLURM_TMPDIR/result"'
is "$(as_user cat result.0)" 2 "results are copied" || diag "$err"
capture as_user srun --hpc-train-port=x true
like "$status $err" "^[1-9].*--hpc-train-port" "a wrong option ends srun"
capture as_user hpc-train info
ok "$status" "the command runs" || diag "$err"
corpus=$top_srcdir/tests/fuzz/corpus/picture
for split in train test; do
    install -D -m 644 "$corpus/jpeg" "$node/srv/pictures/$split/a/1.jpg"
    install -D -m 644 "$corpus/png" "$node/srv/pictures/$split/b/1.png"
done
training=(hpc-train fit --model mnist-cnn --data /srv/pictures --resize 28x28 --batch-size 2 --save-weights)
capture as_user "${training[@]}" weights.safetensors
is "$status" 0 "it trains on JPEG and PNG pictures" || diag "$err"
hdf5=$(dpkg-deb --field "$(deb hpc-train)" Recommends | grep -o 'libhdf5[^ ,]*')
capture as_user "${training[@]}" made.weights.h5
like "$status $err" "^78 .*HDF5 is not on this machine" "without HDF5 the error names the missing library"
apt_in "$node" install "$hdf5"
capture as_user "${training[@]}" made.weights.h5
is "$status" 0 "with the recommended package $hdf5 it writes Keras' weights" || diag "$err"
apt_in "$node" --autoremove purge "$hdf5"
is "$(into_bare ls /tmp/hpc-train)" "" "no job directory is left"
# what a terminal shows after TAB
typed() {
    printf '%b' "$1" | into_bare setsid script --quiet --return --command 'env HISTFILE= TERM=dumb bash \
        --rcfile /usr/share/bash-completion/bash_completion -i' /dev/null 2>&1 | tr -d '\r\a'
}
out=$(typed 'srun --hpc-train-b\tcl\t\nhpc-train fit --bat\t\nsrun --exclus\t\nexit\n')
like "$out" "# srun --hpc-train-bind=closest" "bash completes the plugin's options of srun"
like "$out" "# hpc-train fit --batch-size=" "completion of hpc-train"
like "$out" "# srun --exclusive" "and of Slurm's commands"

# ---- another release of Slurm, by a package of the same name ----
another() { # VERSION: what apt-get would remove to install it
    in_bare "$node" sh -ec 'mkdir -p /srv/another/DEBIAN; printf "Package: slurm-wlm-basic-plugins\nVersion: $1\nArchitecture: amd64\nMaintainer: nobody <nobody@example.invalid>\nDescription: another\n" >/srv/another/DEBIAN/control
        dpkg-deb --build /srv/another /srv/packages/another.deb >/dev/null; rm -r /srv/another
        apt-get --simulate install /srv/packages/another.deb | sed -n "s/^Remv \([^ ]*\).*/\1/p"' another "$1"
}
unlike "$(another "$release.99-1")" slurm-spank-hpc-train "apt-get keeps the plugin with a later Slurm $release"
like "$(another "${release%.*}.$(printf %02d $((10#${release#*.} + 6)))-1")" slurm-spank-hpc-train "and removes it with the next release"

# ---- removed ----
line=/etc/slurm/plugstack.conf.d/hpc-train.conf
into_bare sh -c "echo '# mine' >>$line"
apt_in "$node" remove slurm-spank-hpc-train
ok $? "apt-get remove"
capture as_user srun echo fine
is "$out$err" fine "steps run, and no command complains of a missing plugin"
apt_in "$node" install "${packages[@]}"
capture as_user srun --hpc-train sh -c 'echo "$HPC_TRAIN_RANK"'
is "$out$err" 0 "installed again, it works"
is "$(into_bare tail -n 1 $line)" "# mine" "with the administrator's changes"
into_bare sh -c 'pkill slurmd; while pgrep slurmd >/dev/null; do sleep 0.1; done'
apt_in "$node" --autoremove purge slurm-spank-hpc-train hpc-train hpc-train-dev
ok $? "apt-get purge"
# what other packages brought, and apt keeps because others recommend it, is not ours
is "$(LC_ALL=C comm -13 <(echo "$before") <(files) | grep -vxFf <(cat "$node"/var/lib/dpkg/info/*.list))" "" "leaves no file behind"
is "$(in_bare "$node" dpkg-query --show '*hpc-train*' 2>/dev/null)" "" "dpkg lists no package"
done_testing
