"""Every layer beside Keras': the same weights, batch and random draws; outputs, loss and, in training, the
gradient of every weight. Each layer under test stands between a convolution, whose gradient is what the
layer passes back, and a Dense that makes logits; those that only stand before weights, before the convolution. Prints TAP.

usage: nn_layers.py NN_LAYERS"""
import subprocess
import sys
import tempfile

import keras
import numpy as np
import tensorflow as tf
from keras import layers
from keras.src.applications.convnext import LayerScale, StochasticDepth

from keras_models import ACTIVATIONS, name_of
from tensors import load_file, save_file

BATCH, CLASSES = 6, 5
SEED, STEP, FIRST = 0x123456789, 4, 11  # what random layers draw from

# These compute no gradient.
BEFORE_WEIGHTS = (layers.RandomCrop, layers.RandomFlip, layers.RandomRotation, layers.RandomZoom, layers.RandomTranslation,
                  layers.RandomContrast, layers.RandomBrightness)


def cases():
    """(name, input shape, layers under test, training)"""
    picture = (9, 10, 3)

    def one(name, *under_test, shape=picture, training=True):
        return (name, shape, list(under_test), training)

    yield one("Conv2D strides 2x3", layers.Conv2D(5, (3, 2), strides=(2, 3)))
    yield one("Conv2D strides 3x2, same", layers.Conv2D(5, (4, 5), strides=(3, 2), padding="same"))
    yield one("Conv2D dilated 2x3", layers.Conv2D(4, (3, 2), dilation_rate=(2, 3)))
    yield one("Conv2D dilated 3x2, same, no bias",
              layers.Conv2D(4, (3, 4), dilation_rate=(3, 2), padding="same", use_bias=False))
    yield one("Conv2D of 16 channels", layers.Conv2D(16, 3, activation="relu"),
              layers.Conv2D(32, 3, padding="same", activation="relu"))
    yield one("Conv2D in 3 groups", layers.Conv2D(6, 3, groups=3, padding="same"))
    yield one("Conv2D in 2 groups, strides 2", layers.Conv2D(16, 1), layers.Conv2D(8, 3, strides=2, groups=2))
    for activation in ACTIVATIONS:
        yield one(f"Conv2D with {activation}", layers.Conv2D(4, 3, activation=activation))
        yield one(f"Dense with {activation}", layers.Dense(7, activation=activation))
        yield one(f"Activation {activation}", layers.Rescaling(4), layers.Activation(activation))  # beyond 6
    yield one("Dense without bias", layers.Flatten(), layers.Dense(7, use_bias=False, activation="tanh"))
    yield one("DepthwiseConv2D", layers.DepthwiseConv2D(3))
    yield one("DepthwiseConv2D strides 2, same, multiplier 2",
              layers.DepthwiseConv2D((3, 4), strides=2, padding="same", depth_multiplier=2))
    yield one("DepthwiseConv2D dilated, no bias, of 16 channels", layers.Conv2D(16, 1),
              layers.DepthwiseConv2D(3, dilation_rate=(2, 2), use_bias=False, activation="relu6"))
    yield one("AveragePooling2D", layers.AveragePooling2D(2))
    yield one("AveragePooling2D 3x2 by 2x3, same",
              layers.AveragePooling2D((3, 2), strides=(2, 3), padding="same"))
    yield one("AveragePooling2D 4x4 by 1x1, same",
              layers.AveragePooling2D(4, strides=1, padding="same"))
    yield one("MaxPooling2D 3x3 by 2x2, same", layers.MaxPooling2D(3, strides=2, padding="same"))
    yield one("Reshape and Flatten", layers.Reshape((12, -1, 2)), layers.Dense(3), layers.Flatten())
    yield one("Rescaling", layers.Rescaling(1 / 127.5, offset=-1))
    yield one("Rescaling per channel", layers.Rescaling([1, 2, 3, 4, 5, 6], offset=[0, 0, 1, 1, 2, 2]))
    for name, layer in {"max_value": layers.ReLU(2.5), "slope": layers.ReLU(negative_slope=0.3),
                        "all settings": layers.ReLU(2.5, negative_slope=0.3, threshold=0.7)}.items():
        yield one(f"ReLU with {name}", layers.Rescaling(4), layer)
    yield one("LeakyReLU", layers.LeakyReLU(0.1))
    yield one("ELU", layers.ELU(0.7))
    yield one("PReLU", layers.PReLU())
    yield one("PReLU, shared", layers.PReLU(shared_axes=[1, 2]))
    yield one("PReLU of rows", layers.Flatten(), layers.PReLU())
    yield one("Normalization", layers.Normalization())
    yield one("Normalization with given numbers",
              layers.Normalization(mean=[1, 2, 3, 4, 5, 6], variance=[1, 2, 3, 4, 0, 6e-14]), layers.Rescaling(1e-6))
    yield one("GlobalAveragePooling2D with keepdims", layers.GlobalAveragePooling2D(keepdims=True))
    yield one("GlobalMaxPooling2D with keepdims", layers.GlobalMaxPooling2D(keepdims=True))
    yield one("Resizing to 13x7", layers.Resizing(13, 7))
    yield one("Resizing to 4x21", layers.Resizing(4, 21))
    for training in (True, False):
        word = "training" if training else "inference"
        yield one(f"Dropout in {word}", layers.Dropout(0.3), training=training)
        yield one(f"Dropout per sample in {word}", layers.Dropout(0.4, noise_shape=(None, 1, 1, 1)), training=training)
        yield one(f"two Dropouts in {word}", layers.Dropout(0.5), layers.Flatten(),
                  layers.Dropout(0.2), training=training)
        for mode in ("horizontal", "vertical", "horizontal_and_vertical"):
            yield one(f"RandomFlip {mode} in {word}", layers.RandomFlip(mode), training=training)
        yield one(f"RandomCrop in {word}", layers.RandomCrop(6, 8), training=training)
        varied = {
            "RandomRotation": [layers.RandomRotation(0.5)],
            "RandomRotation, constant": [layers.RandomRotation((0.1, 0.2), fill_mode="constant", fill_value=0.7)],
            "RandomRotation, nearest cells, wrapped": [layers.RandomRotation(0.3, fill_mode="wrap", interpolation="nearest")],
            "RandomZoom": [layers.RandomZoom(0.6)],
            "RandomZoom of height and width, nearest": [layers.RandomZoom((-0.5, 0.9), (0.3, 1.0), fill_mode="nearest")],
            "RandomZoom, wrapped": [layers.RandomZoom((0.8, 1.0), fill_mode="wrap")],
            "RandomTranslation": [layers.RandomTranslation(0.9, (-0.3, 0.6))],
            "RandomTranslation, wrapped": [layers.RandomTranslation(1.0, 1.0, fill_mode="wrap")],
            "RandomTranslation, nearest cells, constant": [
                layers.RandomTranslation(0.4, 0.5, fill_mode="constant", fill_value=-0.4, interpolation="nearest")],
            "RandomContrast": [layers.RandomContrast(0.7, value_range=(-3, 3))],
            "RandomContrast of two factors, clipped": [layers.RandomContrast((0.4, 0.9), value_range=(-0.5, 0.8))],
            "RandomBrightness": [layers.RandomBrightness(0.4, value_range=(-3, 3))],
            "RandomBrightness of two factors, clipped": [layers.RandomBrightness((-0.1, 0.5), value_range=(-0.5, 0.8))],
            "all of them": [layers.Rescaling(0.5, offset=0.1), layers.RandomFlip("horizontal"), layers.RandomRotation(0.1),
                            layers.RandomZoom(0.2, 0.3), layers.RandomTranslation(0.1, 0.2), layers.RandomCrop(8, 7),
                            layers.RandomContrast(0.2, value_range=(-1, 1)), layers.RandomBrightness(0.1, value_range=(-1, 1))],
        }
        for name, under_test in varied.items():
            yield one(f"{name} in {word}", *under_test, training=training)
    yield one("RandomCrop of a smaller picture", layers.RandomCrop(12, 9))
    yield one("SeparableConv2D", layers.SeparableConv2D(5, 3))
    yield one("SeparableConv2D strides 2, same, multiplier 2, relu",
              layers.SeparableConv2D(7, (3, 4), strides=2, padding="same", depth_multiplier=2, activation="relu"))
    yield one("SeparableConv2D dilated, no bias, of 16 channels", layers.Conv2D(16, 1),
              layers.SeparableConv2D(16, 3, dilation_rate=(2, 2), use_bias=False))
    yield one("Conv2DTranspose", layers.Conv2DTranspose(4, (3, 2)))
    yield one("Conv2DTranspose strides 2x3, same, relu",
              layers.Conv2DTranspose(5, 3, strides=(2, 3), padding="same", activation="relu"))
    yield one("Conv2DTranspose strides 3, smaller kernel, no bias, tanh",
              layers.Conv2DTranspose(16, 2, strides=3, use_bias=False, activation="tanh"))
    yield one("Cropping2D", layers.Cropping2D(((1, 2), (0, 3))))
    yield one("ZeroPadding2D and Cropping2D as in NASNet", layers.ZeroPadding2D(((0, 1), (0, 1))),
              layers.Cropping2D(((1, 0), (1, 0))), layers.AveragePooling2D(1, strides=2))
    yield one("LayerNormalization", layers.LayerNormalization())
    yield one("LayerNormalization of vectors, no beta", layers.Flatten(),
              layers.LayerNormalization(epsilon=1e-6, center=False))
    yield one("LayerNormalization without gamma", layers.LayerNormalization(scale=False))
    yield one("GroupNormalization", layers.GroupNormalization(groups=3))
    yield one("GroupNormalization of each channel, no gamma", layers.Activation("tanh"),
              layers.GroupNormalization(groups=-1, scale=False))
    yield one("LayerScale", LayerScale(0.5, 6))
    yield one("UpSampling2D", layers.UpSampling2D((2, 3)))
    yield one("UpSampling2D, bilinear", layers.UpSampling2D(3, interpolation="bilinear"))
    yield one("Permute", layers.Permute((3, 1, 2)), layers.Dense(4))
    for training in (True, False):
        word = "training" if training else "inference"
        yield one(f"SpatialDropout2D in {word}", layers.SpatialDropout2D(0.4), training=training)
        yield one(f"StochasticDepth in {word}", StochasticDepth(0.4), training=training)
        yield one(f"GaussianNoise in {word}", layers.GaussianNoise(0.3), training=training)


