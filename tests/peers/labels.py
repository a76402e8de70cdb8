"""`hpc-train fit --labels` and Keras' fit, from the same weights and pictures: losses and metrics of three epochs, by several
strategies, and of `evaluate`; `predict` writes the model's outputs. Prints TAP.

usage: labels.py HPC_TRAIN"""
import csv
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib

import numpy as np
import keras
from keras import layers, losses, optimizers
from tap import Tap

PICTURES, SIDE, EPOCHS = 24, 12, 3  # an epoch is one step of all pictures: their order does not matter
RATE, MOMENTUM = 0.05, 0.9


def write_png(path, pixels):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    height, width, _ = pixels.shape
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)) +
                   chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def make_pictures(folder, rng, large):
    """Names and pixels. large: every third picture is stored at twice the size, whose halving gives these pixels back, so that
    pictures are decoded and resized in each step."""
    os.makedirs(f"{folder}/more, of them")
    pixels = rng.integers(0, 256, (PICTURES, SIDE, SIDE, 3), dtype=np.uint8)
    names = [f"{'more, of them/' if i % 2 else ''}{(7 * i) % PICTURES:02}.png" for i in range(PICTURES)]
    for i, name in enumerate(names):
        twice = np.repeat(np.repeat(pixels[i], 2, 0), 2, 1)
        write_png(f"{folder}/{name}", twice if large and i % 3 == 0 else pixels[i])
    return names, pixels.astype(np.float32) / np.float32(255)


