"""Models and weights in files, between Keras and nn_files, both ways: the same predictions, the same
weights to the bit. Prints TAP.

usage: nn_files.py NN_FILES [all]    all: the large models too"""
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
import keras
from keras.src.applications.convnext import LayerScale, StochasticDepth
from keras.src.applications.inception_resnet_v2 import CustomScaleLayer
from safetensors.numpy import load_file

try:
    import tf_keras
except ImportError:
    tf_keras = None

BATCH = 3
TOLERANCE = 1e-5  # of predictions, relative to the largest


def mnist_cnn(k):
    return k.Sequential([
        k.layers.Input((28, 28)), k.layers.Reshape((28, 28, 1)),
        k.layers.Conv2D(32, 3, activation="relu"), k.layers.Flatten(),
        k.layers.Dense(128, activation="relu"), k.layers.Dense(10)])


def mnist_convnet(k):
    return k.Sequential([
        k.layers.Input((28, 28, 1)), k.layers.Conv2D(32, 5, activation="relu"),
        k.layers.MaxPooling2D(), k.layers.Conv2D(64, 5, activation="relu"),
        k.layers.MaxPooling2D(), k.layers.Flatten(), k.layers.Dense(10, activation="softmax")])


def branches(k):
    """Every layer there is, in a graph whose order of layers is not that of their making."""
    layers = k.layers
    start = picture = layers.Input((20, 16, 3), name="picture")
    for layer in [layers.Rescaling(2.0, -1.0), layers.RandomFlip("horizontal"),
                  layers.Resizing(18, 14), layers.RandomCrop(18, 14)]:
        start = layer(start)
    short = layers.Conv2D(8, 1, strides=2, name="late_short", use_bias=False,
                          kernel_initializer="he_normal")(start)
    x = layers.Conv2D(8, 3, padding="same", name="first")(start)
    x = layers.DepthwiseConv2D(3, strides=2, padding="same", depth_multiplier=1)(x)
    x = layers.Activation("gelu")(x)
    x = layers.Add(name="sum")([short, x])
    y = layers.Conv2D(6, 3, padding="same", dilation_rate=2, groups=2, activation="tanh")(x)
    z = layers.AveragePooling2D(3, strides=1, padding="same")(x)
    z = layers.ReLU(6.0)(z)
    w = layers.Conv2D(4, (1, 3), padding="same", activation="sigmoid")(z)
    x = layers.Concatenate()([y, x, w])
    x = layers.BatchNormalization(momentum=0.9, epsilon=1e-5)(x)
    x = layers.ZeroPadding2D(((1, 0), (2, 1)))(x)
    x = layers.MaxPooling2D((2, 2), strides=(2, 1), padding="same")(x)
    v = layers.BatchNormalization(scale=False)(layers.GlobalAveragePooling2D()(x))
    v = layers.Concatenate()([v, layers.GlobalMaxPooling2D()(x)])
    x = layers.Dropout(0.5)(layers.Concatenate()([layers.Flatten()(x), v]))
    x = layers.Dense(20, use_bias=False, bias_initializer="ones")(x)
    return k.Model(picture, layers.Softmax()(x), name="branches")


def separable(k):
    """Layers with kernels of other names, and those that keras.applications has of its own."""
    layers = k.layers
    start = x = layers.Input((12, 10, 3), name="picture")
    x = layers.Cropping2D(((1, 0), (0, 1)))(x)
    x = layers.SeparableConv2D(8, 3, padding="same", depth_multiplier=2, pointwise_initializer="he_uniform",
                               name="separable")(x)
    x = layers.LayerNormalization(epsilon=1e-6)(x)
    y = layers.SeparableConv2D(8, 3, padding="same", use_bias=False, activation="relu")(x)
    y = StochasticDepth(0.1)(LayerScale(0.25, 8)(y))
    x = CustomScaleLayer(0.17)([x, y])
    x = layers.GroupNormalization(4)(layers.UpSampling2D((1, 2), interpolation="bilinear")(x))
    x = layers.Conv2DTranspose(8, 2, strides=(2, 1), activation="relu")(x)
    x = layers.GaussianNoise(0.1)(layers.SpatialDropout2D(0.1)(x))
    x = layers.Flatten()(layers.Permute((2, 3, 1))(x))
    return k.Model(start, layers.Dense(10)(x), name="separables")


