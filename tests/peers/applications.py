"""Models of keras.applications beside Keras: the number of parameters in `hpc-train summary`, predictions with weights
that Keras has exported, losses of three steps of SGD, gradients of the first, and the trained weights back in Keras.
Dropout has rate 0, for its random numbers differ. Prints TAP.

Gradients are compared with Keras' in float64: where the next BatchNormalization takes a beta away (its ReLU is open for
every picture), its true gradient is 0, and what float32 has there is rounding, ours as well as Keras'. Ours must be float64's to
1e-3 in the mean, or Keras' in float32 where float64 decides otherwise about a ReLU or a maximum (VGG19), and no further from
float64 than twice as far as Keras' own.

The first model is also taken at its default arguments (224x224, 1000 classes); with HPC_TRAIN_LONG all of them, and the
slow ones. Weights are Keras' initial ones, with gammas of 0.5 and betas of the size given below or its
negative, so that rounding does not decide which ReLUs are open (see nn_models.py).

usage: applications.py NN_MODELS HPC_TRAIN [MODEL...]"""
import contextlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import types

import keras
import numpy as np
import tensorflow as tf

from keras_models import CLASSES, name_of
from tensors import load_file

STEPS, MOMENTUM = 3, 0.9
ZERO = 1e-6  # a norm, of the largest gradient's, below which errors are not relative to it
LONG = os.environ.get("HPC_TRAIN_LONG", "0") not in ("", "0")

MODELS = [  # name, side of the pictures, batch, learning rate, size of betas, slow
    ("MobileNetV2", 64, 8, 0.01, 2.5, False),
    ("MobileNetV3Small", 64, 8, 0.01, 0.5, False),
    ("EfficientNetB0", 64, 8, 0.01, 2.5, False),
    ("MobileNet", 64, 8, 0.01, 2.5, True),
    ("MobileNetV3Large", 64, 8, 0.01, 0.5, True),
    ("EfficientNetV2B0", 64, 8, 0.01, 2.5, True),
    ("VGG16", 32, 4, 0.01, 2.5, True),
    ("VGG19", 32, 4, 0.01, 2.5, True),
    ("ResNet50", 64, 8, 0.0002, 2.5, True),
    ("ResNet101V2", 64, 8, 0.001, 2.5, True),
    ("DenseNet121", 64, 8, 0.01, 2.5, True),
    ("InceptionV3", 139, 8, 0.001, 6, True),  # of 96x96: maps of 1x1, where rounding doubles from layer to layer
    ("Xception", 71, 8, 0.001, 2.5, True),
    ("NASNetMobile", 64, 8, 0.001, 2.5, True),
    ("InceptionResNetV2", 96, 8, 0.0003, 6, True),
    ("ConvNeXtTiny", 64, 8, 0.001, 2.5, True),
]
if importlib.util.find_spec("tf_keras"):
    MODELS += [("RegNetX002", 64, 8, 0.001, 2.5, True), ("RegNetY002", 64, 8, 0.001, 2.5, True)]


def without_dropout(model):
    description = json.loads(model.to_json())
    for layer in description["config"]["layers"]:
        if layer["class_name"] == "Dropout":
            layer["config"]["rate"] = 0.0
    return keras.models.model_from_json(json.dumps(description))


def regnet():
    """Keras 2's module, which Keras 3 does not have any more, with Keras 3's layers."""
    importlib.import_module("tf_keras.src.backend").reset_uids()  # the head's name has a number
    module = importlib.import_module("tf_keras.src.applications.regnet")
    module.layers, module.training = keras.layers, keras
    module.tf = types.SimpleNamespace(math=types.SimpleNamespace(multiply=keras.ops.multiply))
    return module


def build(name, side):
    keras.backend.clear_session()
    keras.utils.set_random_seed(3)
    shape = {} if side is None else {"input_shape": (side, side, 3), "classes": CLASSES}
    module = regnet() if name.startswith("RegNet") else keras.applications
    return getattr(module, name)(weights=None, **shape)


@contextlib.contextmanager
def in_float64():
    """Models built here compute in float64."""
    keras.config.set_floatx("float64")
    try:
        yield
    finally:
        keras.config.set_floatx("float32")


