"""Steps of W1's network in bf16 beside Keras' policy mixed_bfloat16: the same weights and the same batch again and
again, so that the losses depend on nothing that either draws. Prints TAP.

usage: nn_bf16.py HPC_TRAIN FOLDER"""
import csv
import subprocess
import sys

import keras
import numpy as np
from keras import layers

BATCH, STEPS, RATE = 64, 10, 0.01
hpc_train, folder = sys.argv[1:]


def network(policy):
    keras.config.set_dtype_policy(policy)
    model = keras.Sequential([
        keras.Input((28, 28, 1)),
        layers.Conv2D(32, 3, activation="relu", name="conv2d"),
        layers.Flatten(name="flatten"),
        layers.Dense(128, activation="relu", name="dense"),
        layers.Dense(10, dtype="float32" if policy == "float32" else None, name="dense_1"),
        layers.Activation("linear", dtype="float32"),
    ])
    model.compile(keras.optimizers.SGD(RATE), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return model


def of_keras(policy, weights, pictures, labels):
    model = network(policy)
    model.set_weights(weights)
    return np.array([float(model.train_on_batch(pictures, labels)) for _ in range(STEPS)])


def ours(precision):
    subprocess.run([hpc_train, "fit", "--model", "mnist-cnn", "--data", f"{folder}/batch.npz", "--weights",
                    f"{folder}/start.weights.h5", "--epochs", str(STEPS), "--batch-size", str(BATCH), "--learning-rate",
                    str(RATE), "--precision", precision, "--log-dir", folder, "--verbose", "0"], check=True)
    with open(f"{folder}/history.csv") as file:
        return np.array([float(row["loss"]) for row in csv.DictReader(file)])


def off(losses, others):
    return float(np.max(np.abs(losses - others) / others))


keras.utils.set_random_seed(1)
random = np.random.default_rng(2)
labels = random.integers(0, 10, BATCH).astype("uint8")
pictures = random.integers(0, 256, (BATCH, 28, 28)).astype("uint8")
np.savez(f"{folder}/batch.npz", x_train=pictures, y_train=labels, x_test=pictures, y_test=labels)
start = network("float32")
start.save_weights(f"{folder}/start.weights.h5")
batch = (start.get_weights(), pictures[..., None].astype("float32") / 255, labels.astype("int32"))
theirs = {policy: of_keras(policy, *batch) for policy in ("float32", "mixed_bfloat16")}
mine = {precision: ours(precision) for precision in ("fp32", "bf16")}
rounding = off(theirs["mixed_bfloat16"], theirs["float32"])
checks = [
    ("fp32 has Keras' losses", off(mine["fp32"], theirs["float32"]), 0, 1e-3),
    ("bf16 rounds", off(mine["bf16"], mine["fp32"]), 1e-6, 1),
    ("and is not farther from fp32 than mixed_bfloat16 is", off(mine["bf16"], theirs["float32"]), 0,
     max(2 * rounding, 1e-3)),
    ("bf16 has the losses of mixed_bfloat16", off(mine["bf16"], theirs["mixed_bfloat16"]), 0, 1e-3),
]
for number, (name, value, least, most) in enumerate(checks, 1):
    print(f"{'ok' if least <= value <= most else 'not ok'} {number} - {name}: {value:.2g} (mixed_bfloat16: {rounding:.2g})")
print(f"1..{len(checks)}")