def nested(k):
    """Sequentials as layers, beside others of their layers' classes; one on a branch, and one at the end."""
    layers = k.layers
    start = layers.Input((12, 10, 3), name="picture")
    augmentation = k.Sequential([
        layers.RandomFlip("horizontal"), layers.RandomRotation(0.1), layers.RandomZoom(0.2), layers.RandomZoom(0.1, (0.2, 0.3)),
        layers.RandomTranslation(0.1, 0.2, fill_mode="constant", fill_value=0.5), layers.RandomContrast(0.3),
        layers.RandomBrightness(0.2, value_range=(0, 1))], name="data_augmentation")
    stem = k.Sequential([layers.Conv2D(6, 3, padding="same"), layers.BatchNormalization()], name="stem")
    left = k.Sequential([layers.Conv2D(4, 1), layers.Conv2D(6, 3, padding="same"), layers.ReLU()], name="left")
    x = layers.Conv2D(6, 1)(stem(layers.Conv2D(5, 3, padding="same", name="first")(augmentation(start))))
    x = layers.Add(name="sum")([left(x), layers.Conv2D(6, 1)(x)])
    x = layers.Flatten()(layers.BatchNormalization()(x))
    end = k.Sequential([layers.Dense(7, activation="tanh"), layers.Dense(10)], name="end")
    return k.Model(start, end(x), name="nests")


def inside(k, name, channels):
    """Models of one structure have layers of the same names."""
    layers = k.layers
    start = layers.Input((12, 10, channels))
    x = layers.Conv2D(5, 3, padding="same", name="conv")(start)
    x = layers.BatchNormalization(name="bn")(x)
    return k.Model(start, layers.Add(name="add")([layers.Conv2D(5, 1, name="short")(start), x]), name=name)


def models_in_models(k):
    """Functional models in a Sequential and beside it, with layers of the same names, and one as the end."""
    layers = k.layers
    start = layers.Input((12, 10, 3))
    stack = k.Sequential([layers.Input((12, 10, 3)), inside(k, "one", 3), inside(k, "two", 5),
                          k.Sequential([layers.Conv2D(5, 1, name="last")], name="deep")], name="stack")
    x = layers.Concatenate()([inside(k, "three", 5)(stack(start)), inside(k, "four", 3)(start)])
    ending = layers.Input((10,))
    end = k.Model(ending, layers.Dense(4, name="head")(layers.Dense(6, name="mid")(ending)), name="end")
    return k.Model(start, end(layers.GlobalAveragePooling2D()(x)))


def with_base(k, frozen, layers_of):
    """Keras' MobileNetV2 without its top between other layers; some of its layers frozen."""
    layers = k.layers
    base = k.applications.MobileNetV2(include_top=False, weights=None, input_shape=(32, 32, 3), alpha=0.35)
    for layer in base.layers[:frozen]:
        layer.trainable = False
    return layers_of(layers, base)


def base_in_sequential(k):
    return with_base(k, 0, lambda layers, base: k.Sequential([
        layers.Input((32, 32, 3)), layers.Rescaling(1 / 127.5, offset=-1), base, layers.GlobalAveragePooling2D(),
        layers.Dense(5)]))


def base_first(k):
    return with_base(k, 100, lambda layers, base: k.Sequential([base, layers.GlobalAveragePooling2D(), layers.Dense(5)]))


def resnet(name):
    def build(k):
        return getattr(k.applications, name)(weights=None, input_shape=(32, 32, 3), classes=10)
    build.__name__ = name
    return build


def set_random(model, seed):
    """Moving statistics too, and biases, which would be zeros."""
    random = np.random.default_rng(seed)
    for weight in model.weights:
        value = np.asarray(weight.numpy())
        name = getattr(weight, "path", weight.name)
        if "variance" in name or "gamma" in name:
            weight.assign(random.uniform(0.7, 1.3, value.shape).astype(np.float32))
        elif value.ndim == 1:
            weight.assign(random.normal(0, 0.1, value.shape).astype(np.float32))


def inputs_of(model, seed=1):
    shape = (BATCH,) + tuple(model.input_shape[1:])
    return np.random.default_rng(seed).uniform(0, 1, shape).astype(np.float32)


def ours(program, model, weights, x, outputs, folder):
    x.tofile(folder + "/x")
    command = [program, model, weights, str(BATCH), folder + "/x", folder + "/y", *outputs]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip())
    return np.fromfile(folder + "/y", np.float32).reshape(BATCH, -1)


def difference(a, b):
    a, b = np.asarray(a, np.float64).reshape(BATCH, -1), np.asarray(b, np.float64)
    return np.abs(a - b).max() / np.abs(b).max()


