"""Training with regularizers by `hpc-train fit` and by Keras, from the same weights and pictures: the losses shown, which
have the penalties, those of evaluation, the weights, and the models written back. Prints TAP.

usage: regularizers.py HPC_TRAIN"""
import json
import os
import shutil
import subprocess
import sys
import tempfile

import numpy as np
import keras
from keras import layers, optimizers, regularizers
from tap import Tap

PICTURES, SIDE, CLASSES, STEPS = 16, 12, 4, 4  # an epoch is one step of all pictures: their order does not matter
L1, L2, L1L2 = regularizers.L1, regularizers.L2, regularizers.L1L2


def build():
    return keras.Sequential([
        layers.Input((SIDE, SIDE, 3)),
        layers.Conv2D(8, 3, use_bias=False, kernel_regularizer=L2(0.02), name="conv"),
        layers.BatchNormalization(momentum=0.9, gamma_regularizer=L2(0.05), beta_regularizer=L1(0.03),
                                  name="norm"),
        layers.PReLU(shared_axes=[1, 2], alpha_regularizer=L1(0.1), name="prelu"),
        layers.SeparableConv2D(12, 3, depthwise_regularizer=L1(0.004), pointwise_regularizer=L1L2(0.002, 0.01),
                               name="separable"),
        layers.DepthwiseConv2D(3, depthwise_regularizer=L2(0.03), use_bias=False, name="depthwise"),
        layers.Activation("tanh", name="tanh"),
        layers.Flatten(name="flatten"),
        layers.Dense(20, activation="tanh", kernel_regularizer=L1L2(l1=0.001, l2=0.01), bias_regularizer=L1(0.02),
                     name="hidden"),
        layers.Dense(CLASSES, activation="softmax", kernel_regularizer=L1(0.003), bias_regularizer=L2(0.3),
                     name="head")], name="penalized")


def start_of(model):
    """Weights as after some training: no bias, beta or alpha is 0, where the slope of |w| depends on roundings."""
    rng = np.random.default_rng(3)
    for layer in model.layers:
        weights = layer.get_weights()
        for i, weight in enumerate(weights):
            if weight.ndim == 1:
                weights[i] = rng.choice([-1, 1], weight.shape) * rng.uniform(0.1, 0.3, weight.shape)
        if layer.name == "norm":
            weights = [rng.uniform(0.5, 1.5, w.shape) for w in weights[:1]] + weights[1:3] + [np.ones_like(weights[3])]
        layer.set_weights(weights)
    return model.get_weights()


def fit(program, folder, ranks, options, name):
    """Losses of all steps and of the evaluations after them, of `hpc-train fit`."""
    launch = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", str(ranks)]
    log = f"{folder}/{name}.log"
    shutil.rmtree(log, ignore_errors=True)
    command = (launch if ranks > 1 else []) + [
        program, "fit", "--model", f"{folder}/model.json", "--weights", f"{folder}/first.weights.h5",
        "--data", f"{folder}/data.npz", "--validation-data", f"{folder}/data.npz",
        "--global-batch-size", str(PICTURES), "--epochs", str(STEPS), "--device", "cpu",
        "--log-dir", log, "--save-weights", f"{folder}/{name}.weights.h5", "--verbose", "0"] + options
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} ends with {run.returncode}: {run.stderr}")
    with open(f"{log}/history.csv", encoding="utf-8") as file:
        rows = [line.strip().split(",") for line in file]
    at = [rows[0].index(key) for key in ("loss", "val_loss")]
    return [[float(row[k]) for row in rows[1:]] for k in at]


def evaluate(program, folder, weights):
    command = [program, "evaluate", "--model", f"{folder}/model.json", "--weights", weights, "--data", f"{folder}/data.npz",
               "--batch-size", "5", "--device", "cpu", "--summary-json", f"{folder}/scores.json"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} ends with {run.returncode}: {run.stderr}")
    with open(f"{folder}/scores.json", encoding="utf-8") as file:
        return json.load(file)["loss"]


def apart(a, b):
    return np.abs(a - b).max() / max(np.abs(b).max(), 1e-30)


def off(ours, theirs):
    return max(abs(a / b - 1) for a, b in zip(ours, theirs)) if len(ours) == len(theirs) else 9


def settings_of(model):
    return {layer.name: {key: value for key, value in layer.get_config().items() if key.endswith("_regularizer")}
            for layer in model.layers}


def same_settings(a, b):
    """Numbers to single precision, which L1 has."""
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same_settings(a[k], b[k]) for k in a)
    return abs(a - b) < 1e-7 if isinstance(a, float) and isinstance(b, float) else a == b


