#!/bin/bash
# plugin_cost.t: what the plugin costs a step: slurmstepd's memory, and the time until srun ends. The time is that of a
# quiet machine: on a busy one it says nothing.
# shellcheck disable=SC2154

# shellcheck source=tests/cluster/lib.sh
. "$(dirname "$0")/lib.sh"
on_cluster 2
# shellcheck source=tests/cluster/plugin_lib.sh
. "$(dirname "$0")/plugin_lib.sh"
needs_plugin
bench=$(cd "$(dirname "$0")/../bench" && pwd)

capture limit 300 "$bench/memory.sh" 5
ran "memory of slurmstepd"
mapfile -t lines <<<"$out"
diag "${lines[@]}"
is "$(grep -c 'more:' <<<"$out")" 3 "three kinds of steps are compared with one without the plugin"
most=$(sed -n 's/.*more: \(-\?[0-9]*\) kB, \(-\?[0-9]*\) kB/\1\n\2/p' <<<"$out" | sort -n | tail -n 1)
ok "$([ "${most:-9999}" -le 2048 ]; echo $?)" "at most 2 MB more"

capture limit 300 "$bench/latency.sh" 30
ran "30 pairs of steps"
diag "$out"
more=$(sed -n 's/.*difference \(-\?[0-9]*\)\..*/\1/p' <<<"$out")
ok "$([ "${more:-9999}" -lt 10 ]; echo $?)" "at most 10 ms more"
done_testing