def write_labels(path, columns, names, rows, rng):
    order = rng.permutation(len(names))
    with open(path, "w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["file"] + columns)
        table.writerows([names[i]] + [f"{v:.9g}" for v in rows[i]] for i in order)


def build(outputs, activation):
    keras.utils.set_random_seed(4)
    return keras.Sequential([
        layers.Input((SIDE, SIDE, 3)), layers.Conv2D(8, 3, strides=2, activation="relu"), layers.Flatten(),
        layers.Dense(16, activation="relu"), layers.Dense(outputs, activation=activation)])


def launch(ranks):
    return ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", str(ranks)] if ranks > 1 else []


def run(command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} ends with {done.returncode}: {done.stdout}{done.stderr}")
    return done.stdout


def apart(ours, theirs):
    """Of lists of numbers: the largest difference, relative to the number."""
    if len(ours) != len(theirs):
        return 9
    return max(abs(a - b) / max(abs(b), 1e-3) for a, b in zip(ours, theirs))


def fit(program, folder, ranks, options):
    log = f"{folder}/log"
    shutil.rmtree(log, ignore_errors=True)
    lines = run(launch(ranks) + [
        program, "fit", "--model", f"{folder}/model.json", "--weights", f"{folder}/first.weights.h5", "--data", f"{folder}/train",
        "--labels", f"{folder}/train.csv", "--validation-data", f"{folder}/test", "--validation-labels", f"{folder}/test.csv",
        "--global-batch-size", str(PICTURES), "--epochs", str(EPOCHS), "--device", "cpu", "--learning-rate", str(RATE),
        "--momentum", str(MOMENTUM), "--resize", f"{SIDE}x{SIDE}", "--log-dir", log, "--save-weights",
        f"{folder}/last.safetensors", "--summary-json", f"{folder}/summary.json", "--verbose", "2"] + options)
    with open(f"{log}/history.csv", encoding="utf-8") as file:
        table = list(csv.DictReader(file))
    return {key: [float(row[key]) for row in table] for key in table[0] if key not in ("epoch", "learning_rate")}, lines


def compare(tap, what, history, theirs):
    for key in sorted(theirs):
        own = {"binary_accuracy": "accuracy", "val_binary_accuracy": "val_accuracy"}.get(key, key)
        worst = apart(history.get(own, []), theirs[key])
        tap.ok(worst < 1e-4, f"{what}: {own} of {EPOCHS} epochs is Keras' {key} (to {worst:.1e})")


def check_case(tap, program, case, ranks, large):
    name, outputs, activation, loss, metrics, rows_of, option, own = case
    rng = np.random.default_rng(11)
    columns = [f"part {i}" if i != 1 else 'a "b", c' for i in range(outputs)]
    with tempfile.TemporaryDirectory() as folder:
        x, y, names = {}, {}, {}
        for part in ["train", "test"]:
            names[part], x[part] = make_pictures(f"{folder}/{part}", rng, large)
            y[part] = rows_of(rng, x[part], outputs)
            write_labels(f"{folder}/{part}.csv", columns, names[part], y[part], rng)
        model = build(outputs, activation)
        model.save_weights(f"{folder}/first.weights.h5")
        with open(f"{folder}/model.json", "w", encoding="utf-8") as file:
            file.write(model.to_json())
        model.compile(optimizers.SGD(RATE, momentum=MOMENTUM), loss, metrics=metrics)
        theirs = model.fit(x["train"], y["train"], batch_size=PICTURES, epochs=EPOCHS, verbose=0,
                           validation_data=(x["test"], y["test"]), validation_batch_size=PICTURES).history
        ways = [(1, [])]
        if ranks > 1 and not large and name in ("several classes", "regression"):
            ways += [(2, ["--strategy", "multi-worker-mirrored"]), (2, ["--strategy", "mirrored", "--replicas", "2"]),
                     (1, ["--strategy", "central-storage", "--replicas", "3"]), (2, ["--strategy", "pipeline"]),
                     (2, ["--strategy", "hybrid"])]
        elif ranks > 1:
            ways += [(2, [])]
        for count, strategy in ways:
            history, lines = fit(program, folder, count, option + strategy)
            what = f"{name}{', decoded in each step' if large else ''}, {count} rank{'s' if count > 1 else ''} {' '.join(strategy)}"
            compare(tap, what, history, theirs)
            last = {key: values[-1] for key, values in history.items()}
            ended = [line for line in lines.splitlines() if f" - {own}: " in line]
            said = dict(re.findall(r" - (\w+): ([0-9.e-]+)", ended[-1] if ended else ""))
            tap.ok(set(said) == set(last) and all(abs(float(said[k]) - last[k]) < 1e-4 for k in said),
                   f"{what}: and of the last progress line")
            with open(f"{folder}/summary.json", encoding="utf-8") as file:
                summary = json.load(file)
            tap.ok(all(abs(summary[k] - v) < 1e-6 * max(1, abs(v)) for k, v in last.items()) and summary["classes"] == columns,
                   f"{what}: and of the summary, which has the columns' names")
        check_saved(tap, program, folder, name, ranks, history, columns, names["test"], model, x["test"])


def check_saved(tap, program, folder, name, ranks, history, columns, names, model, x):
    """evaluate and predict, by what the last run has saved."""
    saved = ["--model", f"{folder}/model.json", "--weights", f"{folder}/last.safetensors", "--data", f"{folder}/test",
             "--resize", f"{SIDE}x{SIDE}", "--device", "cpu"]
    for count in range(1, ranks + 1):
        run(launch(count) + [program, "evaluate", "--labels", f"{folder}/test.csv", "--summary-json", f"{folder}/e.json"] + saved)
        with open(f"{folder}/e.json", encoding="utf-8") as file:
            found = json.load(file)
        expected = {key[4:]: values[-1] for key, values in history.items() if key.startswith("val_")}
        worst = apart([found.get(k, 9) for k in expected], list(expected.values()))
        tap.ok(worst < 1e-4, f"{name}: evaluate on {count} ranks has the loss and metrics of the last validation (to {worst:.1e})")
    run([program, "predict", "--output", f"{folder}/p.csv"] + saved)
    with open(f"{folder}/p.csv", newline="", encoding="utf-8") as file:
        table = list(csv.reader(file))
    order = [names.index(row[0]) for row in table[1:]]
    outputs = model.predict(x, verbose=0)[order]
    if "logits" in name:
        outputs = 1 / (1 + np.exp(-outputs))
    worst = np.abs(np.array([[float(v) for v in row[1:]] for row in table[1:]]) - outputs).max()
    tap.ok(table[0] == ["file"] + columns and sorted(order) == list(range(len(names))) and worst < 1e-4,
           f"{name}: predict writes the outputs of Keras' model, a column each (to {worst:.1e})")
    if name == "regression":
        run([program, "evaluate", "--labels", f"{folder}/p.csv", "--summary-json", f"{folder}/e.json"] + saved)
        with open(f"{folder}/e.json", encoding="utf-8") as file:
            found = json.load(file)
        tap.ok(found["mse"] < 1e-9, f"{name}: what predict has written are labels without an error (mse {found['mse']:.1e})")


def several(rng, x, outputs):
    return (x.mean((1, 2))[:, np.arange(outputs) % 3] + rng.normal(0, 0.05, (len(x), outputs)) > 0.5).astype(np.float32)


def numbers(rng, x, outputs):
    return (4 * x.mean((1, 2))[:, :outputs] - 1.5 + rng.normal(0, 1, (len(x), outputs))).astype(np.float32)


def main():
    program, tap = sys.argv[1], Tap()
    ranks = 2 if shutil.which("mpirun") else 1
    os.environ["OMP_NUM_THREADS"] = "1"
    errors = ["mae", "mse"]
    cases = [  # name, outputs, last activation, Keras' loss, metrics, labels, options, what progress lines have
        ("several classes", 4, "sigmoid", losses.BinaryCrossentropy(), ["binary_accuracy"], several,
         ["--loss", "binary_crossentropy"], "accuracy"),
        ("several classes by logits, smoothed", 3, None, losses.BinaryCrossentropy(from_logits=True, label_smoothing=0.1),
         [keras.metrics.BinaryAccuracy(name="binary_accuracy", threshold=0.0)], several,
         ["--loss", "binary_crossentropy", "--label-smoothing", "0.1"], "accuracy"),
        ("several classes, focal", 4, "sigmoid", losses.BinaryFocalCrossentropy(gamma=1.5), ["binary_accuracy"], several,
         ["--loss", "binary_focal_crossentropy", "--focal-gamma", "1.5"], "accuracy"),
        ("regression", 3, None, losses.MeanSquaredError(), errors, numbers, ["--loss", "mean_squared_error"], "mae"),
        ("regression by one output, Huber", 1, None, losses.Huber(delta=0.5), errors, numbers,
         ["--loss", "huber", "--huber-delta", "0.5"], "mae"),
    ]
    for case in cases:
        check_case(tap, program, case, ranks, False)
    for case in [cases[0], cases[3]]:
        check_case(tap, program, case, ranks, True)
    print(f"1..{tap.count}")
    return tap.failed > 0


sys.exit(main())
