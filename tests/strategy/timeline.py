"""timeline.py FILE RANKS STEPS: is FILE a Chrome trace of so many steps on so many ranks, in which reductions begin
before the backward of their step ends?"""
import json
import sys
from collections import defaultdict

path, ranks, steps = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
with open(path, encoding="utf-8") as file:
    events = json.load(file)["traceEvents"]
names = {e["pid"]: e["args"]["name"] for e in events if e["ph"] == "M" and e["name"] == "process_name"}
assert sorted(names) == list(range(ranks)), names
assert all(names[rank].startswith(f"rank {rank} (") for rank in names), names
found = defaultdict(list)
for e in events:
    if e["ph"] == "X":
        assert e["dur"] >= 0, e
        found[e["pid"], e["args"]["step"]].append(e)
assert len(found) == ranks * steps, sorted(found)
for at, step in found.items():
    parts = {e["name"]: e for e in step if not e["name"].startswith("reduction")}
    reductions = sorted((e for e in step if e["name"].startswith("reduction")), key=lambda e: e["tid"])
    assert sorted(parts) == sorted(["input", "forward", "backward", "wait for sums", "update"]), (at, sorted(parts))
    assert [e["name"] for e in reductions] == [
        f"reduction {i}" for i in range(len(reductions))], at
    order = [parts[name] for name in ("input", "forward", "backward", "wait for sums", "update")]
    for part in order:
        assert 0 <= part["tdur"] <= part["dur"] + 1000, (at, part)  # clocks of threads tick more coarsely
    assert parts["forward"]["tdur"] > 0 and parts["backward"]["tdur"] > 0, at
    for before, after in zip(order, order[1:]):
        assert before["ts"] + before["dur"] <= after["ts"] + 0.002, (at, before, after)
    end = parts["backward"]["ts"] + parts["backward"]["dur"]
    early = [e for e in reductions if parts["backward"]["ts"] < e["ts"] < end]
    assert len(reductions) > 2 and len(early) == len(reductions) - 1, (at, len(reductions), len(early))
    assert reductions[-1]["ts"] >= end - 0.002 and all(
        e["ts"] + e["dur"] <= parts["wait for sums"]["ts"] + parts["wait for sums"]["dur"] + 0.002 for e in reductions), at