def written_back(tap, program, folder):
    """JSON and .keras files have the regularizers again."""
    model = build()
    model.layers[0].trainable = False
    with open(f"{folder}/model.json", "w", encoding="utf-8") as file:
        file.write(model.to_json())
    model.save_weights(f"{folder}/w.weights.h5")
    for name in ("back.json", "back.keras"):
        subprocess.run([program, "export", "--model", f"{folder}/model.json", "--weights", f"{folder}/w.weights.h5",
                        "--output", f"{folder}/{name}"], check=True, stdout=subprocess.DEVNULL)
        if name.endswith(".json"):
            with open(f"{folder}/{name}", encoding="utf-8") as file:
                back = keras.models.model_from_json(file.read())
        else:
            back = keras.models.load_model(f"{folder}/{name}")
        tap.ok(same_settings(settings_of(back), settings_of(model)), f"{name} has the regularizers")


def main():
    program, tap = sys.argv[1], Tap()
    ranks = [1, 2] if shutil.which("mpirun") else [1]
    os.environ["OMP_NUM_THREADS"] = "1"
    rng = np.random.default_rng(1)
    pixels = rng.integers(0, 256, (PICTURES, SIDE, SIDE, 3), dtype=np.uint8)
    labels = rng.integers(0, CLASSES, PICTURES)
    x = pixels.astype(np.float32) / np.float32(255)
    cases = [  # name, frozen layers, Keras' optimizer, options
        ("SGD with momentum", [], lambda: optimizers.SGD(0.05, momentum=0.9), ["--learning-rate", "0.05", "--momentum", "0.9"]),
        ("plain SGD", [], lambda: optimizers.SGD(0.05), ["--learning-rate", "0.05"]),
        # epsilon: where loss and penalty cancel, a smaller one makes whole steps of roundings
        ("Adam", [], lambda: optimizers.Adam(0.01, epsilon=1e-3),
         ["--optimizer", "adam", "--learning-rate", "0.01", "--epsilon", "1e-3"]),
        ("clipped by the whole norm", [], lambda: optimizers.SGD(0.1, momentum=0.9, global_clipnorm=0.7),
         ["--learning-rate", "0.1", "--momentum", "0.9", "--global-clip-norm", "0.7"]),
        ("clipped by norms", [], lambda: optimizers.SGD(0.1, momentum=0.9, clipnorm=0.3),
         ["--learning-rate", "0.1", "--momentum", "0.9", "--clip-norm", "0.3"]),
        ("clipped by value", [], lambda: optimizers.SGD(0.1, momentum=0.9, clipvalue=0.02),
         ["--learning-rate", "0.1", "--momentum", "0.9", "--clip-value", "0.02"]),
        ("frozen in part", ["conv", "separable", "hidden"], lambda: optimizers.SGD(0.05, momentum=0.9),
         ["--learning-rate", "0.05", "--momentum", "0.9"]),
        ("gradients accumulated", [], lambda: optimizers.SGD(0.05, momentum=0.9, gradient_accumulation_steps=2),
         ["--learning-rate", "0.05", "--momentum", "0.9", "--gradient-accumulation", "2"]),
    ]
    keras.utils.set_random_seed(5)
    start = start_of(build())
    for name, frozen, optimizer, options in cases:
        with tempfile.TemporaryDirectory() as folder:
            np.savez(f"{folder}/data.npz", x_train=pixels, y_train=labels, x_test=pixels, y_test=labels)
            model = build()
            model.set_weights(start)
            model.save_weights(f"{folder}/first.weights.h5")
            for layer in frozen:
                model.get_layer(layer).trainable = False
            with open(f"{folder}/model.json", "w", encoding="utf-8") as file:
                file.write(model.to_json())
            model.compile(optimizer(), "sparse_categorical_crossentropy")
            before = model.evaluate(x, labels, verbose=0)
            history = model.fit(x, labels, batch_size=PICTURES, epochs=STEPS, shuffle=False, verbose=0,
                                validation_data=(x, labels), validation_batch_size=PICTURES).history
            bare = sum(float(np.sum(loss)) for loss in model.losses)
            tap.ok(bare > 0.02 * history["loss"][-1], f"{name}: Keras' penalty of {bare:.3f} shows in {history['loss'][-1]:.3f}")
            for count in ranks:
                what = f"{name}, {count} rank{'s' if count > 1 else ''}"
                losses, checks = fit(program, folder, count, options + ["--sync-batch-norm"], "run")
                worst = off(losses, history["loss"])
                tap.ok(worst < 2e-5, f"{what}: the losses of {STEPS} steps are Keras' (to {worst:.1e})")
                worst = off(checks, history["val_loss"])
                tap.ok(worst < 2e-5, f"{what}: so are those of evaluation (to {worst:.1e})")
                mine = build()
                mine.load_weights(f"{folder}/run.weights.h5")
                worst = max(apart(a, b) for a, b in zip(mine.get_weights(), model.get_weights()))
                tap.ok(worst < 2e-4, f"{what}: and the weights (to {worst:.1e})")
            worst = off([evaluate(program, folder, f"{folder}/first.weights.h5")], [before])
            tap.ok(worst < 2e-5, f"{name}: evaluate has Keras' loss (to {worst:.1e})")
    with tempfile.TemporaryDirectory() as folder:
        written_back(tap, program, folder)
    print(f"1..{tap.count}")
    return tap.failed > 0


sys.exit(main())
