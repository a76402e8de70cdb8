"""ResNet50V2 on CIFAR-10's JPEGs, `hpc-train fit` beside Keras: the same initial weights, the same pictures
in the same order. Prints a table as TAP comments, then TAP.

Rounding grows at every step, so that after some tens of them no two programs have the same losses: nor have Keras
and Keras with the pictures of each batch in another order. RUNS such runs of Keras tell how far chance alone takes
its curve apart: the deviation of a window (a mean of WINDOW steps) from the mean of the runs, pooled over all
windows. Ours must lie within MOST deviations of their mean in every window, and within MEAN on average over all; and
in the first steps, before that, within EARLY times what Keras' runs are apart.

usage: nn_cifar.py HPC_TRAIN ARCHIVE [STEPS [RUNS]]"""
import json
import os
import subprocess
import sys
import tempfile

import keras
import numpy as np
import tensorflow as tf

import cifar

SIDE, BATCH, RATE, SEED = 32, 32, 0.01, 3
TRAIN, TEST, CLASSES = 700, 100, 10  # pictures of each class
STEPS, WINDOW, RUNS = 200, 20, 3
MOST, MEAN, EARLY = 4, 2.5, 10


# ---- the order of the samples ----


def batches(count, steps):
    stream, number = [], 0
    while len(stream) < steps * BATCH:
        stream += cifar.shuffled(SEED, count, number)
        number += 1
    return np.array(stream[:steps * BATCH]).reshape(steps, BATCH)


# ---- the pictures ----


def load(folder):
    """As 0 to 1, and their labels."""
    pictures, labels = cifar.load(folder)
    return pictures.astype(np.float32) / np.float32(255), labels


# ---- training ----


def ours(program, data, weights, steps, log):
    command = [program, "fit", "--model=resnet50v2", f"--classes={CLASSES}", f"--resize={SIDE}x{SIDE}",
               f"--data={data}", f"--validation-data={data}", f"--weights={weights}", f"--batch-size={BATCH}",
               f"--learning-rate={RATE}", f"--seed={SEED}", f"--steps-per-epoch={steps}", "--epochs=1",
               f"--log-dir={log}", "--verbose=0"]
    subprocess.run(command, check=True)
    with open(log + "/metrics.jsonl") as file:
        lines = [json.loads(line) for line in file]
    with open(log + "/history.csv") as file:
        last = dict(zip(*(line.strip().split(",") for line in file)))
    return (np.array([(line["loss"], line["accuracy"]) for line in lines]),
            (float(last["val_loss"]), float(last["val_accuracy"])))


def theirs(model, weights, train, test, steps, turn):
    """Training with each batch's pictures moved by `turn` places, which changes nothing but the order of sums."""
    model.load_weights(weights)
    curve = []
    for indices in batches(len(train[0]), steps):
        indices = np.roll(indices, turn)
        curve.append(model.train_on_batch(train[0][indices], train[1][indices]))
        model.reset_metrics()
    return np.array(curve, np.float64), tuple(model.evaluate(*test, batch_size=200, verbose=0))


def windows(curve):
    """Means of WINDOW steps: [windows][loss, accuracy]."""
    return curve.reshape(-1, WINDOW, 2).mean(axis=1)


def tell(name, curve, test):
    rows = " ".join(f"{loss:.4f}/{accuracy:.4f}" for loss, accuracy in windows(curve))
    print(f"# {name}: {rows}; test {test[0]:.4f}/{test[1]:.4f}", flush=True)


def scatter(runs):
    """The deviation of one run's window from the mean of all runs, pooled over the windows: [loss, accuracy]."""
    curves = np.stack([windows(curve) for curve, _ in runs])
    return np.sqrt(curves.var(axis=0, ddof=1).mean(axis=0))


def compare(mine, runs):
    """How many deviations ours is from the mean of Keras' runs: the farthest window, and all windows' mean, of
    [loss, accuracy] each. That mean has an error of its own."""
    one = scatter(runs) * np.sqrt(1 + 1 / len(runs))
    d = windows(mine[0]) - np.mean([windows(curve) for curve, _ in runs], axis=0)
    most, mean = np.abs(d).max(axis=0), np.abs(d.mean(axis=0))
    print(f"# one deviation: loss {one[0]:.4f}, accuracy {one[1]:.4f}; ours from Keras: losses at most {most[0]:.4f}, "
          f"in the mean {mean[0]:.4f}; accuracies {most[1]:.4f}, {mean[1]:.4f}", flush=True)
    return most / one, mean / one


def first_steps(mine, runs):
    """How far the first steps' losses are apart: ours and Keras', and at most those of Keras' runs."""
    losses = np.stack([curve[:5, 0] for curve, _ in runs])
    first = np.abs(mine[0][:5, 0] / losses - 1).min(axis=0)
    chance = np.abs(losses[:, None] / losses - 1).max(axis=(0, 1))
    for name, row in ("ours from Keras", first), ("Keras' own", chance):
        print(f"# first steps, {name}:", *(f"{x:.1e}" for x in row), flush=True)
    return first, chance


def main():
    program, archive = sys.argv[1:3]
    steps, count = (int(sys.argv[k]) if len(sys.argv) > k else value for k, value in ((3, STEPS), (4, RUNS)))
    tf.config.threading.set_intra_op_parallelism_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    with tempfile.TemporaryDirectory() as top:
        data, weights = top + "/data", top + "/first.weights.h5"
        cifar.extract(archive, data, TRAIN, TEST)
        keras.utils.set_random_seed(SEED)
        model = keras.applications.ResNet50V2(weights=None, input_shape=(SIDE, SIDE, 3), classes=CLASSES)
        model.save_weights(weights)  # before it is compiled: without an optimizer
        mine = ours(program, data, weights, steps, top + "/log")
        tell("ours", *mine)
        train, test = load(data + "/train"), load(data + "/test")
        model.compile(optimizer=keras.optimizers.SGD(RATE), loss="sparse_categorical_crossentropy",
                      metrics=["accuracy"], jit_compile=False)
        runs = []
        for k in range(count):
            runs.append(theirs(model, weights, train, test, steps, k * BATCH // count))
            tell(f"Keras {k + 1}", *runs[-1])
    most, mean = compare(mine, runs)
    first, chance = first_steps(mine, runs)
    learned = windows(mine[0])
    results = [
        (first[0] < 1e-5, f"the first step's loss is Keras', to {first[0]:.1e}"),
        ((first <= EARLY * np.maximum(chance, 1e-5)).all(), "those of the next steps as nearly as its own runs'"),
        (learned[-1, 0] < learned[0, 0] - 0.3 and learned[-1, 1] > learned[0, 1] + 0.1,
         f"it learns: loss {learned[0, 0]:.3f} to {learned[-1, 0]:.3f}, accuracy {learned[0, 1]:.3f} to "
         f"{learned[-1, 1]:.3f}"),
        (most[0] < MOST and mean[0] < MEAN,
         f"the losses fall as Keras' do: {most[0]:.1f} deviations at most, {mean[0]:.1f} in the mean"),
        (most[1] < MOST and mean[1] < MEAN,
         f"the accuracies rise as Keras' do: {most[1]:.1f} deviations at most, {mean[1]:.1f} in the mean"),
    ]
    print(f"1..{len(results)}")
    for number, (good, text) in enumerate(results, 1):
        print(f"{'ok' if good else 'not ok'} {number} - {text}")
    return not all(good for good, _ in results)


sys.exit(main())
