#!/usr/bin/env python3
"""table.py RESULTS: the short table that tests/gpu/run ends with, and RESULTS/results.md for doc/gpu-results.md.

RESULTS holds steps.tsv (name, outcome, seconds, detail), device.txt, and one JSON file for each measurement:
ours-CASE.json (hpc-train's summary) and torch-CASE-MODE.json."""
import json
import os
import sys

# case: text, what the issue asks for, megabytes and GFLOP of an image's step in half precision (training-facts)
CASES = {
    "w1-64": ("W1, batch 64", 3.0, None),
    "w1-256": ("W1, batch 256", 3.0, None),
    "resnet50-128": ("ResNet-50 v1.5, 224x224, batch 128", 1.15, 219),
    "resnet50-256": ("ResNet-50 v1.5, 224x224, batch 256", 1.15, 219),
    "resnet50v2-256": ("ResNet50V2, 128x128, batch 256", 1.15, 72),
    "resnet152v2-256": ("ResNet152V2, 128x128, batch 256", 1.15, 151),
}
MODES = ("eager", "compile", "graph", "compile-graph")


def load(folder, name):
    try:
        with open(os.path.join(folder, name)) as file:
            return json.load(file)
    except (OSError, ValueError):
        return {}


def number(value, form="{:,.0f}"):
    return form.format(value) if value else "not measured"


def throughput(folder, bandwidth, outcomes):
    rows = []
    for case, (text, wanted, megabytes) in CASES.items():
        ours = load(folder, f"ours-{case}.json").get("images_per_second")
        peers = {mode: load(folder, f"torch-{case}-{mode}.json").get("images_per_second") for mode in MODES}
        best = max((rate for rate in peers.values() if rate), default=None)
        share = ours * megabytes * 1e6 / bandwidth if ours and megabytes and bandwidth else None
        ratio = ours / best if ours and best else None
        # A mode that is missing might be the fastest; so might what a step that was cut off had not come to.
        doubts = [f"{mode} missing" for mode in MODES if not peers[mode]] if best else []
        if best and outcomes.get(f"torch-{case}", "ok") != "ok":
            doubts.append(f"torch-{case} {outcomes[f'torch-{case}']}")
        said = ", ".join([number(ratio, "at most {:.2f}x" if doubts else "{:.2f}x"), *doubts])
        rows.append([text, number(ours), *(number(peers[mode]) for mode in MODES), f"{said} (wanted {wanted:g}x)",
                     number(share and 100 * share, "{:.0f} %")])
    return rows


def memory(folder):
    rows = []
    for case, (text, _, _) in CASES.items():
        record = load(folder, f"ours-{case}.json")
        used, predicted = record.get("device_used_mb"), record.get("predicted_mb")
        apart = 100 * (predicted - used) / used if used and predicted else None
        rows.append([text, number(predicted), number(used), number(apart, "{:+.1f} %")])
    return rows


def steps(folder):
    rows = []
    try:
        with open(os.path.join(folder, "steps.tsv"), errors="replace", newline="\n") as file:
            rows = [(line.rstrip("\n").split("\t") + 4 * [""])[:4] for line in file]
            rows = list({row[0]: row for row in rows}.values())  # of a step that was made again, the last
    except OSError:
        pass
    return rows


def switches(folder):
    try:
        with open(os.path.join(folder, "switches.tsv")) as file:
            return [line.rstrip("\n").split("\t") for line in file]
    except OSError:
        return []


def lines(header, rows):
    yield "| " + " | ".join(header) + " |"
    yield "|" + "---|" * len(header)
    for row in rows:
        yield "| " + " | ".join(row) + " |"


def main():
    folder = sys.argv[1]
    bandwidth = load(folder, "bandwidth.json").get("bytes_per_second")
    done = steps(folder)
    rates, used = throughput(folder, bandwidth, {name: outcome for name, outcome, *_ in done}), memory(folder)
    with open(os.path.join(folder, "results.md"), "w") as out:
        with open(os.path.join(folder, "device.txt"), errors="replace") as device:
            out.write("\n".join(f"    {line.rstrip()}" for line in device) + "\n\n")
        write = lambda block: out.write("\n".join(block) + "\n\n")
        write(lines(("step", "outcome", "seconds", "what it said"), done))
        write(lines(("images/s", "hpc-train", "PyTorch eager", "torch.compile", "CUDA graph", "both", "of the best",
                     "of the bandwidth's limit"), rates))
        if found := switches(folder):
            write(lines(("switch", "case", "images/s without", "with", "verdict"), found))
        write(lines(("memory, MiB", "predicted", "used", "apart"), used))
    for row in done:
        print("{:22} {:10} {:>6} s  {}".format(*row))
    for row in rates:
        print("{:36} ours {:>12}  eager {:>12}  compile {:>12}  graph {:>12}  both {:>12}  {}  {}".format(*row))
    for row in used:
        print("{:36} predicted {:>12} MiB  used {:>12} MiB  {}".format(*row))


main()
