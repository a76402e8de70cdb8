"""Whole models beside Keras: the same weights, the same batches; predictions, every gradient, the moving
statistics and the losses of 20 steps of SGD with momentum. Prints TAP.

The truth is Keras in float64. In float32 a deep residual network has no gradient to 1e-4: a ReLU whose argument
is zero but for rounding opens for one program and not for the other, which changes a gradient of few pictures by
percents (Keras' own differ from its float64 ones by up to 0.03 at initial weights); and BatchNormalization over
few pictures with branches as large as their shortcuts amplifies rounding from block to block. So each model is
brought where float32 has an answer, and nothing of it is left out:
  - "damped": the last convolution or gamma of each residual branch is made smaller, and betas are 2 or -2, so that
    few arguments of ReLUs are near zero; then betas are moved by about 1e-4 until none is nearer to it than that.
    There every gradient must be float64's to 1e-4 of its norm.
  - "initial": Keras' initial weights with betas moved likewise. There our distance from float64, over all tensors,
    must be no larger than Keras' own in float32 (1.5 times for chance).
The losses of the 20 steps are compared with Keras' in float32 (TensorFlow has no fast convolution in float64), at
learning rates small enough that rounding does not grow to 1e-3 in them.

usage: nn_models.py NN_MODELS [MODEL [WEIGHTS]]    those cases alone"""
import subprocess
import sys
import tempfile

import keras
import numpy as np
import tensorflow as tf
from keras import layers

from keras_models import CLASSES, MODELS, name_of
from tensors import load_file, save_file

MARGIN = 1e-4  # of ReLUs' arguments from zero
DAMPED = 0.25
STEPS, MOMENTUM = 20, 0.9

CASES = [  # model, size of pictures, weights, batch, steps, learning rate, backend
    ("mnist-cnn", 28, "random", 16, STEPS, 0.02, "cpu"),
    ("mnist-convnet", 28, "random", 16, STEPS, 0.02, "cpu"),
    ("residual", 12, "random", 16, STEPS, 0.02, "cpu"),
    ("residual", 12, "random", 16, STEPS, 0.02, "ref"),
    ("resnet50v2", 32, "damped", 8, STEPS, 0.001, "cpu"),
    ("resnet50", 32, "damped", 8, STEPS, 0.001, "cpu"),
    ("resnet101v2", 32, "damped", 8, STEPS, 0.001, "cpu"),
    ("resnet152v2", 32, "damped", 8, STEPS, 0.001, "cpu"),
    ("resnet50v2", 32, "initial", 8, 1, 0.0, "cpu"),
    ("resnet50", 32, "initial", 8, 1, 0.0, "cpu"),
]


def build(name, side, dtype):
    keras.backend.clear_session()
    keras.config.set_dtype_policy(dtype)
    try:
        return MODELS[name](side)
    finally:
        keras.config.set_dtype_policy("float32")


def assign(model, weights):
    for weight in model.weights:
        weight.assign(weights[name_of(weight)])


def make_weights(model, kind, random):
    weights = {name_of(weight): weight.numpy() for weight in model.weights}
    if kind == "initial":
        return weights
    for name, value in weights.items():
        if name.endswith(("variance", "gamma")):
            value = random.uniform(0.7, 1.3, value.shape)
        elif not name.endswith("kernel"):
            value = random.normal(0, 0.1, value.shape)
        if kind == "damped" and name.endswith("beta"):
            value = np.where(random.uniform(0, 1, value.shape) < 0.7, 2, -2)
        if kind == "damped" and name.endswith(("_3_conv/kernel", "_3_bn/gamma", "predictions/kernel")):
            value = value * DAMPED
        weights[name] = value.astype(np.float32)
    return weights


# ---- away from the zeros of ReLUs ----


def apart_from_zero(values, beta):
    """The beta nearest to this one with which no value is within MARGIN of zero."""
    for k in range(2, 2000):
        new = np.float32(beta + k // 2 * (-1) ** k * MARGIN / 2)
        if np.abs(values + (new - beta)).min() >= MARGIN:
            return new
    raise RuntimeError("there is no such beta")


def clear_gates(model, weights, x):
    """Changes the betas in `weights` so; goes through the layers of `model`, of float64, one by one."""
    assign(model, weights)
    values, maker = {id(model.inputs[0]): tf.constant(x)}, {}
    for layer in model.layers[1:]:
        tensors = layer.input if isinstance(layer.input, list) else [layer.input]
        inputs = [values[id(tensor)] for tensor in tensors]
        if isinstance(layer, (layers.Activation, layers.ReLU)):
            norm = maker[id(tensors[0])]
            if isinstance(norm, layers.Add):
                norm = maker[id(norm.input[1])]  # the branch's
            arguments = inputs[0].numpy().reshape(-1, inputs[0].shape[-1])
            beta = weights[norm.name + "/beta"].astype(np.float64)
            new = beta.copy()
            for channel in np.flatnonzero(np.abs(arguments).min(axis=0) < MARGIN):
                new[channel] = apart_from_zero(arguments[:, channel], beta[channel])
            weights[norm.name + "/beta"] = new.astype(np.float32)
            inputs[0] += new - beta
        training = {"training": True} if isinstance(layer, layers.BatchNormalization) else {}
        values[id(layer.output)] = layer(inputs if len(inputs) > 1 else inputs[0], **training)
        maker[id(layer.output)] = layer


# ---- both sides ----


def theirs(model, weights, x, y, rate):
    assign(model, weights)
    logits = model.layers[-1].activation.__name__ != "softmax"
    loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=logits, dtype=model.dtype)
    sgd = keras.optimizers.SGD(rate, momentum=MOMENTUM)
    result = {"predictions": model(x[0], training=False).numpy(), "losses": []}
    for t, (pictures, labels) in enumerate(zip(x, y)):
        with tf.GradientTape() as tape:
            outputs = model(pictures, training=True)
            loss = loss_of(labels, outputs)
        result["losses"].append(float(loss))
        gradients = tape.gradient(loss, model.trainable_variables)
        if t == 0:
            result["outputs"] = outputs.numpy()
            result["gradients"] = {name_of(w): g.numpy() for w, g in zip(model.trainable_variables, gradients)}
            result["gradients"] |= {name_of(w): w.numpy() for w in model.non_trainable_variables}
        if len(x) > 1:
            sgd.apply(gradients, model.trainable_variables)
    return result