# ---- what the random layers draw, from the description in nn/graph/rng.h, dropout.h and picture.c ----


def philox(c0, c1, c2, c3):
    """Philox4x32-10 on arrays; the key is SEED."""
    c = [np.asarray(x, np.uint64) for x in np.broadcast_arrays(c0, c1, c2, c3)]
    mask, k0, k1 = np.uint64(0xffffffff), SEED & 0xffffffff, SEED >> 32
    for _ in range(10):
        p0, p1 = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [(p1 >> np.uint64(32)) ^ c[1] ^ np.uint64(k0), p1 & mask,
             (p0 >> np.uint64(32)) ^ c[3] ^ np.uint64(k1), p0 & mask]
        k0, k1 = (k0 + 0x9E3779B9) & 0xffffffff, (k1 + 0xBB67AE85) & 0xffffffff
    return np.stack(c)  # [4 words]...


def draw(stream, block):
    """The words of these blocks for every sample of the batch: [4][BATCH][blocks]."""
    samples = FIRST + np.arange(BATCH)[:, None]
    return philox(np.asarray(block)[None, :], samples, STEP, stream | 0x80000000)


def dropout(x, rate, stream, drawn=None):
    """drawn: the shape of a sample's mask, which is broadcast; all of the sample's by default."""
    drawn = tuple(x.shape[1:]) if drawn is None else drawn
    e = np.arange(int(np.prod(drawn)))
    words = draw(stream, e // 64 * 16 + e % 16)
    kept = np.take_along_axis(words, (e // 16 % 4)[None, None, :], 0)[0] >= int(rate * 2**32)
    return x * (kept.reshape(BATCH, *drawn).astype(np.float32) / np.float32(1 - rate))


def gaussian_noise(x, stddev, stream):
    e = np.arange((int(np.prod(x.shape[1:])) + 3) // 4 * 4)
    words = draw(stream, e // 4).astype(np.float64)
    even, odd = (np.take_along_axis(words, (e % 4 // 2 * 2 + k)[None, None, :], 0)[0] for k in (0, 1))
    radius, angle = np.sqrt(-2 * np.log(even / 2**32 + 2**-33)), odd * (2 * np.pi / 2**32)
    normal = radius * np.where(e % 2 == 0, np.cos(angle), np.sin(angle))
    return x + stddev * normal[:, :int(np.prod(x.shape[1:]))].reshape(x.shape).astype(np.float32)


def random_flip(x, mode, stream):
    turned = draw(stream, [0])[0, :, 0] >> np.uint64(31) != 0
    axes = {"horizontal": [2], "vertical": [1], "horizontal_and_vertical": [1, 2]}[mode]
    return tf.where(turned[:, None, None, None], tf.reverse(x, axes), x)


def random_crop(x, height, width, stream, training):
    in_h, in_w = x.shape[1:3]
    if training and in_h > height and in_w > width:
        words = draw(stream, [0])[:, :, 0]
        top = words[0] * np.uint64(in_h - height + 1) >> np.uint64(32)
        left = words[1] * np.uint64(in_w - width + 1) >> np.uint64(32)
        return tf.stack([x[s, int(t):int(t) + height, int(l):int(l) + width]
                         for s, (t, l) in enumerate(zip(top, left))])
    return keras.preprocessing.image.smart_resize(x, (height, width))


def parts(stream):
    """Two numbers of each sample, from 0 to 1."""
    return (draw(stream, [0])[:2, :, 0].astype(np.float64) / 2**32)


def drawn(range_, part):
    return (range_[0] + (range_[1] - range_[0]) * part).astype(np.float32)


def transformation(layer, x, stream):
    """What get_random_transformation of the layer gives for our draws."""
    first, second = parts(stream)
    height, width = x.shape[1:3]
    if isinstance(layer, layers.RandomRotation):
        none, angle = np.zeros(BATCH, np.float32), drawn(layer.factor, first) * np.float32(360)
        return {"rotation_matrix": layer._compute_affine_matrix(
            center_x=0.5, center_y=0.5, angle=tf.constant(angle), translate_x=none, translate_y=none, scale=tf.ones(BATCH),
            shear_x=none, shear_y=none, height=height, width=width)}
    if isinstance(layer, layers.RandomZoom):
        down = 1 + drawn((layer.height_lower, layer.height_upper), first)[:, None]
        right = down if layer.width_factor is None else 1 + drawn((layer.width_lower, layer.width_upper), second)[:, None]
        return {"height_zoom": tf.constant(down), "width_zoom": tf.constant(right), "input_shape": x.shape}
    if isinstance(layer, layers.RandomTranslation):
        down = drawn((layer.height_lower, layer.height_upper), first) * height
        right = drawn((layer.width_lower, layer.width_upper), second) * width
        return {"translations": tf.constant(np.stack([right, down], 1)), "input_shape": x.shape}
    if isinstance(layer, layers.RandomContrast):
        lower, upper = layer.factor
        return {"contrast_factor": tf.constant(drawn((1 - lower, 1 + upper), first)[:, None, None, None])}
    span = layer.value_range[1] - layer.value_range[0]
    return {"rgb_delta": tf.constant((drawn(layer.factor, first) * span).astype(np.float32)[:, None, None, None])}


def call(layer, x, stream, training):
    """What the layer makes of x; where it draws, with our draws."""
    if isinstance(layer, layers.RandomCrop):
        return random_crop(x, layer.height, layer.width, stream, training)
    if training and isinstance(layer, layers.SpatialDropout2D):
        return dropout(x, layer.rate, stream, (1, 1, x.shape[3]))
    if training and isinstance(layer, StochasticDepth):
        return dropout(x, layer.drop_path_rate, stream, (1,) * (len(x.shape) - 1))
    if training and isinstance(layer, layers.GaussianNoise):
        return gaussian_noise(x, layer.stddev, stream)
    if training and isinstance(layer, layers.Dropout):
        return dropout(x, layer.rate, stream, None if layer.noise_shape is None else layer.noise_shape[1:])
    if training and isinstance(layer, layers.RandomFlip):
        return random_flip(x, layer.mode, stream)
    if training and isinstance(layer, BEFORE_WEIGHTS):
        return layer.transform_images(x, transformation(layer, x, stream))
    random = (layers.Dropout, layers.GaussianNoise, StochasticDepth, *BEFORE_WEIGHTS)
    return layer(x, training=training) if isinstance(layer, random) else layer(x)


def streams(model):
    """The number of each layer's last operation: those without one, and those with two, count."""
    number, found = 0, {}
    for layer in model.layers:
        activation = getattr(getattr(layer, "activation", None), "__name__", "linear")
        if isinstance(layer, (layers.Flatten, layers.Reshape)):
            continue
        found[layer] = number
        number += isinstance(layer, layers.SeparableConv2D)
        number += isinstance(layer, layers.Conv2DTranspose) and activation == "relu"
        number += 2 if not isinstance(layer, layers.Activation) and activation not in ("linear", "relu") else 1
        number += activation == "selu"
    return found


# ---- comparing ----


def relative(a, b):
    a, b = np.asarray(a, np.float64).reshape(-1), np.asarray(b, np.float64).reshape(-1)
    assert a.shape == b.shape, (a.shape, b.shape)
    return np.abs(a - b).max() / np.abs(b).max() if np.abs(b).max() > 0 else np.abs(a).max()


def theirs(model, x, y, training):
    stream = streams(model)
    with tf.GradientTape() as tape:
        out = tf.constant(x)
        for layer in model.layers:
            out = call(layer, out, stream.get(layer), training)
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(y, out))
    gradients = tape.gradient(loss, [w.value for w in model.trainable_weights])
    if not training:
        return float(loss), out.numpy(), {}
    return float(loss), out.numpy(), {name_of(w): g.numpy() for w, g in
                                      zip(model.trainable_weights, gradients)}


def ours(program, folder, backend, training):
    command = [program, folder, backend, str(BATCH), str(int(training)), str(SEED), str(STEP), str(FIRST)]
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode != 0:
        raise RuntimeError(run.stderr.strip())
    outputs = np.fromfile(folder + "/outputs.f32", np.float32)
    gradients = load_file(folder + "/gradients.safetensors") if training else {}
    return float(run.stdout), outputs, gradients


def check(program, shape, under_test, training, seed):
    """The largest difference, and where it is."""
    body = [layers.Conv2D(6, 2), *under_test]
    if any(isinstance(layer, BEFORE_WEIGHTS) for layer in under_test):
        body = [*under_test, layers.Conv2D(6, 2)]
    model = keras.Sequential([layers.Input(shape), *body, layers.Flatten(), layers.Dense(CLASSES)])
    random = np.random.default_rng(seed)
    for weight in model.weights:  # logits about 1, so that no gradient is a difference of large numbers
        fan_in = np.prod(weight.shape[:-1]) if len(weight.shape) > 1 else 10
        value = random.normal(0, fan_in ** -0.5, weight.shape)
        weight.assign(np.abs(value) if weight.name in ("variance", "count") else value)
    for layer in under_test:
        if isinstance(layer, layers.Normalization):
            layer.finalize_state()  # uses the weights, if no numbers are given
    x = random.normal(0, 1, (BATCH, *shape)).astype(np.float32)
    y = random.integers(0, CLASSES, BATCH).astype(np.int32)
    worst, where = 0, "nothing"
    with tempfile.TemporaryDirectory() as folder:
        x.tofile(folder + "/inputs.f32")
        y.tofile(folder + "/labels.i32")
        with open(folder + "/model.json", "w") as file:
            file.write(model.to_json())
        save_file({name_of(w): w.numpy() for w in model.weights}, folder + "/weights.safetensors")
        loss, outputs, gradients = theirs(model, x, y, training)
        for backend in ("cpu", "ref"):
            our_loss, our_outputs, our_gradients = ours(program, folder, backend, training)
            for state in model.non_trainable_weights:  # which are left in the same file
                our_gradients.pop(name_of(state), None)
            assert our_gradients.keys() == gradients.keys(), (our_gradients.keys(), gradients.keys())
            differences = {"loss": relative(our_loss, loss), "outputs": relative(our_outputs, outputs)}
            for name, gradient in gradients.items():
                differences["gradient of " + name] = relative(our_gradients[name], gradient)
            for name, difference in differences.items():
                if not difference <= worst:
                    worst, where = difference, f"{name} on {backend}"
    return worst, where


def main():
    all_cases = list(cases())
    print(f"1..{len(all_cases)}")
    failed = 0
    for number, (name, shape, under_test, training) in enumerate(all_cases, 1):
        try:
            worst, where = check(sys.argv[1], shape, under_test, training, number)
            good, text = worst < 1e-4, f"largest difference {worst:.1e}, {where}"
        except (RuntimeError, AssertionError, tf.errors.OpError) as error:
            good, text = False, str(error).replace("\n", " ")
        failed += not good
        print(f"{'ok' if good else 'not ok'} {number} - {name}: {text}", flush=True)
    return failed > 0


sys.exit(main())
