#!/usr/bin/env python3
"""input.py FOLDER [--side N] [--batch N] [--rounds N] [--seconds S] [--cores N] [--build DIR]: how fast the JPEGs of
FOLDER/train/CLASS become batches of floats, ours beside tf.data and torch's DataLoader, on the same cores in the same
minutes; and what bounds it. The interpreters are named by HPC_TRAIN_TF_PYTHON and HPC_TRAIN_TORCH_PYTHON; one that is not
named is left out. Images per second of the clock and of processor time, medians over the rounds, each with the median of
the rounds' ratios; and the share of its cores that each got. Where shares differ, other programs had the rest, and a
system with more threads gets more of what is left: then only processor time compares."""
import argparse
import os
import statistics
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))


def systems(options):
    ours = os.path.join(options.build, "tests/bench/input")
    found = {f"ours, {what}": [ours, what] for what in ("files", "encoded", "decoded")}
    for name, script, variable in (("tf.data", "input_tf.py", "HPC_TRAIN_TF_PYTHON"),
                                   ("DataLoader", "input_torch.py", "HPC_TRAIN_TORCH_PYTHON")):
        if variable in os.environ:
            found[name] = [os.environ[variable], os.path.join(HERE, script)]
    found["libjpeg alone"] = [ours, "decode"]
    found["writing alone"] = [ours, "write"]
    return found


def measure(command, options, cpus):
    variables = dict(os.environ, HPC_TRAIN_BENCH_THREADS=str(len(cpus)), TF_CPP_MIN_LOG_LEVEL="3")
    done = subprocess.run(
        [*command, options.folder, str(options.side), str(options.batch), str(options.seconds)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=variables,
        preexec_fn=lambda: os.sched_setaffinity(0, cpus))
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stderr[-2000:]}")
    wall, cpu = done.stdout.split()[-2:]
    return float(wall) / len(cpus), float(cpu)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder")
    for name, value in (("side", 128), ("batch", 128), ("rounds", 5), ("cores", 1)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--build", default=os.path.join(HERE, "../../build"))
    options = parser.parse_args()
    cpus = sorted(os.sched_getaffinity(0))[:options.cores]
    rates = {name: [] for name in systems(options)}
    for number in range(options.rounds):
        order = list(systems(options).items())
        for name, command in order[number % len(order):] + order[:number % len(order)]:
            rates[name].append(measure(command, options, cpus))
    print(f"{options.side}x{options.side}, batch {options.batch}, {len(cpus)} core(s), {options.rounds} rounds, "
          f"load {os.getloadavg()[0]:.1f}")
    print(f"{'':16}{'images/s/core':>15}{'ours (files) is':>17}{'images/CPU s':>15}{'ours (files) is':>17}{'share':>7}")
    for name, found in rates.items():
        line = f"{name:16}"
        for kind in range(2):
            ratio = statistics.median(ours[kind] / other[kind] for ours, other in zip(rates["ours, files"], found))
            line += f"{statistics.median(rate[kind] for rate in found):15.0f}{ratio:16.2f}x"
        print(line + f"{statistics.median(wall / cpu for wall, cpu in found):7.2f}")


if __name__ == "__main__":
    main()
