"""Fine-tuning by `hpc-train fit` and by Keras, from the same weights and pictures: a base that is frozen, in part or
wholly, and a new head; then all layers, with a lower rate for the base. Prints TAP.

usage: freeze.py HPC_TRAIN"""
import json
import os
import shutil
import subprocess
import sys
import tempfile

import numpy as np
import keras
from keras import layers, optimizers
from tap import Tap

PICTURES, SIDE, CLASSES, STEPS = 16, 16, 4, 3  # an epoch is one step of all pictures: their order does not matter


def block(x, filters, stride, name):
    """MobileNetV2's: widened, depthwise, narrowed, and added to its input where the shapes agree."""
    y = layers.Conv2D(3 * x.shape[-1], 1, use_bias=False, name=f"{name}_expand")(x)
    y = layers.ReLU(6.0, name=f"{name}_relu1")(layers.BatchNormalization(momentum=0.9, name=f"{name}_bn1")(y))
    y = layers.DepthwiseConv2D(3, strides=stride, padding="same", use_bias=False, name=f"{name}_depthwise")(y)
    y = layers.ReLU(6.0, name=f"{name}_relu2")(layers.BatchNormalization(momentum=0.9, name=f"{name}_bn2")(y))
    y = layers.Conv2D(filters, 1, use_bias=False, name=f"{name}_project")(y)
    y = layers.BatchNormalization(momentum=0.9, name=f"{name}_bn3")(y)
    return layers.Add(name=f"{name}_add")([x, y]) if stride == 1 and x.shape[-1] == filters else y


def build():
    image = layers.Input((SIDE, SIDE, 3))
    x = layers.Conv2D(16, 3, strides=2, padding="same", use_bias=False, name="base_first")(image)
    x = layers.Activation("relu", name="base_relu")(layers.BatchNormalization(name="base_bn")(x))
    for i, (filters, stride) in enumerate([(16, 1), (24, 2), (24, 1)]):
        x = block(x, filters, stride, f"base{i}")
    x = layers.GlobalAveragePooling2D(name="mean")(x)
    x = layers.Dense(20, activation="relu", name="hidden")(x)
    model = keras.Model(image, layers.Dense(CLASSES, activation="softmax", name="head")(x), name="small")
    rng = np.random.default_rng(3)
    for layer in model.layers:
        if isinstance(layer, layers.BatchNormalization):  # as if it had been trained
            n = layer.gamma.shape[0]
            layer.set_weights([rng.uniform(0.5, 1.5, n), rng.normal(0, 0.2, n), rng.normal(0, 0.3, n),
                               rng.uniform(0.3, 2, n)])
    return model


def freeze(model, which):
    for layer in model.layers:
        layer.trainable = not which(layer)


def is_base(layer):
    return layer.name.startswith("base")


def is_norm_or_early(layer):
    return isinstance(layer, layers.BatchNormalization) or layer.name.startswith(("base_", "base0"))


def train(model, x, y, pairs):
    """Losses of all steps. pairs: an optimizer, and whether it is that of a weight."""
    import tensorflow as tf
    loss, values = keras.losses.SparseCategoricalCrossentropy(), []
    for optimizer, has in pairs:
        optimizer.build([w for w in model.trainable_variables if has(w)])
    for _ in range(STEPS):
        with tf.GradientTape() as tape:
            value = loss(y, model(x, training=True))
        gradients = tape.gradient(value, model.trainable_variables)
        for optimizer, has in pairs:
            own = [(g, w) for g, w in zip(gradients, model.trainable_variables) if has(w)]
            optimizer.apply([g for g, _ in own], [w for _, w in own])
        values.append(float(value))
    return values


def fit(program, folder, ranks, options, name):
    """Losses of all steps, and bytes per step, of `hpc-train fit`."""
    launch = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", str(ranks)]
    log = f"{folder}/{name}.log"
    command = (launch if ranks > 1 else []) + [
        program, "fit", "--model", f"{folder}/model.json", "--weights", f"{folder}/first.weights.h5",
        "--data", f"{folder}/data.npz", "--global-batch-size", str(PICTURES), "--epochs", str(STEPS), "--device", "cpu",
        "--strategy", "multi-worker-mirrored", "--log-dir", log, "--summary-json", f"{folder}/{name}.json",
        "--save-weights", f"{folder}/{name}.weights.h5", "--verbose", "0"] + options
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} ends with {run.returncode}: {run.stderr}")
    with open(f"{log}/metrics.jsonl", encoding="utf-8") as file:
        values = [json.loads(line) for line in file]
    with open(f"{folder}/{name}.json", encoding="utf-8") as file:
        sent = json.load(file)["bytes_sent_per_step"]
    return [v["loss"] for v in values if "loss" in v][:STEPS], sent


