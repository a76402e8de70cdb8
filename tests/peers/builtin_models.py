"""The built-in models beside keras.applications: weights of Keras 3, and of Keras 2 as keras.applications downloads
them, both ways; predictions; the models as Keras reads them; initial weights; another head. Prints TAP.

usage: builtin_models.py NN_FILES HPC_TRAIN [MODEL...]"""
import os
import subprocess
import sys
import tempfile

import keras
import numpy as np

from applications import apart, settle
from keras_models import name_of
from tensors import load_file

try:
    import tf_keras
except ImportError:
    tf_keras = None

BATCH, CLASSES, SEED = 2, 10, "5"
LONG = os.environ.get("HPC_TRAIN_LONG", "0") not in ("", "0")

MODELS = [  # name, Keras', side of the pictures, slow
    ("mobilenet", "MobileNet", 64, False),
    ("mobilenetv2", "MobileNetV2", 64, False),
    ("mobilenetv3small", "MobileNetV3Small", 65, False),  # odd sizes are padded otherwise
    ("efficientnetb0", "EfficientNetB0", 70, False),
    ("densenet121", "DenseNet121", 64, True),
    ("inceptionv3", "InceptionV3", 96, True),
    ("xception", "Xception", 71, True),
    ("vgg16", "VGG16", 32, True),
    ("vgg19", "VGG19", 32, True),
]


def build(framework, kind, side):
    framework.backend.clear_session()
    framework.utils.set_random_seed(3)
    return getattr(framework.applications, kind)(weights=None, input_shape=(side, side, 3), classes=CLASSES)


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip())
    return done.stderr


class Ours:
    """A built-in model, run by nn_files in a folder."""

    def __init__(self, program, name, side, folder, classes=CLASSES, largest=1):
        self.program, self.folder, self.name, self.classes = program, folder, f"{name}:{side}:{classes}", classes
        self.pictures = np.random.default_rng(2).uniform(-1, largest, (BATCH, side, side, 3)).astype(np.float32)
        self.pictures.tofile(folder + "/inputs.f32")

    def predict(self, weights, *files):
        run(self.program, self.name, weights, str(BATCH), self.folder + "/inputs.f32", self.folder + "/outputs.f32", *files)
        return np.fromfile(self.folder + "/outputs.f32", np.float32).reshape(BATCH, self.classes)


def values_of(model):
    return {name_of(weight): weight.numpy() for weight in model.weights}


def same(a, b):
    return list(a) == list(b) and all(np.array_equal(a[name], b[name]) for name in a)


def by_keras_order(tensors, model):
    """In the order of the model's weights; those it does not have at the end."""
    names = [name_of(weight) for weight in model.weights]
    return {name: tensors[name] for name in sorted(tensors, key=lambda n: names.index(n) if n in names else len(names))}


def compare_files(ours, model, kind, side, folder):
    """Weights of Keras 3 here, and ours there."""
    theirs, last = folder + "/theirs.weights.h5", folder + "/ours.weights.h5"
    model.save_weights(theirs)
    model.load_weights(theirs)  # Normalization then uses its mean and variance
    mine = ours.predict(theirs, last, folder + "/ours.safetensors", folder + "/ours.json")
    expected = model(ours.pictures, training=False).numpy()
    yield apart(mine, expected) < 1e-5, f"predictions differ by {apart(mine, expected):.1e}"
    tensors = by_keras_order(load_file(folder + "/ours.safetensors"), model)
    yield same(tensors, values_of(model)), f"{len(tensors)} weights have Keras' names and values"
    other = build(keras, kind, side)
    other.load_weights(last)
    yield same(values_of(other), values_of(model)), "Keras loads ours into its own model"
    with open(folder + "/ours.json", encoding="utf-8") as file:
        read = keras.models.model_from_json(file.read())
    read.load_weights(last)
    difference = apart(read(ours.pictures, training=False).numpy(), expected)
    yield difference < 1e-5, f"the model as Keras reads it: predictions differ by {difference:.1e}"


def compare_initial(ours, kind, side, folder):
    """Large kernels are drawn from Keras' distribution: the same spread and range."""
    ours.predict(SEED, folder + "/first.safetensors")
    mine, worst = load_file(folder + "/first.safetensors"), 0
    for name, value in values_of(build(keras, kind, side)).items():
        if value.ndim > 1 and value.size >= 4096:
            for measure in (np.std, lambda v: np.abs(v).max()):
                worst = max(worst, abs(measure(mine[name]) / measure(value) - 1))
        elif value.ndim == 1:
            worst = max(worst, np.abs(mine[name] - value).max())
    yield worst < 0.15, f"initial weights have Keras' spread (to {worst:.2f})"


