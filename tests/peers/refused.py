"""Models of Keras with layers that there are not here: `hpc-train summary` ends with 65 and one message, which names all of them
and their classes, and no other layer. Prints TAP.

usage: refused.py HPC_TRAIN"""
import os
import re
import subprocess
import sys
import tempfile

import keras
from keras import layers


class Doubled(layers.Layer):
    def call(self, x):
        return 2 * x


@keras.saving.register_keras_serializable("mine")
class Dense(layers.Dense):
    """Of the name of Keras' own."""


def steep(x):
    return 3 * x


class Halves(keras.initializers.Initializer):
    def __call__(self, shape, dtype=None):
        return 0.5 * keras.ops.ones(shape, dtype)

    def get_config(self):
        return {}


def sequences():
    return keras.Sequential([
        layers.Input((12,), dtype="int32"), layers.Embedding(100, 8, name="words"),
        layers.Bidirectional(layers.LSTM(4, return_sequences=True), name="both"), layers.LSTM(6, return_sequences=True, name="first"),
        layers.Dense(5, name="known"), layers.LSTM(7, name="second"), layers.Dense(3, name="last")])


def attention():
    x = image = layers.Input((6, 8), name="image")
    x = layers.Dense(8, name="known")(x)
    x = layers.Attention(name="dots")([x, x])
    x = layers.Add(name="sum")([x, layers.MultiHeadAttention(2, 4, name="heads")(x, x, use_causal_mask=True)])
    return keras.Model(image, layers.Flatten(name="flat")(x))


def code():
    return keras.Sequential([
        layers.Input((8, 8, 3)), layers.Conv2D(4, 3, name="known"), layers.Lambda(lambda x: x * 2, name="code"),
        layers.Lambda(steep, name="function"), layers.Flatten(name="flat")])


def own_classes():
    return keras.Sequential([
        layers.Input((8,)), layers.Dense(8, name="known"), Doubled(name="doubled"), Dense(5, name="mine"), layers.Dense(4, name="last")])


def within():
    return keras.Sequential([
        layers.Input((8, 3)), keras.Sequential([layers.Dense(4, name="known"), layers.GRU(5, name="inner")], name="nested"),
        layers.Lambda(lambda x: x, name="outer"), layers.Dense(2, name="last")])


def own_activation():
    return keras.Sequential([layers.Input((8,)), layers.Dense(8, activation=steep, name="curved")])


def own_initializer():
    return keras.Sequential([layers.Input((8,)), layers.Dense(8, kernel_initializer=Halves(), name="halved")])


LISTS = [  # model, layers and classes in the message
    (sequences, ['"words" (Embedding)', '"both" (Bidirectional)', '"first", "second" (LSTM)']),
    (attention, ['"dots" (Attention)', '"heads" (MultiHeadAttention)']),
    (code, ['"code", "function" (Lambda)']),
    (own_classes, ['"doubled" (Doubled)', '"mine" (Dense, a custom class)']),
    (within, ['"inner" (GRU)', '"outer" (Lambda)'])]
OBJECTS = [  # model, start of the message
    (own_activation, 'layer "curved" (Dense): activation '),
    (own_initializer, 'layer "halved" (Dense): kernel_initializer ')]


def message(program, build):
    keras.backend.clear_session()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.json")
        with open(path, "w", encoding="utf-8") as file:
            file.write(build().to_json())
        run = subprocess.run([program, "summary", "--model", path], capture_output=True, text=True, check=False)
    return run.returncode, run.stderr.strip()


def listed(text):
    """The layers in the message, as they stand there."""
    found = re.search("of its layers (?:is|are) not supported: (.*); there are: ", text)
    return re.findall(r'"[^(]*\([^)]*\)', found[1]) if found else []


def main():
    number, failed = 0, 0
    for build, expected in LISTS + OBJECTS:
        status, text = message(sys.argv[1], build)
        number += 1
        good = status == 65 and (listed(text) == expected if isinstance(expected, list) else expected in text)
        failed += not good
        print(f"{'ok' if good else 'not ok'} {number} - {build.__name__}: {' '.join(text.split())[:300]}", flush=True)
    print(f"1..{number}")
    return failed > 0


sys.exit(main())