def same_weights(a, b):
    return len(a.weights) == len(b.weights) and all(
        np.array_equal(x.numpy(), y.numpy()) for x, y in zip(a.weights, b.weights))


def there_and_back(program, build, k=keras, suffix=".weights.h5", whole=False):
    """Keras writes, we predict and write, Keras reads."""
    with tempfile.TemporaryDirectory() as folder:
        k.backend.clear_session()
        model = build(k)
        set_random(model, 7)
        x = inputs_of(model)
        with open(folder + "/model.json", "w") as file:
            file.write(model.to_json())
        weights = folder + "/in" + suffix
        (model.save if whole else model.save_weights)(weights)
        written = [folder + "/back.json", folder + "/back.weights.h5", folder + "/back.safetensors"]
        y = ours(program, folder + "/model.json", weights, x, written, folder)
        off = difference(y, model.predict(x, batch_size=BATCH, verbose=0))
        keras.backend.clear_session()
        with open(written[0]) as file:
            back = keras.models.model_from_json(file.read())
        back.load_weights(written[1])
        names = [l.name for l in back.layers if l.weights] == [
            l.name for l in model.layers if l.weights]
        tensors = load_file(written[2])
        size = sum(t.size for t in tensors.values()) == model.count_params()
        # and ours reads what it wrote, with the other weights
        again = ours(program, written[0], written[2], x, [], folder)
        good = (off <= TOLERANCE and names and size and same_weights(back, model)
                and np.array_equal(again, y))
        return good, f"predictions differ by {off:.1e}, names {names}, weights {same_weights(back, model)}"


def from_ours(program, name, build):
    """A built-in model: Keras opens what we write, and its own has the same layers."""
    with tempfile.TemporaryDirectory() as folder:
        keras.backend.clear_session()
        theirs = build(keras)
        x = inputs_of(theirs)
        files = [folder + "/m.json", folder + "/w.weights.h5"]
        y = ours(program, name, "11", x, files, folder)
        keras.backend.clear_session()
        with open(files[0]) as file:
            text = file.read()
        model = keras.models.model_from_json(text)
        model.load_weights(files[1])
        off = difference(y, model.predict(x, batch_size=BATCH, verbose=0))
        shapes = [w.shape for w in model.weights] == [w.shape for w in theirs.weights]
        if name.startswith("resnet"):  # Keras' own have names of their own, not numbers
            shapes = shapes and [l.name for l in model.layers[1:]] == [
                l.name for l in theirs.layers[1:]]
        mixed = keras.models.model_from_json(theirs.to_json())
        mixed.load_weights(files[1])  # their layers, our weights
        good = off <= TOLERANCE and shapes and same_weights(mixed, model)
        return good, f"predictions differ by {off:.1e}, shapes and names {shapes}"


def refused(program, change, words):
    """What cannot be right ends in a message that names it."""
    with tempfile.TemporaryDirectory() as folder:
        config = json.loads(branches(keras).to_json())
        change(config["config"])
        with open(folder + "/m.json", "w") as file:
            json.dump(config, file)
        try:
            ours(program, folder + "/m.json", "1", inputs_of(branches(keras)), [], folder)
        except RuntimeError as error:
            return all(word in str(error) for word in words), str(error)
        return False, "it was not refused"


def layer_setting(name, key, value):
    def change(config):
        layer = next(l for l in config["layers"] if l["config"]["name"] == name)
        layer["config"][key] = value
    return change


def with_policy(k, policy):
    """A model whose layers have this dtype policy, but for the last, which is float32."""
    choose = k.config.set_dtype_policy if k is keras else k.mixed_precision.set_global_policy
    choose(policy)
    try:
        return k.Sequential([
            k.layers.Input((12, 12, 8)), k.layers.Conv2D(16, 3, activation="relu", name="first"),
            k.layers.Flatten(), k.layers.Dense(32, name="second"),
            k.layers.Dense(10, activation="softmax", dtype="float32", name="last")])
    finally:
        choose("float32")


