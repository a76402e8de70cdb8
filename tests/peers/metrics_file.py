"""The text of --metrics-file as Prometheus' own Python parsers read it: of the text format and of OpenMetrics."""
import math
import subprocess
import sys

from prometheus_client import parser
from prometheus_client.openmetrics import parser as openmetrics

tests = 0
failed = 0


def ok(passed, name):
    global tests, failed
    tests += 1
    failed += not passed
    print("ok" if passed else "not ok", tests, "-", name)


def same(a, b):
    return a == b or (math.isnan(a) and math.isnan(b))


RUN = {"job": "123", "model": 'back\\slash "quoted"\nof two lines, é', "strategy": "auto"}
VALUES = {  # of the whole run
    "last_step_timestamp_seconds": 1800000000, "workers": 2, "epoch": 2, "epochs": 8, "epoch_steps_done": 3,
    "epoch_steps": 123456789012, "loss": math.nan, "accuracy_ratio": 0.75, "validation_loss": -math.inf,
    "validation_accuracy_ratio": 1e-30, "learning_rate": 0.01, "step_seconds": 0.0125, "images_per_second": 1.5e7,
    "remaining_seconds": 90, "job_end_timestamp_seconds": 1800000100,
}
RANKS = {
    "rank_step_seconds": (0.25, math.inf), "rank_wait_seconds": (0.1, 0), "rank_input_seconds": (0.0015, 0),
    "rank_memory_bytes": (2 * 2**20, 1e6 * 2**20), "rank_gpu_utilization_ratio": (math.nan, 0.5),
}
NODES = ("node0", 'no}de="1",x')

text = subprocess.run(sys.argv[1], check=True, capture_output=True).stdout.decode()
for what, parse in (("text format", parser.text_string_to_metric_families),
                    ("OpenMetrics", openmetrics.text_string_to_metric_families)):
    families = {family.name: family for family in parse(text)}
    ok(set(families) == {"hpc_train_" + name for name in (*VALUES, *RANKS)}, f"{what}: all families")
    ok(all(f.type == "gauge" and f.documentation for f in families.values()), f"{what}: each is a gauge with a help")
    samples = {name: [(s.labels, s.value) for s in f.samples] for name, f in families.items()}
    ok(all(s.timestamp is None for f in families.values() for s in f.samples), f"{what}: no timestamps")
    for name, value in VALUES.items():
        ((labels, got),) = samples["hpc_train_" + name]
        ok(labels == RUN and same(got, value), f"{what}: {name}")
    for name, values in RANKS.items():
        got = samples["hpc_train_" + name]
        ok([labels for labels, _ in got] == [dict(RUN, rank=str(i), node=NODES[i]) for i in range(2)] and
           all(same(a, b) for (_, a), b in zip(got, values)), f"{what}: {name} of each rank")
print(f"1..{tests}")
sys.exit(failed > 0)
