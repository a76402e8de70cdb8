"""Transfer learning on CIFAR-10's JPEGs at 64x64, `hpc-train fit` beside Keras: a MobileNetV2 that was trained here for
two epochs on half of the classes learns all ten, first with its base frozen, then unfrozen at a lower rate; both from
the same weights, with the same pictures in the same order. Prints a table as TAP comments, then TAP.

Moving statistics have momentum 0.9: with MobileNetV2's own 0.999 they are far from those of the pictures after so few
steps, and a frozen base is of no use. While the base is frozen only a Dense layer learns, and all losses must be Keras'. Unfrozen, rounding grows at every
step: Keras runs twice, the second time with the pictures of each batch in another order, which tells how far chance
alone takes it apart.

usage: transfer.py HPC_TRAIN ARCHIVE [PICTURES_OF_EACH_CLASS]"""
import json
import os
import subprocess
import sys
import tempfile

import keras
import numpy as np
import tensorflow as tf

import cifar
from tap import Tap

SIDE, BATCH, SEED, WINDOW = 64, 64, 3, 50
HALF, CLASSES = 5, 10
PHASES = (("frozen", 1e-3), ("unfrozen", 1e-4))  # Adam's rates
HEAD = "predictions"


# ---- pictures ----


def lay_out(archive, folder, count):
    """All classes in all/, the first HALF of them in half/; COUNT pictures of each to train."""
    cifar.extract(archive, folder + "/all", count, 1000)
    for part in "train", "test":
        os.makedirs(f"{folder}/half/{part}")
        for name in sorted(os.listdir(f"{folder}/all/{part}"))[:HALF]:
            os.symlink(f"{folder}/all/{part}/{name}", f"{folder}/half/{part}/{name}")


def enlarged(pictures):
    return tf.image.resize(pictures, (SIDE, SIDE)) / 255.0


# ---- training ----


def build(classes):
    model = keras.applications.MobileNetV2(weights=None, input_shape=(SIDE, SIDE, 3), classes=classes)
    return keras.models.model_from_json(model.to_json().replace('"momentum": 0.999', '"momentum": 0.9'))


