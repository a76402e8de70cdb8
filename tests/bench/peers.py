#!/usr/bin/env python3
"""peers.py [--case NAME]... [--rounds N] [--steps N] [--data DIR] [--build DIR]: our training steps beside TensorFlow's
and PyTorch's, on the same cores in the same minutes.

Each figure is a process of its own. A round runs every system once, each in another order than the round before; the
table has medians over the rounds, and the medians of each round's ratio to ours. The interpreters are named by
HPC_TRAIN_TF_PYTHON and HPC_TRAIN_TORCH_PYTHON; a system whose interpreter is not named is left out. The MNIST cases
read DIR, a folder with the four IDX files; the others use made-up pictures in memory. Run it on a quiet machine."""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
# model, batch, cores (0: all), steps timed
CASES = {
    "w1-64": ("mnist-cnn", 64, 0, 938),
    "w1-64-1core": ("mnist-cnn", 64, 1, 938),
    "w1-256": ("mnist-cnn", 256, 0, 235),
    "w3-100": ("mnist-convnet", 100, 0, 600),
    "resnet50v2": ("resnet50v2", 32, 0, 8),
    "resnet152v2": ("resnet152v2", 16, 0, 6),
    "mobilenetv2": ("mobilenetv2", 32, 0, 12),
    "densenet121": ("densenet121", 32, 0, 4),
    "efficientnetb0": ("efficientnetb0", 32, 0, 8),
    "start": ("mnist-cnn", 64, 0, 1),
}
SYSTEMS = {  # name: script, mode, and where its interpreter is named
    "hpc-train": None,
    "keras fit": ("peer_tf.py", "fit", "HPC_TRAIN_TF_PYTHON"),
    "tf.function": ("peer_tf.py", "loop", "HPC_TRAIN_TF_PYTHON"),
    "torch eager": ("peer_torch.py", "eager", "HPC_TRAIN_TORCH_PYTHON"),
    "torch.compile": ("peer_torch.py", "compile", "HPC_TRAIN_TORCH_PYTHON"),
}


def command(system, model, batch, threads, steps, options, summary):
    """What to run, and with which variables."""
    if SYSTEMS[system] is not None:
        script, mode, variable = SYSTEMS[system]
        return [os.environ[variable], os.path.join(HERE, script), model, mode, str(batch), str(threads), str(steps),
                options.data or ""], {"OMP_NUM_THREADS": str(threads)}
    ours = [os.path.join(options.build, "hpc-train")]
    common = ["--model", model, "--batch-size", str(batch), "--summary-json", summary]
    if model.startswith("mnist"):  # an epoch like theirs: the second, or the only one
        epochs = "1" if steps == 1 else "2"
        return ours + ["fit", *common, "--data", options.data, "--verbose", "0", "--epochs", epochs,
                       "--steps-per-epoch", str(steps)], {}
    return ours + ["bench", *common, "--resize", "128x128", "--classes", "10", "--steps", str(steps)], {}


def measure(system, case, options):
    """One process: seconds of a step, seconds from its start to the end of its first step, peak memory in MiB."""
    model, batch, cores, steps = CASES[case]
    steps = min(steps, options.steps) if options.steps else steps
    cpus = sorted(os.sched_getaffinity(0))
    cpus = cpus[:cores] if cores else cpus
    with tempfile.NamedTemporaryFile(suffix=".json") as summary, tempfile.TemporaryFile("w+") as errors:
        argv, variables = command(system, model, batch, len(cpus), steps, options, summary.name)
        began = time.time()
        process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=errors, text=True,
                                   env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", **variables},
                                   preexec_fn=lambda: os.sched_setaffinity(0, cpus))
        output = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            errors.seek(0)
            return {"error": (errors.read().strip().splitlines() or ["no message"])[-1]}
        if SYSTEMS[system] is None:
            found = json.load(open(summary.name))
            epochs = found["epoch_seconds"]
            result = {"step": epochs[-1] / steps if epochs else found["step_ms"] / 1e3,
                      "start": found["start_seconds"] + found["train_seconds"] if steps == 1 else None}
        else:
            found = json.loads(output.strip().splitlines()[-1])
            result = {"step": found["step"], "start": found["first_step_ended"] - began}
        result["mib"] = usage.ru_maxrss / 1024
        return result


def median(values):
    values = [v for v in values if v is not None]
    return statistics.median(values) if values else None


def row(name, results, ours, key):
    """Medians of one system, and of its rounds' ratios to ours."""
    good = [r for r in results if "error" not in r]
    if not good:
        print(f"{name:14s} failed: {results[0]['error'][:90]}")
        return
    pairs = [r[key] / o[key] for r, o in zip(results, ours) if "error" not in r and "error" not in o]
    ratio = f"{statistics.median(pairs):6.2f}" if pairs else "     -"
    memory = median([r["mib"] for r in good])
    ours_memory = median([o.get("mib") for o in ours])
    share = f"{ours_memory / memory:6.2f}" if ours_memory else "     -"
    print(f"{name:14s} {1e3 * median([r[key] for r in good]):12.2f} {ratio} {memory:10.0f} {share}", flush=True)


def run_case(case, systems, options):
    model, batch, cores, steps = CASES[case]
    key = "start" if case == "start" else "step"
    print(f"\n{case}: {model}, batch {batch}, {cores or len(os.sched_getaffinity(0))} cores, "
          f"{options.rounds} rounds, load {os.getloadavg()[0]:.1f}", flush=True)
    results = {system: [] for system in systems}
    for round_number in range(options.rounds):
        turn = round_number % len(systems)
        for system in systems[turn:] + systems[:turn]:
            results[system].append(measure(system, case, options))
    what = "start ms" if case == "start" else "ms/step"
    print(f"{'':14s} {what:>12s} {'theirs':>6s} {'peak MiB':>10s} {'ours':>6s}\n"
          f"{'':14s} {'':>12s} {'/ours':>6s} {'':>10s} {'/theirs':>7s}")
    for system in systems:
        row(system, results[system], results["hpc-train"], key)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--case", action="append", choices=list(CASES), help="default: all")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=0, help="at most so many, for a quick look")
    parser.add_argument("--data", help="folder with MNIST's files")
    parser.add_argument("--build", default=os.path.join(HERE, "../../build"))
    parser.add_argument("--system", action="append", choices=list(SYSTEMS), help="besides ours; default: all")
    options = parser.parse_args()
    wanted = options.system or list(SYSTEMS)
    systems = [s for s in SYSTEMS if SYSTEMS[s] is None or (s in wanted and os.environ.get(SYSTEMS[s][2]))]
    for case in options.case or list(CASES):
        if CASES[case][0].startswith("mnist") and not options.data:
            sys.exit("peers.py: --data is missing: a folder with MNIST's files")
        run_case(case, systems, options)


main()
