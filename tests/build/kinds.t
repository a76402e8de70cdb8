#!/bin/bash
# kinds.t: which kinds of tests configure found nothing to build with. `make check` skips them and says so;
# `./quickstart check`, which installs what they need, fails. CUDA is not Debian's, and never more than skipped.

# shellcheck source=tests/cluster/lib.sh
. "$(dirname "$0")/../cluster/lib.sh"
IFS=';' read -ra untested <<<"${HPC_TRAIN_UNTESTED-}"
for kind in "${untested[@]}"; do
    if [ -n "${HPC_TRAIN_ALL_KINDS-}" ] && [[ $kind != GPU* ]]; then ok 1 "$kind"; else skip "${kind%%: *}" "not built: ${kind#*: }, then configure again"; fi
done
ok 0 "kinds of tests are looked at"
done_testing