def ours(program, model, data, log, options):
    """Losses and accuracies of all steps [n][2], and both of the test pictures."""
    with open(log + ".json", "w", encoding="utf-8") as file:
        file.write(model.to_json())
    command = [program, "fit", f"--model={log}.json", f"--resize={SIDE}x{SIDE}", f"--data={data}",
               f"--validation-data={data}", f"--batch-size={BATCH}", f"--seed={SEED}", "--optimizer=adam",
               f"--log-dir={log}", "--verbose=0"] + options
    subprocess.run(command, check=True)
    with open(log + "/metrics.jsonl", encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    with open(log + "/history.csv", encoding="utf-8") as file:
        rows = [line.strip().split(",") for line in file]
    last = dict(zip(rows[0], rows[-1]))
    return (np.array([(line["loss"], line["accuracy"]) for line in lines if "loss" in line]),
            (float(last["val_loss"]), float(last["val_accuracy"])))


def theirs(model, train, test, steps, phase, rate, turn):
    """As ours(), by Keras; each batch's pictures are moved by TURN places, which changes the order of sums alone."""
    for layer in model.layers:
        layer.trainable = phase == "unfrozen" or layer.name == HEAD
    model.compile(optimizer=keras.optimizers.Adam(rate), loss="sparse_categorical_crossentropy", metrics=["accuracy"],
                  jit_compile=False)
    order, curve = cifar.shuffled(SEED, len(train[0]), 0), []
    for step in range(steps):
        indices = np.roll(np.array(order[step * BATCH:(step + 1) * BATCH]), turn)
        model.reset_metrics()
        curve.append(model.train_on_batch(enlarged(train[0][indices]), train[1][indices]))
    found = tf.data.Dataset.from_tensor_slices(test).batch(200).map(lambda x, y: (enlarged(x), y))
    return np.array(curve, np.float64), tuple(model.evaluate(found, verbose=0))


def windows(curve):
    return curve[:len(curve) // WINDOW * WINDOW].reshape(-1, WINDOW, 2).mean(axis=1)


def tell(name, curve, test):
    rows = " ".join(f"{loss:.3f}/{accuracy:.3f}" for loss, accuracy in windows(curve))
    print(f"# {name}: {rows}; test {test[0]:.4f}/{test[1]:.4f}", flush=True)


def compare_frozen(tap, mine, keras_run):
    apart = np.abs(mine[0][:, 0] / keras_run[0][:, 0] - 1)
    tap.ok(apart[0] < 1e-4, f"frozen: the first loss is Keras' (to {apart[0]:.1e})")
    tap.ok(apart.max() < 1e-2, f"frozen: so are those of all {len(apart)} steps (to {apart.max():.1e}, in the mean "
                               f"{apart.mean():.1e})")
    gap = [abs(a - b) for a, b in zip(mine[1], keras_run[1])]
    tap.ok(gap[0] < 1e-2 * keras_run[1][0] and gap[1] <= 2e-3,
           f"frozen: loss and accuracy of the test pictures are {gap[0]:.1e} and {gap[1]:.1e} from Keras'")


def compare_unfrozen(tap, mine, runs):
    first = abs(mine[0][0, 0] / runs[0][0][0, 0] - 1)
    tap.ok(first < 1e-2, f"unfrozen: the first loss is Keras' (to {first:.1e})")
    for column, name, least in (0, "loss", 0.02), (1, "accuracy", 0.01):
        curves = [windows(run[0])[:, column] for run in runs]
        chance = max(np.abs(curves[0] - curves[1]).max(), least)
        gap = np.abs(windows(mine[0])[:, column] - np.mean(curves, axis=0)).max()
        tap.ok(gap < 3 * chance, f"unfrozen: in no {WINDOW} steps is the {name} farther from Keras' than {gap:.3f} "
                                 f"(its own two runs: {np.abs(curves[0] - curves[1]).max():.3f})")
        values = [run[1][column] for run in runs]
        chance = max(abs(values[0] - values[1]), least)
        gap = abs(mine[1][column] - np.mean(values))
        tap.ok(gap < 3 * chance, f"unfrozen: {name} of the test pictures {mine[1][column]:.4f}, Keras "
                                 f"{values[0]:.4f} and {values[1]:.4f}")


def main():
    program, archive = sys.argv[1:3]
    count = int(sys.argv[3]) if len(sys.argv) > 3 else 5000
    steps, tap, accuracy = count * CLASSES // BATCH, Tap(), []
    with tempfile.TemporaryDirectory() as top:
        lay_out(archive, top, count)
        base, start = top + "/base.weights.h5", top + "/start.weights.h5"
        pretrained = ours(program, build(HALF), top + "/half", top + "/log-base",
                          ["--epochs=2", "--learning-rate=1e-3", f"--save-weights={base}"])
        tell(f"pretrained on {HALF} classes", *pretrained)
        keras.utils.set_random_seed(SEED)
        models = [build(CLASSES) for _ in range(2)]
        models[0].load_weights(base, skip_mismatch=True)  # all but the head
        models[0].save_weights(start)
        train, test = cifar.load(top + "/all/train"), cifar.load(top + "/all/test")
        for phase, rate in PHASES:
            after = f"{top}/{phase}.weights.h5"
            mine = ours(program, build(CLASSES), top + "/all", f"{top}/log-{phase}",
                        ["--epochs=1", f"--learning-rate={rate}", f"--weights={start}",
                         f"--steps-per-epoch={steps}", f"--save-weights={after}"]
                        + (["--freeze=[!p]*"] if phase == "frozen" else []))
            tell(f"ours, {phase}", *mine)
            if phase == "unfrozen":
                models[1].set_weights(models[0].get_weights())
            runs = [theirs(model, train, test, steps, phase, rate, k * BATCH // 2)
                    for k, model in enumerate(models[:1 if phase == "frozen" else 2])]
            for k, run in enumerate(runs, 1):
                tell(f"Keras {k}, {phase}", *run)
            if phase == "frozen":
                compare_frozen(tap, mine, runs[0])
            else:
                compare_unfrozen(tap, mine, runs)
            accuracy.append(mine[1][1])
            start = after
    tap.ok(2 / CLASSES < accuracy[0] < accuracy[1], f"what was trained is of use: accuracy {accuracy[0]:.4f} with the base "
                                                   f"frozen, {accuracy[1]:.4f} after")
    print(f"1..{tap.count}")
    return tap.failed > 0


sys.exit(main())
