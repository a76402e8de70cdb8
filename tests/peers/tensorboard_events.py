"""What TensorBoard reads in the event files of a run, compared with its history.csv and its weights. Prints TAP.

usage: tensorboard_events.py FILE; a check a line: values DIR, histograms DIR EPOCHS WEIGHTS gradients|weights,
       texts DIR NAME=VALUE..., count DIR EPOCHS, cut DIR, inspect DIR, serve DIR OPTION..."""
import csv
import glob
import json
import os
import re
import select
import subprocess
import sys
import time
import urllib.parse
import urllib.request

import numpy as np
from tensorboard.backend.event_processing import event_file_loader, plugin_event_accumulator
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.compat.proto import event_pb2
from tensorboard.plugins.hparams import metadata as hparams_metadata
from tensorboard.plugins.histogram import summary_v2
from tensorboard.util import tensor_util

from tensors import load_file

SECONDS = 120
tests = 0


def ok(good, name, why=""):
    global tests
    tests += 1
    print(("ok" if good else "not ok"), tests, "-", name)
    if not good and why:
        print("# " + str(why).replace("\n", "\n# "))


def history(folder):
    """Tags of both folders as history.csv has them: {run: {tag: [[epoch, value]]}}."""
    runs = {"train": {}, "validation": {}}
    with open(f"{folder}/history.csv") as file:
        for row in csv.DictReader(file):
            for column, value in row.items():
                if column != "epoch":
                    run = "validation" if column.startswith("val_") else "train"
                    tag = "epoch_" + column.removeprefix("val_")
                    runs[run].setdefault(tag, []).append([int(row["epoch"]), float(np.float32(value))])
    return runs


def points(folder):
    reader = EventAccumulator(folder, size_guidance={"scalars": 0, "tensors": 0})
    reader.Reload()
    return {tag: [[e.step, e.value] for e in reader.Scalars(tag)] for tag in reader.Tags()["scalars"]}


PACE = {"images_per_second", "step_ms"}


def same(got, want):
    """Equal to the last bit of a float32, as history.csv has nine digits."""
    return got.keys() == want.keys() and all(
        [p[0] for p in got[t]] == [p[0] for p in want[t]] and
        all(np.float32(a[1]) == np.float32(b[1]) for a, b in zip(got[t], want[t])) for t in want)


def values(folder):
    for run, want in history(folder).items():
        got = points(f"{folder}/{run}")
        epochs = [p[0] for p in want["epoch_loss"]]
        if run == "train":
            pace = {tag: got.pop(tag, []) for tag in PACE}
            ok(all([p[0] for p in pace[tag]] == epochs and all(p[1] > 0 for p in pace[tag]) for tag in PACE),
               f"{folder}: {run} has the pace of {len(epochs)} epochs", pace)
        ok(same(got, want), f"{folder}: {run} has the values of history.csv, epoch by epoch, each once", f"{got}\n{want}")
        for path in sorted(glob.glob(f"{folder}/{run}/*tfevents*")):
            check_file(path)


def check_file(path):
    """Its records are the bytes that TensorBoard's own library makes of them; steps do not fall."""
    raws = list(event_file_loader.RawEventFileLoader(path).Load())
    events = [event_pb2.Event.FromString(raw) for raw in raws]
    name = "/".join(path.split("/")[-3:-1])
    ok(events[0].file_version == "brain.Event:2" and events[1].session_log.status == 1 and
       all(raw == e.SerializeToString() or "hparams" in str(e) for raw, e in zip(raws, events)),
       f"{name}: version, start, and records as protobuf's library writes them")
    steps = [e.step for e in events[1:]]
    ok(steps == sorted(steps) and all(abs(time.time() - e.wall_time) < 86400 for e in events),
       f"{name}: steps rise, and times are today's", steps)


def tensors(folder):
    reader = plugin_event_accumulator.EventAccumulator(folder, size_guidance={"tensors": 0}, tensor_size_guidance={"histograms": 0})
    reader.Reload()
    return reader


def histograms(folder, epochs, weights, gradients):
    reader = tensors(f"{folder}/train")
    epochs = [int(e) for e in epochs.split(",")]
    want = load_file(weights)
    tags = [t for t in reader.Tags()["tensors"] if reader.SummaryMetadata(t).plugin_data.plugin_name == "histograms"]
    expected = [f"{name}/histogram" for name in want]
    if gradients == "gradients":
        expected += [f"{name}/gradient" for name in want]
    ok(sorted(tags) == sorted(expected), f"{folder}: histograms of each parameter's {gradients}", tags)
    ok(all([e.step for e in reader.Tensors(t)] == epochs for t in tags), f"{folder}: of epochs {epochs}")
    good, why = True, []
    for name, tensor in want.items():
        got = tensor_util.make_ndarray(reader.Tensors(f"{name}/histogram")[-1].tensor_proto)
        own = tensor_util.make_ndarray(summary_v2.histogram_pb("x", tensor).value[0].tensor)
        if got.shape != own.shape or np.abs(got - own).max() > 1e-9:
            why.append(f"{name}: {got} {own}")
    ok(not why, f"{folder}: the last of the weights that are saved, bucket by bucket", "\n".join(why))
    if gradients == "gradients":
        sizes = {n: tensor_util.make_ndarray(reader.Tensors(f"{n}/gradient")[-1].tensor_proto) for n in want}
        ok(all(h[:, 2].sum() == want[n].size and h[0, 0] < 0 < h[-1, 1] for n, h in sizes.items()),
           f"{folder}: gradients of all values, of both signs", sizes)


