#!/bin/bash
# rpm.t: the RPMs, built from what `make dist` packs with this machine's libraries (which are no RPMs, so that
# dependencies are not looked at here), read, and installed into and removed from an empty folder. Takes minutes.
# shellcheck disable=SC2154 # lib.sh sets out, err and status

# shellcheck source=tests/cluster/lib.sh
. "$(dirname "$0")/../cluster/lib.sh"
# shellcheck source=tests/packages/bare.sh
. "$top_srcdir/tests/packages/bare.sh"
for tool in rpmbuild rpmspec rpm2cpio cpio; do
    command -v $tool >/dev/null || skip_all "$tool is not installed: apt-get install rpm cpio"
done
new_work
log=${top_builddir:-$top_srcdir/build}/rpm-packages.log
make_tarball || exit
release=$(sed -n 's/.*SLURM_RELEASE=*'"'"'*\([0-9.]*\).*/\1/p' "$bare_work/config.log" | head -n 1)
like "$release" '^[0-9]+\.[0-9]+$' "the release of Slurm's headers is known"

timeout 1800 rpmbuild -ta --nodeps --nocheck --define "_topdir $bare_work/rpm" "$tarball" >"$log" 2>&1
ok $? "rpmbuild -ta builds" || { diag "$(tail -n 30 "$log")"; exit 1; }
rpm_of() { ls "$bare_work"/rpm/RPMS/*/"$1"-[0-9]*.rpm; }
contents() { rpm --query --package --list "$(rpm_of "$1")" 2>>"$log" | grep -v -e '^/usr/share/doc/' -e '^/usr/share/licenses' -e '^/usr/lib/.build-id' | sed 's/\.gz$//' | LC_ALL=C sort; }
is "$(contents slurm-spank-hpc-train)" "\
/etc/bash_completion.d/hpc-train-slurm
/etc/slurm/plugstack.conf.d
/etc/slurm/plugstack.conf.d/hpc-train.conf
/usr/bin/hpc-train-stage
/usr/lib/tmpfiles.d/hpc-train.conf
/usr/lib64/slurm/spank_hpc_train.so
/usr/libexec/hpc-train
/usr/libexec/hpc-train/hpc-train-gpus
/usr/sbin/hpc-train-check
/usr/share/bash-completion/completions/hpc-train-stage
/usr/share/man/man1/hpc-train-stage.1
/usr/share/man/man8/hpc-train-check.8
/usr/share/man/man8/spank_hpc_train.8" "the plugin's package"
is "$(contents hpc-train)" "\
/usr/bin/hpc-train
/usr/lib64/libhpctrain.so.0
/usr/lib64/libhpctrain.so.0.0.0
/usr/share/bash-completion/completions/hpc-train
/usr/share/hpc-train/published.csv
/usr/share/hpc-train/python/hpc_train.py
/usr/share/man/man1/hpc-train-bench.1
/usr/share/man/man1/hpc-train-check.1
/usr/share/man/man1/hpc-train-checkpoint.1
/usr/share/man/man1/hpc-train-data.1
/usr/share/man/man1/hpc-train-evaluate.1
/usr/share/man/man1/hpc-train-export.1
/usr/share/man/man1/hpc-train-fit.1
/usr/share/man/man1/hpc-train-info.1
/usr/share/man/man1/hpc-train-launch.1
/usr/share/man/man1/hpc-train-plan.1
/usr/share/man/man1/hpc-train-predict.1
/usr/share/man/man1/hpc-train-report.1
/usr/share/man/man1/hpc-train-summary.1
/usr/share/man/man1/hpc-train-top.1
/usr/share/man/man1/hpc-train.1
/usr/share/man/man7/hpc-train-models.7" "the command's"
is "$(contents hpc-train-devel | grep -v '\.h$')" $'/usr/include/hpctrain\n/usr/lib64/libhpctrain.so' "headers of the -devel package"
requires() { rpm --query --package --requires "$@" 2>>"$log"; }
like "$(requires "$(rpm_of slurm-spank-hpc-train)" | grep '^slurm' | sort | tr '\n' ' ')" "^slurm < ${release%.*}\.[0-9]+ slurm >= $release \$" "the plugin's package needs this release of Slurm"
tar -xf "$tarball" -C "$bare_work" --wildcards '*/hpc-train.spec' --strip-components 1
like "$(rpmspec --query --define 'slurm_release 23.11' --requires "$bare_work/hpc-train.spec" | tr '\n' ' ')" "slurm >= 23.11 slurm < 23.12 " "or that which is defined"
is "$(rpm --query --package --configfiles "$(rpm_of slurm-spank-hpc-train)" 2>>"$log")" $'/etc/bash_completion.d/hpc-train-slurm\n/etc/slurm/plugstack.conf.d/hpc-train.conf' "configuration files are marked as such"

# ---- in an empty folder ----
root=$bare_work/root
mkdir "$root"
in_root() { rpm --root "$root" --dbpath /var/lib/rpm --nodeps --nosignature "$@" >>"$log" 2>&1; }
in_root --install "$(rpm_of slurm-spank-hpc-train)" "$(rpm_of hpc-train)" "$(rpm_of hpc-train-devel)"
ok $? "rpm installs them" || diag "$(tail "$log")"
is "$(grep -v '^#' "$root/etc/slurm/plugstack.conf.d/hpc-train.conf")" "optional /usr/lib64/slurm/spank_hpc_train.so" "the plugin is loaded from its installed path"
like "$(grep helper= "$root/etc/slurm/plugstack.conf.d/hpc-train.conf" | tr '\n' ' ')" "helper=/usr/bin/hpc-train-stage .*gpu_helper=/usr/libexec/hpc-train/hpc-train-gpus" "so are its helpers"
in_root --verify --nomtime slurm-spank-hpc-train hpc-train hpc-train-devel
ok $? "rpm --verify reports no differences"
in_root --erase slurm-spank-hpc-train hpc-train hpc-train-devel
ok $? "rpm removes them"
is "$(find "$root" -not -type d -not -path "$root/var/lib/rpm/*")" "" "no file is left"
# What rpmlint says beside this is for the one who signs and publishes (signature, packager, group), or is meant: the
# library and its command are one package; rpm itself calls ldconfig; the newer hash section alone is used;
# systemd's folder is below lib everywhere.
meant='no-signature|no-packager-tag|no-group-tag|(non-versioned-file|executable)-in-library-package|no-binary'
meant+='|library-without-ldconfig-post(u|i)n|missing-hash-section|hardcoded-library-path.*tmpfiles.d'
if command -v rpmlint >/dev/null; then
    out=$(rpmlint "$bare_work/hpc-train.spec" "$bare_work"/rpm/RPMS/*/*.rpm 2>&1)
    like "$out" "[0-9]+ errors" "rpmlint reads the spec and the packages"
    is "$(grep ': E: ' <<<"$out" | grep -vE ": E: ($meant)")" "" "rpmlint reports no other error"
fi
done_testing