def compare_legacy(ours, hpc_train, kind, side, folder):
    """Files as keras.applications downloads them: Keras 2's, with its names of layers."""
    model = build(tf_keras, kind, side)
    settle_legacy(model)
    path = folder + "/legacy.h5"
    model.save_weights(path)
    mine = ours.predict(path, folder + "/plain.safetensors")
    expected = model(ours.pictures, training=False).numpy()
    yield apart(mine, expected) < 1e-5, f"Keras 2's file: predictions differ by {apart(mine, expected):.1e}"
    yield from compare_other_head(hpc_train, ours.name.split(":")[0], side, path, folder)


def compare_other_head(hpc_train, name, side, path, folder):
    """All but the head of a file for other classes; a step at a rate that changes nothing but moving statistics."""
    said = run(hpc_train, "fit", "--model", name, "--resize", f"{side}x{side}", "--classes", "7", "--data", "synthetic:8",
               "--batch-size", "8", "--epochs", "1", "--learning-rate", "1e-30", "--device", "cpu", "--verbose", "0",
               "--weights", path, "--skip-mismatch", "--log-dir", folder, "--save-weights", folder + "/head.safetensors")
    plain, other = load_file(folder + "/plain.safetensors"), load_file(folder + "/head.safetensors")
    head = sorted(key for key in plain if plain[key].shape != other[key].shape)
    kept = [np.allclose(plain[key], other[key], 0, 1e-20) for key in plain if key not in head and "/moving_" not in key]
    layer = head[0].split("/")[0]
    yield (all(kept) and len(head) == 2 and f": {layer} (" in said and said.count("(") == 1,
           f"with 7 classes all is loaded but {layer}")


def compare_imagenet(program, hpc_train, folder):
    """EfficientNetB0 as Keras makes it for ImageNet's weights, of which the file here has some numbers."""
    keras.backend.clear_session()
    model, path = keras.applications.EfficientNetB0(weights=None), folder + "/imagenet.weights.h5"
    settle(model, np.random.default_rng(7), 2.5)
    model.get_layer("normalization").set_weights([np.float32([0.485, 0.456, 0.406]), np.float32([0.229, 0.224, 0.225]),
                                                    np.int32(1)])
    model.save_weights(path)
    keras.src.applications.efficientnet.file_utils.get_file = lambda *_, **__: path
    keras.backend.clear_session()
    model = keras.applications.EfficientNetB0(weights="imagenet")
    ours = Ours(program, "efficientnetb0-imagenet", 224, folder, 1000, 255)
    mine, expected = ours.predict(path), model(ours.pictures, training=False).numpy()
    yield apart(mine, expected) < 1e-5, f"predictions differ by {apart(mine, expected):.1e}"
    for name, warns in (("efficientnetb0", True), ("efficientnetb0-imagenet", False)):
        said = run(hpc_train, "evaluate", "--model", name, "--data", "synthetic:2", "--device", "cpu", "--weights", path)
        yield ("lacks its second Rescaling" in said) == warns, f"{name}: {'a' if warns else 'no'} warning of the Rescaling"
    said = run(hpc_train, "fit", "--model", "efficientnetb0", "--resize", "32x32", "--classes", "7", "--data", "synthetic:8", "--batch-size",
               "8", "--epochs", "1", "--device", "cpu", "--verbose", "0", "--weights", path, "--skip-mismatch")
    yield "lacks its second Rescaling" in said, "efficientnetb0 with another head: a warning, too"


def settle_legacy(model):
    random = np.random.default_rng(7)
    for weight in model.weights:
        kind, value = weight.name.rsplit("/")[-1].split(":")[0], weight.numpy()
        if kind in ("moving_variance", "variance"):
            weight.assign(random.uniform(0.7, 1.3, value.shape))
        elif kind in ("moving_mean", "mean", "bias", "beta"):
            weight.assign(random.normal(0, 0.1, value.shape))


def compare(program, hpc_train, name, kind, side):
    with tempfile.TemporaryDirectory() as folder:
        ours = Ours(program, name, side, folder)
        model = build(keras, kind, side)
        settle(model, np.random.default_rng(7), 2.5)
        yield from compare_files(ours, model, kind, side, folder)
        yield from compare_initial(ours, kind, side, folder)
        if tf_keras is not None:
            yield from compare_legacy(ours, hpc_train, kind, side, folder)
        if kind == "EfficientNetB0":
            yield from compare_imagenet(program, hpc_train, folder)


def results(checks):
    try:
        yield from checks
    except (RuntimeError, KeyError, ValueError) as error:
        yield False, str(error).replace("\n", " ")


def main():
    program, hpc_train, wanted = sys.argv[1], sys.argv[2], sys.argv[3:]
    number, failed = 0, 0
    for name, kind, side, slow in MODELS:
        if (name not in wanted) if wanted else (slow and not LONG):
            continue
        for good, seen in results(compare(program, hpc_train, name, kind, side)):
            number += 1
            failed += not good
            print(f"{'ok' if good else 'not ok'} {number} - {name} of {side}x{side}: {seen}", flush=True)
    print(f"1..{number}")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