def texts(folder, *settings):
    reader = tensors(f"{folder}/train")
    wanted = dict(s.split("=") for s in settings)
    model, table = (tensor_util.make_ndarray(reader.Tensors(t)[0].tensor_proto).item().decode() for t in ("model", "settings"))
    summary = subprocess.run([os.environ["top_builddir"] + "/hpc-train", "summary", "--model", wanted["model"]],
                             capture_output=True, text=True, check=True).stdout
    ok(model.startswith("```\nModel: ") and summary.startswith(model[4:-4]), "the model's summary, as a block of code", model)
    rows = dict(line.strip("| ").split(" | ") for line in table.splitlines()[2:])
    ok(all(rows[k.replace("_", " ")] == v for k, v in wanted.items()), "the settings, as a table", table)
    start = hparams_metadata.parse_session_start_info_plugin_data(
        reader.SummaryMetadata("_hparams_/session_start_info").plugin_data.content)
    got = {k: v.string_value or f"{v.number_value:g}" for k, v in start.hparams.items()}
    ok(got == wanted, "and as hparams", got)
    end = hparams_metadata.parse_session_end_info_plugin_data(
        reader.SummaryMetadata("_hparams_/session_end_info").plugin_data.content)
    ok(end.status == 1 and end.end_time_secs >= start.start_time_secs, "which says that it has ended well", end)


def count(folder, epochs):
    got = points(folder)["epoch_loss"]
    ok([p[0] for p in got] == list(range(int(epochs))), f"{folder} has {epochs} epochs", got)


def cut(folder):
    want = history(folder)["train"]
    got = points(f"{folder}/train")
    ok(all(got[tag] == want[tag] for tag in want) and all(len(got[tag]) == len(want["epoch_loss"]) for tag in PACE),
       f"{folder} is read up to where it is cut", got)


def inspect(folder):
    out = subprocess.run([sys.executable, "-m", "tensorboard.main", "--inspect", "--logdir", folder], capture_output=True,
                         text=True, timeout=SECONDS, check=False)
    ok(out.returncode == 0 and "epoch_loss" in out.stdout and "sessionlog:start" in out.stdout, f"tensorboard --inspect {folder}", out)


def address_of(server):
    """From what it says on standard error."""
    said, end = "", time.time() + SECONDS
    while time.time() < end and server.poll() is None:
        if select.select([server.stderr], [], [], 0.1)[0]:
            said += os.read(server.stderr.fileno(), 65536).decode(errors="replace")
        found = re.search(r"(http://\S+?)/? \(Press", said)
        if found:
            return found[1], said
    return None, said


def ask(address, what, **arguments):
    query = urllib.parse.urlencode(arguments)
    with urllib.request.urlopen(f"{address}/data/plugin/{what}?{query}", timeout=SECONDS) as answer:
        return json.load(answer)


def read_all(address, want):
    """The curves of both runs, once they are loaded; and what there is of other plugins."""
    end = time.time() + SECONDS
    while time.time() < end:
        tags = ask(address, "scalars/tags")
        if all(want[run].keys() <= tags.get(run, {}).keys() for run in want):
            got = {run: {tag: [p[1:] for p in ask(address, "scalars/scalars", run=run, tag=tag)] for tag in want[run]} for run in want}
            if all(len(got[run][tag]) == len(want[run][tag]) for run in want for tag in want[run]):
                return got
        time.sleep(0.2)
    return {"train": {}, "validation": {}}


def serve(folder, *options):
    want = history(folder)
    name = " ".join(("tensorboard",) + options)
    server = subprocess.Popen([sys.executable, "-m", "tensorboard.main", "--logdir", folder, "--host", "127.0.0.1", "--port", "0",
                               *options], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)
    try:
        address, said = address_of(server)
        if address is None:
            ok(False, f"{name} begins", said)
            return
        got = read_all(address, want)
        for run in want:
            ok(same(got[run], want[run]), f"{name} has the curves of {folder}/{run}", got[run])
        ok("conv2d/kernel/histogram" in ask(address, "histograms/tags").get("train", {}), f"{name} has its histograms")
        ok(sorted(ask(address, "text/tags").get("train", [])) == ["model", "settings"], f"{name} has its texts")
    finally:
        server.terminate()
        server.wait(SECONDS)


CHECKS = {check.__name__: check for check in (values, histograms, texts, count, cut, inspect, serve)}
with open(sys.argv[1]) as lines:
    for line in lines:
        check, *arguments = line.split()
        CHECKS[check](*arguments)
print(f"1..{tests}")
