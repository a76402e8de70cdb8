"""Exported models beside what they were exported from: every built-in model, a small Keras model for each layer, and models of
keras.applications (slow ones with HPC_TRAIN_LONG). The ONNX file passes onnx's checker with inference of shapes, and onnxruntime
predicts from it what `hpc-train predict` and Keras do; Keras loads the .keras archive and predicts the same. Prints TAP.

usage: onnx_models.py HPC_TRAIN [NAME...]; NAME: only checks in whose name it is"""
import json
import os
import subprocess
import sys
import tempfile

import keras
import numpy as np
import onnx
import onnxruntime
from keras import layers
from keras.src.applications.convnext import LayerScale, StochasticDepth

import applications
import builtin_models
from keras_models import ACTIVATIONS
from tensors import load_file, save_file

PICTURES, CLASSES = 5, 4
HPC_TRAIN = sys.argv[1]
BUILTIN = {"mnist-cnn": 28, "mnist-convnet": 28, "resnet50": 64, "resnet50v2": 64}
if os.environ.get("HPC_TRAIN_LONG"):
    BUILTIN |= {"resnet101v2": 64, "resnet152v2": 64}


def run(*command):
    done = subprocess.run([HPC_TRAIN, *map(str, command)], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{command[0]}: {done.stderr.strip()}")
    return done.stdout


def save_as(path, pictures):
    labels = np.zeros(PICTURES, np.uint8)
    np.savez(path, x_train=pictures, y_train=labels, x_test=pictures, y_test=labels)
    return pictures


def save_pictures(path, shape, seed):
    pictures = save_as(path, np.random.default_rng(seed).integers(0, 256, (PICTURES, *shape)).astype(np.uint8))
    return pictures.astype(np.float32) / np.float32(255)


def ours(options, classes):
    """Probabilities [PICTURES][classes], by hpc-train."""
    run("predict", *options, "--top-k", classes, "--output", "ours.jsonl")
    out = np.zeros((PICTURES, classes))
    for line in open("ours.jsonl"):
        row = json.loads(line)
        for one in row["top"]:
            out[row["index"], one["class"]] = one["probability"]
    return out


def softmax(x):
    x = np.exp(x - x.max(axis=-1, keepdims=True))
    return x / x.sum(axis=-1, keepdims=True)


def by_onnx(x):
    """Outputs of model.onnx, of all pictures at once and of each alone."""
    onnx.checker.check_model("model.onnx", full_check=True)
    session = onnxruntime.InferenceSession("model.onnx", providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    together = session.run(None, {name: x})[0]
    alone = np.concatenate([session.run(None, {name: x[i:i + 1]})[0] for i in range(len(x))])
    assert np.abs(together - alone).max() < 1e-5, "a picture alone has other outputs"
    return together


def largest(ours, theirs):
    assert ours.shape == theirs.shape, (ours.shape, theirs.shape)
    assert np.ptp(ours, axis=0).max() > 1e-6, "all pictures have the same outputs"
    return np.abs(ours - theirs).max()


# ---- built-in models ----


def draw_weights(options, seed):
    """Weights of every kind, moving statistics included, as after some training."""
    run("fit", *options, "--data", "synthetic:8", "--epochs", 1, "--steps-per-epoch", 1, "--batch-size", 2, "--verbose", 0,
        "--learning-rate", 0.001, "--save-weights", "drawn.safetensors")
    random, weights = np.random.default_rng(seed), load_file("drawn.safetensors")
    for name, value in weights.items():
        if name.endswith("variance"):
            weights[name] = random.uniform(0.5, 1.5, value.shape)
        elif name.endswith("gamma"):
            weights[name] = random.uniform(0.3, 0.9, value.shape)
        elif not name.endswith("kernel"):
            weights[name] = random.normal(0, 0.2, value.shape)
    save_file(weights, "weights.safetensors")


def check_builtin(model, side, seed):
    shape = (28, 28) if side == 28 else (side, side, 3)
    options = ["--model", model, "--classes", CLASSES]
    options += ["--resize", f"{side}x{side}"] if side != 28 else []
    x = save_pictures("pictures.npz", shape, seed)
    draw_weights(options, seed)
    options += ["--weights", "weights.safetensors"]
    run("export", *options, "--output", "model.onnx")
    if model == "mnist-convnet":
        x = x[..., None]
    theirs = by_onnx(x)
    if model == "mnist-cnn":
        theirs = softmax(theirs)
    return largest(ours([*options, "--data", "pictures.npz"], CLASSES), theirs)


# ---- layers ----


def joined(join, count):
    def add(x):
        return join()([layers.Conv2D(6, 3, padding="same")(x) for _ in range(count)])
    return add


def squeezed(x):
    """Squeeze and excitation."""
    y = layers.Conv2D(x.shape[-1], 1, activation="hard_sigmoid")(layers.GlobalAveragePooling2D(keepdims=True)(x))
    return layers.Multiply()([x, y])


def wide():
    """So that values lie on both sides of every threshold."""
    return layers.Rescaling(9, offset=-3)


def cases():
    """(name, layers under test)"""
    def one(name, *under_test):
        return (name, under_test)

    yield one("Conv2D strides 2x3", layers.Conv2D(5, (3, 2), strides=(2, 3)))
    yield one("Conv2D strides 3x2, same", layers.Conv2D(5, (4, 5), strides=(3, 2), padding="same"))
    yield one("Conv2D dilated, same, no bias", layers.Conv2D(4, (3, 4), dilation_rate=(3, 2), padding="same", use_bias=False))
    yield one("Conv2D in 3 groups", layers.Conv2D(6, 3, groups=3, padding="same"))
    for activation in ACTIVATIONS:
        yield one(f"Conv2D with {activation}", layers.Conv2D(4, 3, activation=activation))
        yield one(f"Dense with {activation}", layers.Dense(7, activation=activation))
        yield one(f"Activation {activation}", layers.Rescaling(9, offset=-2), layers.Activation(activation))
    yield one("Dense without bias", layers.Flatten(), layers.Dense(7, use_bias=False))
    yield one("Dense on rows", layers.Reshape((-1, 12)), layers.Dense(7, activation="relu"), layers.Dense(3, use_bias=False))
    yield one("DepthwiseConv2D strides 2, same, multiplier 2",
              layers.DepthwiseConv2D((3, 4), strides=2, padding="same", depth_multiplier=2))
    yield one("BatchNormalization", layers.BatchNormalization(), layers.Activation("relu"))
    yield one("BatchNormalization without scale, of rows", layers.Reshape((-1, 3)),
              layers.BatchNormalization(scale=False, epsilon=0.1))
    yield one("BatchNormalization without centre, of a vector", layers.Flatten(),
              layers.BatchNormalization(center=False), layers.Activation("relu"))
    yield one("AveragePooling2D 3x2 by 2x3, same", layers.AveragePooling2D((3, 2), strides=(2, 3), padding="same"))
    yield one("MaxPooling2D 3x3 by 2x2, same", layers.MaxPooling2D(3, strides=2, padding="same"))
    yield one("MaxPooling2D 2x2", layers.MaxPooling2D(2))
    yield one("GlobalAveragePooling2D", layers.GlobalAveragePooling2D())
    yield one("GlobalMaxPooling2D", layers.GlobalMaxPooling2D())
    yield one("ZeroPadding2D and a convolution", layers.ZeroPadding2D(((1, 2), (0, 1))), layers.Conv2D(3, 3, strides=2))
    yield one("ZeroPadding2D and a pooling of negative numbers", layers.Rescaling(-1, offset=-1), layers.ZeroPadding2D(1),
              layers.MaxPooling2D(3, strides=2))
    yield one("ZeroPadding2D alone", layers.ZeroPadding2D(((1, 0), (2, 3))), layers.Activation("sigmoid"))
    yield one("Reshape and Flatten", layers.Reshape((12, -1, 2)), layers.Conv2D(3, 2), layers.Flatten())
    yield one("Reshape of a pooled picture", layers.GlobalAveragePooling2D(), layers.Reshape((1, 1, 6)),
              layers.Conv2D(5, 1, activation="relu"))
    yield one("Rescaling", layers.Rescaling(1 / 127.5, offset=-1))
    yield one("Resizing to 13x7", layers.Resizing(13, 7))
    yield one("Resizing to 4x21", layers.Resizing(4, 21))
    yield one("Resizing between dense layers", layers.Dense(5), layers.Resizing(5, 12), layers.Dense(4))
    yield one("RandomCrop and RandomFlip", layers.RandomCrop(6, 4), layers.RandomFlip())
    yield one("RandomCrop of a smaller picture", layers.RandomCrop(12, 9))
    yield one("RandomFlip, RandomRotation, RandomZoom, RandomTranslation, RandomContrast and RandomBrightness",
              layers.RandomFlip(), layers.RandomRotation(0.5, fill_mode="constant"), layers.RandomZoom(0.2, (0.1, 0.3)),
              layers.RandomTranslation(0.1, 0.2), layers.RandomContrast(0.5), layers.RandomBrightness(0.2, value_range=(0, 1)))
    yield one("Dropout of a pooled picture", layers.GlobalAveragePooling2D(), layers.Dropout(0.2), layers.Dense(5))
    yield one("Dropout of a reshaped picture", layers.Reshape((-1, 6)), layers.Dropout(0.3), layers.Flatten(), layers.Dropout(0.3))
    yield one("Dropout", layers.Dropout(0.3), layers.Activation("linear"))
    yield one("ReLU to 2, sloped", wide(), layers.ReLU(max_value=2, negative_slope=0.3))
    yield one("ReLU to 3 above 1, sloped", wide(), layers.ReLU(max_value=3, negative_slope=0.3, threshold=1))
    yield one("ReLU above 1", wide(), layers.ReLU(threshold=1))
    yield one("ReLU to 6", wide(), layers.ReLU(6))
    yield one("LeakyReLU", wide(), layers.LeakyReLU(negative_slope=0.4))
    yield one("ELU of a vector", layers.Flatten(), wide(), layers.ELU(alpha=0.7))
    yield one("PReLU", wide(), layers.PReLU(), layers.Conv2D(3, 2))
    yield one("PReLU per channel", wide(), layers.PReLU(shared_axes=[1, 2]))
    yield one("PReLU of a vector", layers.Flatten(), wide(), layers.PReLU())
    yield one("PReLU of pictures as they come", layers.Reshape((12, -1, 2)), wide(), layers.PReLU(shared_axes=[1, 2]))
    yield one("Normalization by given numbers", layers.Normalization(mean=[0.5, 1, 2, 3, 4, 5], variance=[1, 2, 3, 4, 5, 6]))
    yield one("Normalization by weights", layers.Normalization(), layers.Conv2D(3, 2))
    yield one("Normalization of rows", layers.Reshape((-1, 3)), layers.Normalization())
    yield one("Rescaling per channel", layers.Rescaling([1, 0.5, 2, 1, 3, 1], offset=[0, 1, 2, 0, 0, -1]))
    yield one("LayerNormalization", layers.LayerNormalization(epsilon=1e-4), layers.Conv2D(3, 2))
    yield one("LayerNormalization of rows, without scale", layers.Reshape((-1, 12)), layers.LayerNormalization(scale=False))
    yield one("LayerNormalization of a vector, without centre", layers.Flatten(), layers.LayerNormalization(center=False))
    yield one("GroupNormalization", layers.GroupNormalization(3), layers.Conv2D(3, 2))
    yield one("GroupNormalization in one group, without scale", layers.GroupNormalization(1, scale=False))
    yield one("GroupNormalization of each channel, without both", layers.GroupNormalization(-1, scale=False, center=False))
    yield one("GroupNormalization of a vector", layers.Flatten(), layers.Dense(12), layers.GroupNormalization(4, center=False))
    yield one("LayerScale and StochasticDepth", LayerScale(0.5, 6), StochasticDepth(0.3), layers.Conv2D(3, 2))
    yield one("LayerScale of rows", layers.Dense(5), LayerScale(0.5, 5), layers.ReLU())
    yield one("GaussianNoise and SpatialDropout2D", layers.GaussianNoise(0.3), layers.SpatialDropout2D(0.3), layers.Conv2D(3, 2))
    yield one("Permute", layers.Permute((3, 1, 2)), layers.Conv2D(3, 2))
    yield one("Permute of rows", layers.Reshape((-1, 12)), layers.Permute((2, 1)), layers.Dense(3))
    yield one("Cropping2D", layers.Cropping2D(((1, 2), (0, 3))), layers.Activation("sigmoid"))
    yield one("UpSampling2D", layers.UpSampling2D((2, 3)))
    yield one("UpSampling2D by 5x4, bilinear", layers.UpSampling2D((5, 4), interpolation="bilinear"))
    yield one("UpSampling2D of a cropped picture by 7", layers.Cropping2D(((2, 2), (3, 2))), layers.UpSampling2D(7))
    for padding in ("same", "valid"):
        yield one(f"Conv2DTranspose strides 2x3, {padding}", layers.Conv2DTranspose(5, (3, 4), strides=(2, 3), padding=padding))
        yield one(f"Conv2DTranspose strides 3x4 of smaller kernels, {padding}",
                  layers.Conv2DTranspose(5, (1, 2), strides=(3, 4), padding=padding, activation="relu"))
    yield one("Conv2DTranspose without bias", layers.Conv2DTranspose(4, 3, use_bias=False, activation="elu"))
    yield one("SeparableConv2D", layers.SeparableConv2D(5, 3, depth_multiplier=2, strides=2, padding="same"))
    yield one("Multiply of two", joined(layers.Multiply, 2))
    yield one("Multiply of three", joined(layers.Multiply, 3))
    yield one("Multiply by one of each channel", squeezed)
    yield one("Multiply by one of each channel, of pictures as they come", layers.Reshape((12, -1, 2)), squeezed)
    yield one("Multiply by one of each channel, which comes first", lambda x: layers.Multiply()(
        [layers.GlobalMaxPooling2D(keepdims=True)(x), x]))
    yield one("Add of two", joined(layers.Add, 2), layers.Activation("relu"))
    yield one("Add of three", joined(layers.Add, 3))
    yield one("Concatenate", joined(layers.Concatenate, 3), layers.Conv2D(3, 2))
    yield one("Concatenate of vectors", lambda x: layers.Concatenate()([layers.Flatten()(x), layers.Flatten()(layers.Conv2D(2, 3)(x))]))


def check_keras(model, pictures, scale="unit"):
    """A model of Keras: by `hpc-train predict`, by onnxruntime, and by Keras from the archive. pictures: as --scale gives them."""
    with open("model.json", "w") as file:
        file.write(model.to_json())
    model.save_weights("model.weights.h5")
    model.load_weights("model.weights.h5")  # Normalization then uses its own
    options = ["--model", "model.json", "--weights", "model.weights.h5"]
    run("export", *options, "--output", "model.onnx")
    run("export", *options, "--format", "keras", "--output", "again.keras")
    # RegNet ends in logits
    probabilities = np.array if model.layers[-1].activation.__name__ == "softmax" else softmax
    ours_now = ours([*options, "--data", "pictures.npz", "--scale", scale], model.output_shape[-1])
    theirs = probabilities(by_onnx(pictures))
    if any(isinstance(layer, layers.RandomCrop) for layer in model.layers):  # Keras' own call leaves the picture as it is
        return largest(ours_now, theirs)
    again = probabilities(keras.saving.load_model("again.keras").predict(pictures, verbose=0))
    before = probabilities(model.predict(pictures, verbose=0))
    return max(largest(ours_now, before), largest(theirs, before), largest(again, before))


def check_layers(under_test, seed):
    keras.utils.set_random_seed(seed)
    x = image = layers.Input((9, 10, 3))
    first = any(isinstance(layer, (layers.RandomCrop, layers.RandomFlip)) for layer in under_test)  # before all weights
    for layer in [*under_test, layers.Conv2D(6, 2)] if first else [layers.Conv2D(6, 2), *under_test]:
        x = layer(x)
    model = keras.Model(image, layers.Dense(CLASSES, activation="softmax")(layers.Flatten()(x)))
    random = np.random.default_rng(seed)
    for weight in model.weights:
        if len(weight.shape) == 1 or weight.name == "alpha":
            weight.assign(random.uniform(0.2, 0.9, weight.shape))
    return check_keras(model, save_pictures("pictures.npz", (9, 10, 3), seed))


# ---- models of keras.applications ----


def settle(model, x, random):
    """Weights at which pictures have different classes: statistics are those of x, also of what the last layer reads."""
    norms = [layer for layer in model.layers if isinstance(layer, layers.BatchNormalization)]
    for weight in model.weights:
        if weight.name in ("gamma", "scale") or weight.name.startswith("variable"):  # LayerScale's
            weight.assign(random.uniform(0.5, 1.2, weight.shape))
        elif weight.name in ("beta", "bias"):
            weight.assign(random.normal(0, 0.2 if weight.name == "beta" else 0.02, weight.shape))
        elif weight.name == "kernel" and not norms:  # as He et al. have it: nothing fades with depth
            weight.assign(weight * np.sqrt(2))
    momenta = [layer.momentum for layer in norms]
    for layer in norms:
        layer.momentum = 0
    model(x, training=True)
    for layer, momentum in zip(norms, momenta):
        layer.momentum = momentum
    last = [layer for layer in model.layers if hasattr(layer, "kernel")][-1]
    read = keras.Model(model.input, last.input).predict(x, verbose=0).reshape(PICTURES, -1)
    kernel = random.normal(0, 1, last.kernel.shape)
    kernel *= 0.2 / np.std(read @ kernel.reshape(read.shape[1], -1), axis=0).mean()
    last.kernel.assign(kernel)
    last.bias.assign(-(read @ kernel.reshape(read.shape[1], -1)).mean(axis=0))


def check_application(name, side, seed):
    """Pictures of tiles, each with other ones, so that means over a picture differ. The built-in model of the name, too."""
    random, model = np.random.default_rng(seed), applications.build(name, side)
    tiles = random.integers(0, 256, (PICTURES, 2, 2, 3)).repeat(-(-side // 2), 1).repeat(-(-side // 2), 2)
    x = save_as("pictures.npz", tiles[:, :side, :side].astype(np.uint8)).astype(np.float32)
    as_they_are = any(isinstance(layer, (layers.Rescaling, layers.Normalization)) for layer in model.layers)
    x = x if as_they_are else x / np.float32(127.5) - 1
    settle(model, x, random)
    difference = check_keras(model, x, "none" if as_they_are else "symmetric")
    for builtin in (ours for ours, kind, *_ in builtin_models.MODELS if kind == name):
        run("export", "--model", builtin, "--resize", f"{side}x{side}", "--classes", model.output_shape[-1], "--weights",
            "model.weights.h5", "--output", "model.onnx")
        difference = max(difference, largest(by_onnx(x), model.predict(x, verbose=0)))
    return difference


# ---- what is in the file ----


def check_names():
    """Class names, of weights that have them; any size of batch; the names of the layers."""
    header = json.dumps({"dense/kernel": {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16]},
                         "dense/bias": {"dtype": "F32", "shape": [2], "data_offsets": [16, 24]},
                         "__metadata__": {"class_names": json.dumps(["cät", 'd"og'])}}).encode()
    with open("named.safetensors", "wb") as file:
        file.write(len(header).to_bytes(8, "little") + header + np.arange(6, dtype=np.float32).tobytes())
    model = keras.Sequential([layers.Input((2,)), layers.Dense(2, activation="softmax", name="dense")])
    with open("model.json", "w") as file:
        file.write(model.to_json())
    run("export", "--model", "model.json", "--weights", "named.safetensors", "--output", "model.onnx")
    loaded = onnx.load("model.onnx")
    metadata = {entry.key: entry.value for entry in loaded.metadata_props}
    assert json.loads(metadata["class_names"]) == ["cät", 'd"og'], metadata
    assert loaded.graph.input[0].type.tensor_type.shape.dim[0].dim_param == "batch", loaded.graph.input
    assert {t.name for t in loaded.graph.initializer} == {"dense/kernel", "dense/bias"}, loaded.graph.initializer
    assert loaded.graph.output[0].name == "dense" and loaded.producer_name == "hpc-train", loaded
    return 0


def main():
    checks = [(f"--model {model}", check_builtin, (model, side, seed)) for seed, (model, side) in enumerate(BUILTIN.items(), 1)]
    checks += [(name, check_layers, (under_test, seed)) for seed, (name, under_test) in enumerate(cases(), 1)]
    checks += [(name, check_application, (name, side, seed)) for seed, (name, side, *_, slow) in enumerate(applications.MODELS, 1)
               if applications.LONG or not slow]
    checks.append(("names in the file", check_names, ()))
    checks = [check for check in checks if len(sys.argv) == 2 or any(name in check[0] for name in sys.argv[2:])]
    print(f"1..{len(checks)}")
    failed = 0
    for number, (name, check, arguments) in enumerate(checks, 1):
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            try:
                difference = check(*arguments)
                good, text = difference < 1e-5, f"largest difference {difference:.1e}"
            except Exception as error:  # of any of the programs: the others are still checked
                good, text = False, f"{type(error).__name__}: {error}".replace("\n", " ")[:600]
            os.chdir("/")
        failed += not good
        print(f"{'ok' if good else 'not ok'} {number} - {name}: {text}", flush=True)
    return failed > 0


sys.exit(main())
