"""Keras' guide to transfer learning, by `hpc-train fit` and by Keras' own fit, from the same weights and pictures: a
base that is a layer of the model, frozen under a new head, then trained with it. Prints TAP.

usage: guide.py HPC_TRAIN"""
import json
import os
import shutil
import subprocess
import sys
import tempfile

import numpy as np
import keras
from tap import Tap

try:
    import tf_keras
except ImportError:
    tf_keras = None

PICTURES, SIDE, STEPS = 16, 32, 3  # an epoch is one step of all pictures: their order does not matter


def build(k):
    """The guide's model, with its Rescaling and a smaller base."""
    base = k.applications.MobileNetV2(weights=None, input_shape=(SIDE, SIDE, 3), include_top=False, alpha=0.35)
    base.trainable = False
    inputs = k.Input(shape=(SIDE, SIDE, 3))
    scaled = k.layers.Rescaling(scale=1 / 127.5, offset=-1)(inputs)
    x = base(scaled, training=False)
    x = k.layers.GlobalAveragePooling2D()(x)
    return k.Model(inputs, k.layers.Dense(1, name="head")(x)), base


def as_trained(base):
    """Moving statistics of a base that has been trained."""
    rng = np.random.default_rng(3)
    for layer in base.layers:
        if "BatchNormalization" in type(layer).__name__:
            n = layer.gamma.shape[0]
            layer.set_weights([rng.uniform(0.5, 1.5, n), rng.normal(0, 0.2, n), rng.normal(0, 0.3, n),
                               rng.uniform(0.3, 2, n)])


def train(k, model, x, y, rate):
    model.compile(optimizer=k.optimizers.Adam(rate), loss=k.losses.BinaryCrossentropy(from_logits=True),
                  metrics=[k.metrics.BinaryAccuracy()])
    return model.fit(x, y, batch_size=PICTURES, epochs=STEPS, shuffle=False, verbose=0).history["loss"]


def fit(program, folder, ranks, rate, options):
    launch = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", str(ranks)]
    command = (launch if ranks > 1 else []) + [
        program, "fit", "--model", f"{folder}/model.json", "--weights", f"{folder}/first.weights.h5",
        "--data", f"{folder}/data.npz", "--scale", "none", "--global-batch-size", str(PICTURES), "--epochs", str(STEPS),
        "--optimizer", "adam", "--learning-rate", str(rate), "--device", "cpu", "--strategy", "multi-worker-mirrored",
        "--log-dir", f"{folder}/log", "--save-weights", f"{folder}/ours.weights.h5", "--verbose", "0"] + options
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} ends with {run.returncode}: {run.stderr}")
    with open(f"{folder}/log/metrics.jsonl", encoding="utf-8") as file:
        values = [json.loads(line) for line in file]
    shutil.rmtree(f"{folder}/log")
    return [v["loss"] for v in values if "loss" in v][:STEPS]


def compare(tap, what, k, model, first, base, theirs, path, ours, close):
    """first: the base's weights before; they stay, unless it is trained."""
    worst = max(abs(a / b - 1) for a, b in zip(ours, theirs)) if len(ours) == len(theirs) else 9
    tap.ok(worst < close, f"{what}: the losses of {STEPS} steps are Keras' (to {worst:.1e})")
    mine, inner = build(k)
    mine.load_weights(path)
    named = {getattr(w, "path", w.name): np.asarray(w) for w in mine.weights}
    worst = max(np.abs(named[getattr(w, "path", w.name)] - np.asarray(w)).max() / max(np.abs(np.asarray(w)).max(), 1e-2)
                for w in model.weights)
    tap.ok(worst < 20 * close, f"{what}: so are the weights, read by Keras' load_weights (to {worst:.1e})")
    same = all(np.array_equal(a, b) for a, b in zip(inner.get_weights(), first))
    tap.ok(same != base.trainable, f"{what}: the base's weights {'change' if base.trainable else 'stay to the bit'}")


def check(tap, program, k, name, x, y, ranks):
    k.utils.set_random_seed(5)
    k.backend.clear_session()
    model, base = build(k)
    as_trained(base)
    with tempfile.TemporaryDirectory() as folder:
        np.savez(f"{folder}/data.npz", x_train=x, y_train=y, x_test=x, y_test=y)
        for stage, rate in [("the head", 1e-3), ("all", 1e-5)]:
            if stage == "all":  # Keras 2's BatchNormalization stays in inference mode, for which it must be frozen here
                base.trainable = True
                for layer in base.layers:
                    layer.trainable = k is keras or "BatchNormalization" not in type(layer).__name__
            with open(f"{folder}/model.json", "w", encoding="utf-8") as file:
                file.write(model.to_json())
            model.save_weights(f"{folder}/first.weights.h5")
            first = base.get_weights()
            theirs = train(k, model, x.astype(np.float32), y, rate)
            for count in ranks:
                options = ["--sync-batch-norm"] if count > 1 and stage == "all" and k is keras else []
                ours = fit(program, folder, count, rate, options)
                compare(tap, f"{name}, {stage}, {count} rank{'s' if count > 1 else ''}", k, model, first, base, theirs,
                        f"{folder}/ours.weights.h5", ours, 1e-4 if stage == "the head" else 1e-3)
            if stage == "the head":
                whole = json.loads(model.to_json())  # by --freeze with the name of the base
                thaw(whole)
                with open(f"{folder}/model.json", "w", encoding="utf-8") as file:
                    json.dump(whole, file)
                again = fit(program, folder, 1, rate, ["--freeze", base.name])
                tap.ok(again == ours or max(abs(a / b - 1) for a, b in zip(again, ours)) < 1e-5,
                       f"{name}: --freeze {base.name} freezes it, too")


def thaw(entry):
    """Sets all to trainable, and their calls to plain ones."""
    for layer in entry["config"]["layers"]:
        if "trainable" in layer["config"]:
            layer["config"]["trainable"] = True
        for call in layer.get("inbound_nodes", []):
            if isinstance(call, list):
                for tensor in call:
                    tensor[3:] = [{}]
        if "layers" in layer["config"]:
            thaw(layer)


def main():
    program, tap = sys.argv[1], Tap()
    ranks = [1, 2] if shutil.which("mpirun") else [1]
    os.environ["OMP_NUM_THREADS"] = "1"
    rng = np.random.default_rng(1)
    x = rng.integers(0, 256, (PICTURES, SIDE, SIDE, 3), dtype=np.uint8)
    y = rng.integers(0, 2, PICTURES)
    check(tap, program, keras, "Keras 3", x, y, ranks)
    if tf_keras is not None:
        check(tap, program, tf_keras, "Keras 2", x, y, ranks[:1])
    print(f"1..{tap.count}")
    return tap.failed > 0


sys.exit(main())