def settle(model, random, size):
    """Weights at which float32 has an answer; statistics other than 0 and 1."""
    for weight in model.weights:
        kind, value = weight.name, weight.numpy()
        if kind == "gamma" or kind.startswith("variable"):  # LayerScale's
            weight.assign(np.full_like(value, 0.5))
        elif kind == "beta":
            weight.assign(np.where(random.uniform(0, 1, value.shape) < 0.8, size, -size))
        elif kind in ("moving_variance", "variance"):
            weight.assign(random.uniform(0.7, 1.3, value.shape))
        elif kind in ("moving_mean", "mean", "bias"):
            weight.assign(random.normal(0, 0.1, value.shape))
    last = [weight for weight in model.weights if weight.name == "kernel"][-1]
    last.assign(last.numpy() * 0.05)  # probabilities of several classes


# ---- both sides ----


def summary(program, path, *options):
    run = subprocess.run([program, "summary", "--model", path, *options], capture_output=True, text=True)
    if run.returncode != 0:
        raise RuntimeError(run.stderr.strip())
    return int(re.search(r"Total params: ([\d,]+)", run.stdout)[1].replace(",", ""))


def export(model, folder):
    """The weights as an .h5 file, whatever its name. Loading it makes Normalization use its mean and variance."""
    model.save_weights(folder + "/theirs.weights.h5")
    model.load_weights(folder + "/theirs.weights.h5")
    shutil.copyfile(folder + "/theirs.weights.h5", folder + "/weights.safetensors")


def ours(program, folder, batch, steps, rate):
    command = [program, "model.json", folder, "cpu", str(batch), str(steps), str(rate), str(MOMENTUM),
               "last.weights.h5"]
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode != 0:
        raise RuntimeError(run.stderr.strip())
    return ([float(loss) for loss in run.stdout.split()],
            np.fromfile(folder + "/predictions.f32", np.float32).reshape(batch, -1))


def loss_and_gradients(model, pictures, labels):
    logits = model.layers[-1].activation.__name__ != "softmax"
    loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=logits, dtype=model.layers[-1].compute_dtype)
    with tf.GradientTape() as tape:
        loss = loss_of(labels, model(pictures, training=True))
    return loss, tape.gradient(loss, model.trainable_variables)


def named(model, gradients):
    return {name_of(w): g.numpy() for w, g in zip(model.trainable_variables, gradients)}


def theirs(model, x, y, rate):
    """Predictions, the losses of the steps, which change the model, and the gradients of the first."""
    sgd = keras.optimizers.SGD(rate, momentum=MOMENTUM)
    predictions, losses, first = model(x[0], training=False).numpy(), [], None
    for pictures, labels in zip(x, y):
        loss, gradients = loss_and_gradients(model, pictures, labels)
        losses.append(float(loss))
        first = first or named(model, gradients)
        sgd.apply(gradients, model.trainable_variables)
    return predictions, losses, first


def true_gradients(name, side, folder, pictures, labels):
    """Keras' in float64, from the weights in the folder."""
    with in_float64():
        model = without_dropout(build(name, side))
        model.load_weights(folder + "/theirs.weights.h5")
        return named(model, loss_and_gradients(model, pictures.astype(np.float64), labels)[1])


def apart(a, b):
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    return float(np.linalg.norm(a - b) / max(np.linalg.norm(b), 1e-30))


def changes_apart(first, mine, last):
    """By tensor: how far the changes are apart, of theirs. That of a bias before BatchNormalization is rounding only and
    is not compared."""
    result = {}
    for name, value in last.items():
        change = value.astype(np.float64) - first[name]
        if np.linalg.norm(change) > 1e-6 * max(np.linalg.norm(first[name]), 1e-3):
            result[name] = apart(mine[name].astype(np.float64) - first[name], change)
    return result


def gradients_apart(one, other, truth):
    """By tensor, of its true norm, or of ZERO of the largest one."""
    norms = {name: np.linalg.norm(gradient) for name, gradient in truth.items()}
    least = ZERO * max(norms.values())
    return {name: float(np.linalg.norm(one[name] - other[name]) / max(norm, least)) for name, norm in norms.items()}


def compare_gradients(mine, keras32, truth):
    mean, text = mean_and_worst(gradients_apart(mine, truth, truth))
    keras_mean, _ = mean_and_worst(gradients_apart(keras32, truth, truth))
    between, _ = mean_and_worst(gradients_apart(mine, keras32, truth))
    return (min(mean, between) < 1e-3 and mean < 2 * keras_mean,
            f"gradients {text} from float64, Keras' by {keras_mean:.1e}, the two by {between:.1e}")


