"""The built-in models in Keras, for square pictures of a size where there is a choice, and a small residual
network that is not built in."""
import re

import keras
from keras import layers

CLASSES = 10
ACTIVATIONS = ["relu", "relu6", "sigmoid", "tanh", "softmax", "gelu", "silu", "hard_sigmoid", "hard_silu", "leaky_relu", "elu",
               "selu", "mish"]


def mnist_cnn(_side):
    return keras.Sequential([
        layers.Input((28, 28)), layers.Reshape((28, 28, 1)),
        layers.Conv2D(32, 3, activation="relu"), layers.Flatten(),
        layers.Dense(128, activation="relu"), layers.Dense(CLASSES)])


def mnist_convnet(_side):
    return keras.Sequential([
        layers.Input((28, 28, 1)), layers.Conv2D(32, 5, activation="relu"), layers.MaxPooling2D(),
        layers.Conv2D(64, 5, activation="relu"), layers.MaxPooling2D(), layers.Flatten(),
        layers.Dense(CLASSES, activation="softmax")])


def residual(side):
    """Three residual blocks, the second with half the picture, after normalization and ReLU."""
    image = layers.Input((side, side - 2, 3), name="image")
    x = layers.Conv2D(8, 3, padding="same", name="first")(image)
    for i, stride in enumerate((1, 2, 1)):
        y = layers.BatchNormalization(momentum=0.9, name=f"bn{i}a")(x)
        y = layers.Activation("relu", name=f"relu{i}a")(y)
        y = layers.Conv2D(8, 3, strides=stride, padding="same", use_bias=False, name=f"conv{i}a")(y)
        y = layers.BatchNormalization(epsilon=1e-5, name=f"bn{i}b")(y)
        y = layers.Activation("relu", name=f"relu{i}b")(y)
        y = layers.Conv2D(8, 3, padding="same", name=f"conv{i}b")(y)
        if stride > 1:
            x = layers.Conv2D(8, 1, strides=stride, name="short")(x)
        x = layers.Add(name=f"sum{i}")([x, y])
    x = layers.GlobalAveragePooling2D(name="mean")(x)
    return keras.Model(image, layers.Dense(CLASSES, name="logits")(x), name="residual")


def block_v15(x, filters, stride, convolve, name):
    """A block of ResNet-50 v1.5: keras.applications' with the stride in its 3x3 convolution, padded on both sides."""
    def conv(x, part, filters, size, stride=1):
        if size > 1 and stride > 1:
            x = layers.ZeroPadding2D(1, name=f"{name}_{part}_pad")(x)
        x = layers.Conv2D(filters, size, strides=stride, padding="same" if stride == 1 else "valid",
                          name=f"{name}_{part}_conv")(x)
        return layers.BatchNormalization(epsilon=1.001e-5, name=f"{name}_{part}_bn")(x)
    shortcut = conv(x, 0, 4 * filters, 1, stride) if convolve else x
    x = layers.Activation("relu")(conv(x, 1, filters, 1))
    x = layers.Activation("relu")(conv(x, 2, filters, 3, stride))
    return layers.Activation("relu")(layers.Add()([shortcut, conv(x, 3, 4 * filters, 1)]))


def resnet50(side):
    image = layers.Input((side, side, 3))
    x = layers.ZeroPadding2D(3)(image)
    x = layers.Conv2D(64, 7, strides=2, name="conv1_conv")(x)
    x = layers.BatchNormalization(epsilon=1.001e-5, name="conv1_bn")(x)
    x = layers.ZeroPadding2D(1)(layers.Activation("relu")(x))
    x = layers.MaxPooling2D(3, strides=2)(x)
    for stack, blocks in enumerate((3, 4, 6, 3)):
        for block in range(blocks):
            x = block_v15(x, 64 << stack, 2 if block == 0 and stack > 0 else 1, block == 0,
                          f"conv{stack + 2}_block{block + 1}")
    x = layers.GlobalAveragePooling2D()(x)
    return keras.Model(image, layers.Dense(CLASSES, activation="softmax", name="predictions")(x))


def application(name):
    return lambda side: getattr(keras.applications, name)(weights=None, input_shape=(side, side, 3), classes=CLASSES)


MODELS = {"mnist-cnn": mnist_cnn, "mnist-convnet": mnist_convnet, "residual": residual, "resnet50": resnet50,
          "resnet50v2": application("ResNet50V2"), "resnet101v2": application("ResNet101V2"),
          "resnet152v2": application("ResNet152V2")}


def name_of(weight):
    """dense/kernel, whether Keras puts the model's name before it or not. LayerScale's has none there: variable_3."""
    return re.sub("/variable(_[0-9]+)?$", "/gamma", "/".join(weight.path.split("/")[-2:]))
