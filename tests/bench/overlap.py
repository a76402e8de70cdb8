#!/usr/bin/env python3
"""overlap.py TRACE...: what a step costs and hides, from the traces of `--timeline`: medians over ranks and steps, in ms.

wall and CPU of each part (CPU: of the thread that steps, so other programs on its core do not lengthen it), how long
reductions were under way, and the share of that which lay beside backward; two traces, of one rank and of several with
as many pictures each, give the speed-up that the CPU times allow where each rank has a core of its own.
"""
import json
import sys
from collections import defaultdict
from statistics import median

PARTS = ("input", "forward", "backward", "wait for sums", "update")


def steps_of(path):
    with open(path, encoding="utf-8") as file:
        events = json.load(file)["traceEvents"]
    steps = defaultdict(list)
    for e in events:
        if e["ph"] == "X":
            steps[e["pid"], e["args"]["step"]].append(e)
    return list(steps.values()), len({rank for rank, _ in steps})


def covered(spans):
    """The length of the union of spans."""
    total, end = 0.0, float("-inf")
    for first, last in sorted(spans):
        total += max(0.0, last - max(first, end))
        end = max(end, last)
    return total


def main():
    busy, sizes = [], []
    for path in sys.argv[1:]:
        steps, ranks = steps_of(path)
        sizes.append(ranks)
        rows = {name: [e for step in steps for e in step if e["name"] == name] for name in PARTS}
        print(f"{path}: {len(steps)} steps of {ranks} rank{'s' if ranks > 1 else ''}")
        for name in PARTS:
            if rows[name]:
                print(f"  {name:14s} wall {median(e['dur'] for e in rows[name]) / 1e3:9.2f}"
                      f"  CPU {median(e['tdur'] for e in rows[name]) / 1e3:9.2f}")
        shares, lengths = [], []
        for step in steps:
            spans = [(e["ts"], e["ts"] + e["dur"]) for e in step if e["name"].startswith("reduction")]
            backward = next(e for e in step if e["name"] == "backward")
            end = backward["ts"] + backward["dur"]
            if spans:
                lengths.append(covered(spans) / 1e3)
                shares.append(covered((a, min(b, end)) for a, b in spans if a < end) / covered(spans))
        if shares:
            print(f"  reductions under way {median(lengths):.2f}, beside backward {100 * median(shares):.0f} %")
        busy.append(median(sum(e["tdur"] for e in step if e["name"] in PARTS and e["name"] != "wait for sums")
                           for step in steps) / 1e3)
        print(f"  CPU of a step without the wait {busy[-1]:.2f}")
    if len(busy) == 2:
        print(f"speed-up that the CPU times allow: {sizes[1] / sizes[0] * busy[0] / busy[1]:.2f}")


if __name__ == "__main__":
    main()