def apart(a, b):
    return np.abs(a - b).max() / max(np.abs(b).max(), 1e-30)


def compare(tap, what, model, first, theirs, path, ours, frozen):
    """model: as Keras has trained it; first: its weights before; frozen: of which layers nothing may change."""
    worst = max(abs(a / b - 1) for a, b in zip(ours, theirs)) if len(ours) == len(theirs) else 9
    tap.ok(worst < 1e-4, f"{what}: the losses of {STEPS} steps are Keras' (to {worst:.1e})")
    mine = build()
    mine.load_weights(path)
    worst, same, moved = 0, True, True
    for layer, other, before in zip(mine.layers, model.layers, first):
        equal = [w.tobytes() == b.tobytes() for w, b in zip(layer.get_weights(), before)]
        worst = max([worst] + [apart(w, v) for w, v in zip(layer.get_weights(), other.get_weights())])
        if frozen(layer):
            same &= all(equal)
        elif equal:  # a beta that a later normalization subtracts may stay
            moved &= not all(equal)
    tap.ok(worst < 1e-4, f"{what}: so are the weights (to {worst:.1e})")
    tap.ok(same and moved, f"{what}: no bit of frozen layers has changed, all others have")


def main():
    program, tap = sys.argv[1], Tap()
    ranks = [1, 2] if shutil.which("mpirun") else [1]
    os.environ["OMP_NUM_THREADS"] = "1"
    rng = np.random.default_rng(1)
    pixels = rng.integers(0, 256, (PICTURES, SIDE, SIDE, 3), dtype=np.uint8)
    labels = rng.integers(0, CLASSES, PICTURES)
    x, bytes_sent = pixels.astype(np.float32) / np.float32(255), {}

    def slow(weight):
        return weight.path.startswith("base")

    def all_of(_):
        return True

    cases = [  # name, frozen layers, options for layers of a JSON without trainable false, Keras' optimizers, options
        ("a frozen base", is_base, "--freeze=base*", lambda: [(optimizers.SGD(0.1, momentum=0.9), all_of)],
         ["--learning-rate", "0.1", "--momentum", "0.9"]),
        ("frozen in part", is_norm_or_early, "--freeze=base_*,base0*,*_bn?",
         lambda: [(optimizers.Adam(0.01), all_of)], ["--optimizer", "adam", "--learning-rate", "0.01"]),
        ("all, the base at a tenth of the rate", lambda layer: False, None,
         lambda: [(optimizers.SGD(0.01, momentum=0.9), slow),
                  (optimizers.SGD(0.1, momentum=0.9), lambda w: not slow(w))],
         ["--learning-rate", "0.1", "--momentum", "0.9", "--learning-rate-of", "base*=0.1", "--sync-batch-norm"]),
    ]
    keras.utils.set_random_seed(5)
    start = build()
    for name, frozen, option, pairs, options in cases:
        with tempfile.TemporaryDirectory() as folder:
            np.savez(f"{folder}/data.npz", x_train=pixels, y_train=labels, x_test=pixels, y_test=labels)
            model = build()
            model.set_weights(start.get_weights())
            model.save_weights(f"{folder}/first.weights.h5")
            first = [layer.get_weights() for layer in model.layers]
            whole = model.to_json()
            freeze(model, frozen)
            theirs = train(model, x, labels, pairs())
            for count in ranks:
                for by_option in [False, True] if option is not None else [False]:
                    with open(f"{folder}/model.json", "w", encoding="utf-8") as file:
                        file.write(whole if by_option else model.to_json())
                    told = options + ([option] if by_option else [])
                    ours, sent = fit(program, folder, count, told, "run")
                    what = f"{name}{' by --freeze' if by_option else ''}, {count} rank{'s' if count > 1 else ''}"
                    compare(tap, what, model, first, theirs, f"{folder}/run.weights.h5", ours, frozen)
                    bytes_sent[name, count] = sent
    if len(ranks) > 1:
        few, more, most = (bytes_sent[case[0], 2] for case in cases)
        tap.ok(0 < few < more < most, f"the fewer layers are trained, the less is sent: {few}, {more}, {most} bytes")
    print(f"1..{tap.count}")
    return tap.failed > 0


sys.exit(main())