def mixed_policy(program, k):
    """mixed_bfloat16 is bf16 here: Keras' own predictions to bf16's rounding, and not those of float32; what is
    written down has the policies again."""
    with tempfile.TemporaryDirectory() as folder:
        single, mixed = with_policy(k, "float32"), with_policy(k, "mixed_bfloat16")
        set_random(single, 7)
        mixed.set_weights(single.get_weights())
        x = inputs_of(single)
        with open(folder + "/m.json", "w") as file:
            file.write(mixed.to_json())
        weights = folder + "/w.weights.h5"
        mixed.save_weights(weights)
        try:
            y = ours(program, folder + "/m.json", weights, x, [folder + "/back.json"], folder)
        except RuntimeError as error:
            return "bf16 needs a processor" in str(error), str(error)
        off = difference(y, mixed.predict(x, batch_size=BATCH, verbose=0))
        rounding = difference(y, single.predict(x, batch_size=BATCH, verbose=0))
        with open(folder + "/back.json") as file:
            back = keras.models.model_from_json(file.read())
        names = [back.get_layer(name).dtype_policy.name for name in ("first", "second", "last")]
        good = off < 1e-2 and 1e-5 < rounding < 1e-1 and names == ["mixed_bfloat16"] * 2 + ["float32"]
        return good, f"predictions differ by {off:.1e}, from float32's by {rounding:.1e}; policies {names}"


def policy_refused(program, k, policy):
    with tempfile.TemporaryDirectory() as folder:
        model = with_policy(k, policy)
        with open(folder + "/m.json", "w") as file:
            file.write(model.to_json())
        try:
            ours(program, folder + "/m.json", "1", inputs_of(model), [], folder)
        except RuntimeError as error:
            # mixed_float16 is read, and needs a GPU
            words = ["precision fp16 needs a GPU"] if policy == "mixed_float16" else ['"first" (Conv2D)', f'"{policy}"']
            return all(word in str(error) for word in words), str(error)
        return False, "it was not refused"


def cases(program, large):
    for build in [mnist_cnn, mnist_convnet, branches, separable, nested, models_in_models, base_in_sequential]:
        yield f"{build.__name__} there and back", lambda b=build: there_and_back(program, b)
    residual = ["ResNet50V2", "ResNet50", "ResNet152V2"] if large else []
    for name in residual:
        yield f"{name} there and back", lambda n=name: there_and_back(program, resnet(n))
    builtins = [("mnist-cnn", mnist_cnn), ("mnist-convnet", mnist_convnet)]
    builtins += [(name.lower() + ":32:10", resnet(name)) for name in residual]
    for name, build in builtins:
        yield f"{name} from here", lambda n=name, b=build: from_ours(program, n, b)
    for build in [base_first]:
        yield f"{build.__name__} with .h5 of a whole model", lambda b=build: there_and_back(
            program, b, keras, ".h5", True)
    for setting in [("first", "data_format", "channels_first"),
                    ("first", "activity_regularizer", {"class_name": "L2", "config": {"l2": 0.1}}),
                    ("first", "activation", "softplus")]:
        yield f"{setting[1]} is refused", lambda s=setting: refused(
            program, layer_setting(*s), ['"first"', s[1]])
    for k, version in [(keras, 3)] + ([(tf_keras, 2)] if tf_keras is not None else []):
        yield f"Keras {version}: mixed_bfloat16", lambda k=k: mixed_policy(program, k)
        for policy in ["mixed_float16", "float64"]:
            yield f"Keras {version}: {policy} is refused", lambda k=k, p=policy: policy_refused(program, k, p)
    if tf_keras is not None:
        for build in [mnist_cnn, branches] if large else [branches]:
            for suffix, whole in [(".weights.h5", False), (".h5", False), (".whole.h5", True)]:
                yield f"Keras 2: {build.__name__} with {suffix}", lambda b=build, s=suffix, w=whole: (
                    there_and_back(program, b, tf_keras, s, w))
        for build, suffix in [(nested, ".h5"), (models_in_models, ".weights.h5"), (base_first, ".h5")]:
            yield f"Keras 2: {build.__name__} with {suffix}", lambda b=build, s=suffix: (
                there_and_back(program, b, tf_keras, s))
        for name in ["RegNetY002"]:  # with functions of TensorFlow
            yield f"Keras 2: {name} with .h5", lambda n=name: there_and_back(program, resnet(n), tf_keras, ".h5")
    else:
        yield "Keras 2 # SKIP there is no tf_keras", lambda: (True, "")


def main():
    program, large = sys.argv[1], sys.argv[2:] == ["all"]
    number, good = 0, True
    for name, check in cases(program, large):
        number += 1
        try:
            passed, text = check()
        except Exception as error:  # one case must not hide the others
            passed, text = False, repr(error)
        good = good and passed
        separator = "" if "# SKIP" in name else ": " + text.replace("\n", " ").replace("#", "")
        print(f"{'ok' if passed else 'not ok'} {number} - {name}{separator}", flush=True)
    print(f"1..{number}")
    return not good


sys.exit(main())
