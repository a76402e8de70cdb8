"""Repeats what nn_losses did in Keras, from the same weights and pictures, and compares: losses
and accuracies of every step, outputs, weights in the end. Prints TAP.

usage: nn_keras.py NN_LOSSES"""
import subprocess
import sys
import tempfile

import numpy as np
import keras

from keras_models import CLASSES, MODELS, name_of
from tensors import load_file

CASES = [  # model, batch, rate, momentum
    ("mnist-cnn", 64, 0.2, 0.0),
    ("mnist-cnn", 16, 0.05, 0.9),
    ("mnist-convnet", 100, 0.05, 0.0),
    ("mnist-convnet", 20, 0.02, 0.9),
]


def build(name):
    """And whether its outputs are logits."""
    name, side, _ = name.split(":") if ":" in name else (name, 28, CLASSES)
    return MODELS[name](int(side)), name == "mnist-cnn"


def set_weights(model, path):
    tensors = load_file(path)
    for weight in model.weights:
        weight.assign(tensors.pop(name_of(weight)))
    assert not tensors, f"left over: {list(tensors)}"


def relative(a, b):
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    return np.abs(a - b).max() / np.abs(b).max()


def run(program, backend, name, batch, steps, rate, momentum):
    with tempfile.TemporaryDirectory() as folder:
        command = [program, name, backend, str(batch), str(steps), str(rate), str(momentum), folder]
        ours = np.array([line.split() for line in
                         subprocess.run(command, check=True, capture_output=True, text=True)
                         .stdout.splitlines()], np.float64)
        keras.backend.clear_session()  # layers are named from the start again
        model, logits = build(name)
        set_weights(model, folder + "/first.safetensors")
        model.compile(optimizer=keras.optimizers.SGD(rate, momentum=momentum),
                      loss=keras.losses.SparseCategoricalCrossentropy(from_logits=logits),
                      metrics=["accuracy"])
        x = np.fromfile(folder + "/inputs.f32", np.float32)
        x = x.reshape((steps, batch) + model.input_shape[1:])
        y = np.fromfile(folder + "/labels.i32", np.int32).reshape(steps, batch)
        theirs = []
        for t in range(steps):
            if t == steps - 1:
                outputs = model.predict(x[t], batch_size=batch, verbose=0)
            theirs.append(model.train_on_batch(x[t], y[t]))
            model.reset_metrics()
        theirs = np.array(theirs, np.float64)
        mine = np.fromfile(folder + "/outputs.f32", np.float32).reshape(outputs.shape)
        first = load_file(folder + "/first.safetensors")
        last = load_file(folder + "/last.safetensors")
        weights = max(relative(last[name_of(w)], w.numpy()) for w in model.weights)
        # of all tensors together: what a step has changed, against how far ours and theirs differ
        change = sum(np.sum((w.numpy() - first[name_of(w)]).astype(np.float64) ** 2)
                     for w in model.weights) ** 0.5
        apart = sum(np.sum((w.numpy() - last[name_of(w)]).astype(np.float64) ** 2)
                    for w in model.weights) ** 0.5
        return {"loss": np.abs(ours[:, 0] / theirs[:, 0] - 1).max(),
                "accuracy": np.abs(ours[:, 1] - theirs[:, 1]).max(),
                "outputs": relative(mine, outputs), "weights": weights,
                "change": apart / change,
                "from": theirs[0, 0], "to": theirs[-1, 0]}


def check(program, backend, name, batch, steps, rate, momentum):
    """Few steps: everything agrees to rounding. Many: rounding decides which of two nearly equal
    cells is a maximum, and grows from there, so that only losses and accuracies are compared."""
    r = run(program, backend, name, batch, steps, rate, momentum)
    few = steps <= 3
    good = r["loss"] < (1e-5 if few else 1e-3) and r["accuracy"] < (1e-6 if few else 0.011)
    if few:
        good = good and r["outputs"] < 1e-5 and r["weights"] < 1e-4
    text = (f"{name} on {backend}, batch {batch}, momentum {momentum}, {steps} steps: "
            f"loss {r['from']:.4f} to {r['to']:.4f}; largest differences: loss {r['loss']:.1e}, "
            f"accuracy {r['accuracy']:.1e}, outputs {r['outputs']:.1e}, weights {r['weights']:.1e}")
    return good, text


def check_residual(program, name, batch, steps, rate, momentum):
    """The loss agrees to rounding. Through fifty layers rounding grows, and a ReLU that opens for one
    and not for the other changes a gradient by more than rounding: the change of all weights and
    statistics together, as vectors, must be nearly the same. Outputs here are training's, while
    Keras predicts with the moving statistics: they are not compared."""
    r = run(program, "cpu", name, batch, steps, rate, momentum)
    good = r["loss"] < 1e-5 and r["change"] < 0.05
    text = (f"{name}, batch {batch}, {steps} step: loss {r['from']:.4f}, differs by {r['loss']:.1e}; "
            f"change of the weights differs by {r['change']:.1e}")
    return good, text


def main():
    program = sys.argv[1]
    runs = [(program, "cpu", name, batch, steps, rate, momentum)
            for name, batch, rate, momentum in CASES for steps in (3, 20)]
    runs += [(program, "ref", name, 4, 3, rate, momentum) for name, _, rate, momentum in CASES]
    residual = ["resnet50v2:64:10", "resnet50:64:10"]
    print(f"1..{len(runs) + len(residual)}")
    results = [check(*arguments) for arguments in runs]
    results += [check_residual(program, name, 8, 1, 0.01, 0.0) for name in residual]
    for number, (good, text) in enumerate(results, 1):
        print(f"{'ok' if good else 'not ok'} {number} - {text}")
    return not all(good for good, _ in results)


sys.exit(main())