def mean_and_worst(tensors):
    mean, worst = float(np.mean(list(tensors.values()))), max(tensors, key=tensors.get)
    return mean, f"of {len(tensors)} tensors differ by {mean:.1e} in the mean, at most {tensors[worst]:.1e} ({worst})"


def values_of(model):
    return {name_of(w): w.numpy() for w in model.weights}


def compare(nn_models, hpc_train, name, side, batch, rate, size):
    random = np.random.default_rng(7)
    model = without_dropout(build(name, side))
    settle(model, random, size)
    largest = 255 if "Net" in name or "NeXt" in name else 1
    x = random.uniform(0, largest, (STEPS, batch) + model.input_shape[1:]).astype(np.float32)
    if not any(isinstance(layer, (keras.layers.Rescaling, keras.layers.Normalization)) for layer in model.layers):
        x = x / np.abs(x).max() * 2 - 1
    y = random.integers(0, CLASSES, (STEPS, batch)).astype(np.int32)
    with tempfile.TemporaryDirectory() as folder:
        x.tofile(folder + "/inputs.f32")
        y.tofile(folder + "/labels.i32")
        with open(folder + "/model.json", "w") as file:
            file.write(model.to_json())
        export(model, folder)
        count = summary(hpc_train, folder + "/model.json")
        yield count == model.count_params(), f"{count} parameters"
        first = values_of(model)
        losses, mine = ours(nn_models, folder, batch, STEPS, rate)
        predictions, keras_losses, gradients = theirs(model, x, y, rate)
        yield apart(mine, predictions) < 1e-5, f"predictions differ by {apart(mine, predictions):.1e}"
        difference = np.abs(np.divide(losses, keras_losses) - 1).max()
        yield difference < 1e-4, (f"losses of {STEPS} steps, {losses[0]:.4f} to {losses[-1]:.4f}, differ by "
                                  f"{difference:.1e}")
        yield compare_gradients(load_file(folder + "/gradients.safetensors"), gradients,
                                true_gradients(name, side, folder, x[0], y[0]))
        last = values_of(model)
        model.load_weights(folder + "/last.weights.h5")
        trained = load_file(folder + "/last.safetensors")
        same = all(np.array_equal(value, trained[key]) for key, value in values_of(model).items())
        yield same, "Keras loads the trained weights"
        mean, text = mean_and_worst(changes_apart(first, values_of(model), last))
        yield mean < 1e-3, f"changes {text}"


def compare_default(nn_models, hpc_train, name, size):
    """At default arguments: parameters, and predictions of one picture."""
    model = build(name, None)
    settle(model, np.random.default_rng(8), size)
    open_size = None in model.input_shape[1:]
    picture = (224, 224, 3) if open_size else model.input_shape[1:]
    options = ["--resize", f"{picture[1]}x{picture[0]}"] if open_size else []
    with tempfile.TemporaryDirectory() as folder:
        path = folder + "/model.json"
        with open(path, "w") as file:
            file.write(model.to_json())
        count = summary(hpc_train, path, *options)
        yield count == model.count_params(), f"{count} parameters"
        if open_size:
            return
        x = np.random.default_rng(9).uniform(-1, 1, (1, 1) + picture).astype(np.float32)
        x.tofile(folder + "/inputs.f32")
        np.zeros((1, 1), np.int32).tofile(folder + "/labels.i32")
        export(model, folder)
        _, mine = ours(nn_models, folder, 1, 1, 0)
        difference = apart(mine, model(x[0], training=False).numpy())
        yield difference < 1e-5, f"predictions differ by {difference:.1e}"


def results(checks):
    try:
        yield from checks
    except (RuntimeError, AssertionError, ValueError) as error:
        yield False, str(error).replace("\n", " ")


def main():
    nn_models, hpc_train, wanted = sys.argv[1], sys.argv[2], sys.argv[3:]
    cases = [case for case in MODELS if (case[0] in wanted if wanted else LONG or not case[-1])]
    number, failed = 0, 0
    for index, (name, side, batch, rate, size, _) in enumerate(cases):
        runs = [(f"{name} of {side}x{side}, batch {batch}",
                 compare(nn_models, hpc_train, name, side, batch, rate, size))]
        if index == 0 or LONG:
            runs.append((f"{name} at default arguments", compare_default(nn_models, hpc_train, name, size)))
        for text, checks in runs:
            for good, seen in results(checks):
                number += 1
                failed += not good
                print(f"{'ok' if good else 'not ok'} {number} - {text}: {seen}", flush=True)
    print(f"1..{number}")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