def ours(program, name, side, backend, weights, x, y, rate):
    batch = x.shape[1]
    with tempfile.TemporaryDirectory() as folder:
        x.tofile(folder + "/inputs.f32")
        y.tofile(folder + "/labels.i32")
        save_file(weights, folder + "/weights.safetensors")
        model = f"{name}:{side}:{CLASSES}" if name.startswith("resnet") else name
        if name == "residual":  # which is not built in
            model = "model.json"
            with open(f"{folder}/{model}", "w") as file:
                file.write(build(name, side, "float32").to_json())
        command = [program, model, folder, backend, str(batch), str(len(x)), str(rate), str(MOMENTUM)]
        run = subprocess.run(command, capture_output=True, text=True)
        if run.returncode != 0:
            raise RuntimeError(run.stderr.strip())
        return {"losses": [float(loss) for loss in run.stdout.split()],
                "gradients": load_file(folder + "/gradients.safetensors"),
                **{kind: np.fromfile(f"{folder}/{kind}.f32", np.float32).reshape(batch, -1)
                   for kind in ("predictions", "outputs")}}


# ---- comparing ----


def apart(a, b, scale=None):
    """The norm of the difference, relative to b's."""
    return float(np.linalg.norm(np.asarray(a, np.float64) - b) / (scale or np.linalg.norm(b)))


def gradients_apart(got, truth):
    """By tensor. The gradient of a bias before BatchNormalization is zero but for rounding and is compared
    with that of its layer's kernel."""
    assert got.keys() == truth.keys(), got.keys() ^ truth.keys()
    result = {}
    for name, gradient in truth.items():
        scale, kernel = np.linalg.norm(gradient), truth.get(name.replace("/bias", "/kernel"), 0)
        if scale < 1e-9 * np.linalg.norm(kernel):
            scale = np.linalg.norm(kernel)
        result[name] = apart(got[name], gradient, scale)
    return result


def root_mean_square(values):
    return float(np.mean(np.square(list(values))) ** 0.5)


def compare(program, name, side, kind, batch, steps, rate, backend):
    """(good, what was seen) of each check."""
    random = np.random.default_rng(5)
    keras.utils.set_random_seed(5)
    single = build(name, side, "float32")
    weights = make_weights(single, kind, random)
    x = random.normal(0, 1, (steps, batch) + single.input_shape[1:]).astype(np.float32)
    y = random.integers(0, CLASSES, (steps, batch)).astype(np.int32)
    double = build(name, side, "float64")
    if kind != "random":
        clear_gates(double, weights, x[0].astype(np.float64))
    truth = theirs(double, weights, x[:1].astype(np.float64), y[:1], rate)
    keras32 = theirs(single, weights, x, y, rate)
    mine = ours(program, name, side, backend, weights, x, y, rate)
    mine_apart, keras_apart = (gradients_apart(r["gradients"], truth["gradients"]) for r in (mine, keras32))
    worst = max(mine_apart, key=mine_apart.get)
    predictions, outputs = (apart(mine[what], truth[what]) for what in ("predictions", "outputs"))
    yield predictions < 1e-5, f"predictions differ by {predictions:.1e}"
    if kind == "initial":
        mean, keras_mean = (root_mean_square(a.values()) for a in (mine_apart, keras_apart))
        yield mean < 1.5 * keras_mean, (f"{len(mine_apart)} gradients and statistics differ by {mean:.1e} in the mean, "
                                        f"Keras' by {keras_mean:.1e}")
    else:
        yield mine_apart[worst] < 1e-4 and outputs < 1e-5, (
            f"{len(mine_apart)} gradients and statistics differ by at most {mine_apart[worst]:.1e} ({worst}), Keras' by "
            f"{max(keras_apart.values()):.1e}; outputs by {outputs:.1e}")
    if steps > 1:
        losses = np.abs(np.divide(mine["losses"], keras32["losses"]) - 1).max()
        yield losses < 1e-3, (f"losses of {steps} steps, {mine['losses'][0]:.4f} to {mine['losses'][-1]:.4f}, differ by "
                              f"at most {losses:.1e}")


def main():
    tf.config.threading.set_intra_op_parallelism_threads(1)
    number, failed = 0, 0
    for case in CASES:
        name, side, kind, batch, _, _, backend = case
        if sys.argv[2:] not in ([], [name], [name, kind]):
            continue
        checks = compare(sys.argv[1], *case)
        while True:
            try:
                good, text = next(checks)
            except StopIteration:
                break
            except (RuntimeError, AssertionError) as error:
                good, text = False, str(error).replace("\n", " ")
            number += 1
            failed += not good
            print(f"{'ok' if good else 'not ok'} {number} - {name} of {side}x{side} on {backend}, {kind} weights, batch "
                  f"{batch}: {text}", flush=True)
    print(f"1..{number}")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
