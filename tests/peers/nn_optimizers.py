"""Repeats what nn_optimizers did in Keras, from the same weights and batches, and compares: losses,
metrics and learning rates of 20 steps, weights after the first update. Prints TAP.

usage: nn_optimizers.py NN_OPTIMIZERS [all]    (without `all`: every fifth case)"""
import json
import struct
import subprocess
import sys
import tempfile

import keras
import numpy as np
import tensorflow as tf
from keras import layers, losses, optimizers
from keras.optimizers import schedules

BATCH, STEPS = 16, 20
SGD, ADAM, ADAMW, LARS, LAMB, RMSPROP = range(6)  # hpct_optimizer_kind
PIECEWISE, EXPONENTIAL, COSINE, POLYNOMIAL = range(1, 5)  # hpct_schedule_kind
# hpct_loss and hpct_activation
SPARSE, SPARSE_LOGITS, CATEGORICAL, CATEGORICAL_LOGITS, BINARY, BINARY_LOGITS, SQUARED = range(7)
BINARY_FOCAL, BINARY_FOCAL_LOGITS, FOCAL, FOCAL_LOGITS, HUBER, DIVERGENCE = range(7, 13)
LINEAR, RELU, SOFTMAX, RELU6, SIGMOID = range(5)


class Lars(optimizers.Optimizer):
    """You, Gitman and Ginsburg, Large Batch Training of Convolutional Networks, 2017, algorithm 1;
    biases take plain momentum."""

    def __init__(self, rate, decay, trust, momentum=0.9):
        super().__init__(rate)
        self.beta, self.trust, self.momentum = decay, trust, momentum

    def build(self, variables):
        super().build(variables)
        self.v = [self.add_variable_from_reference(x, name="v") for x in variables]

    def update_step(self, gradient, variable, rate):
        v = self.v[self._get_variable_index(variable)]
        if len(variable.shape) > 1:
            w = tf.convert_to_tensor(variable)
            norm = tf.norm(w)
            rate = rate * self.trust * norm / (tf.norm(gradient) + self.beta * norm)
            gradient = gradient + self.beta * w
        v.assign(self.momentum * v + rate * gradient)
        variable.assign_sub(v)


CASES = [  # name, what nn_optimizers is told, what Keras is
    ("SGD", dict(learning_rate=0.1), lambda: optimizers.SGD(0.1)),
    ("SGD with Nesterov and weight decay",
     dict(learning_rate=0.05, momentum=0.9, nesterov=1, weight_decay=0.02),
     lambda: optimizers.SGD(0.05, momentum=0.9, nesterov=True, weight_decay=0.02)),
    ("SGD's defaults", dict(), lambda: optimizers.SGD()),
    ("Adam", dict(kind=ADAM, learning_rate=0.01), lambda: optimizers.Adam(0.01)),
    ("AdamW's defaults", dict(kind=ADAMW), lambda: optimizers.AdamW()),
    ("AdamW", dict(kind=ADAMW, learning_rate=0.005, weight_decay=0.1),
     lambda: optimizers.AdamW(0.005, weight_decay=0.1)),
    ("LAMB", dict(kind=LAMB, learning_rate=0.02, weight_decay=0.1),
     lambda: optimizers.Lamb(0.02, weight_decay=0.1)),
    ("LARS", dict(kind=LARS, learning_rate=2, weight_decay=0.01, trust_coefficient=0.01),
     lambda: Lars(2.0, 0.01, 0.01)),
    ("RMSprop's defaults", dict(kind=RMSPROP), lambda: optimizers.RMSprop()),
    ("RMSprop", dict(kind=RMSPROP, learning_rate=0.002, rho=0.8, momentum=0.9, epsilon=1e-5, weight_decay=0.1),
     lambda: optimizers.RMSprop(0.002, rho=0.8, momentum=0.9, epsilon=1e-5, weight_decay=0.1)),
    ("RMSprop, centered", dict(kind=RMSPROP, learning_rate=0.001, centered=1, epsilon=1e-3),
     lambda: optimizers.RMSprop(0.001, centered=True, epsilon=1e-3)),
    ("RMSprop, centered and with momentum",
     dict(kind=RMSPROP, learning_rate=0.001, centered=1, momentum=0.5, epsilon=1e-3, clipnorm=0.1),
     lambda: optimizers.RMSprop(0.001, centered=True, momentum=0.5, epsilon=1e-3, clipnorm=0.1)),
    ("clipvalue", dict(learning_rate=0.1, clipvalue=0.02), lambda: optimizers.SGD(0.1, clipvalue=0.02)),
    ("clipnorm", dict(learning_rate=0.1, momentum=0.5, clipnorm=0.1),
     lambda: optimizers.SGD(0.1, momentum=0.5, clipnorm=0.1)),
    ("global_clipnorm", dict(kind=ADAM, learning_rate=0.01, global_clipnorm=0.2),
     lambda: optimizers.Adam(0.01, global_clipnorm=0.2)),
    ("accumulation", dict(kind=ADAM, learning_rate=0.01, gradient_accumulation_steps=3, clipnorm=0.1),
     lambda: optimizers.Adam(0.01, gradient_accumulation_steps=3, clipnorm=0.1)),
    ("accumulation under a schedule",
     dict(learning_rate=0.1, gradient_accumulation_steps=2, schedule=COSINE, decay_steps=15),
     lambda: optimizers.SGD(schedules.CosineDecay(0.1, 15), gradient_accumulation_steps=2)),
    ("PiecewiseConstantDecay",
     dict(schedule=PIECEWISE, num_boundaries=2, boundary_0=4, boundary_1=9, value_0=0.1, value_1=0.05,
          value_2=0.01),
     lambda: optimizers.SGD(schedules.PiecewiseConstantDecay([4, 9], [0.1, 0.05, 0.01]))),
    ("ExponentialDecay", dict(learning_rate=0.1, schedule=EXPONENTIAL, decay_steps=7, decay_rate=0.5),
     lambda: optimizers.SGD(schedules.ExponentialDecay(0.1, 7, 0.5))),
    ("ExponentialDecay's staircase",
     dict(learning_rate=0.1, schedule=EXPONENTIAL, decay_steps=7, decay_rate=0.5, staircase=1),
     lambda: optimizers.SGD(schedules.ExponentialDecay(0.1, 7, 0.5, staircase=True))),
    ("CosineDecay with warm-up",
     dict(learning_rate=0.1, schedule=COSINE, decay_steps=12, alpha=0.1, warmup_steps=5, warmup_start=0.01),
     lambda: optimizers.SGD(schedules.CosineDecay(0.01, 12, alpha=0.1, warmup_target=0.1, warmup_steps=5))),
    ("PolynomialDecay", dict(learning_rate=0.1, schedule=POLYNOMIAL, decay_steps=15, power=2),
     lambda: optimizers.SGD(schedules.PolynomialDecay(0.1, 15, power=2.0))),
]

LOSSES = [  # name, loss, activation, outputs, targets, smoothing, Keras' loss and accuracy
    ("sparse categorical cross-entropy", SPARSE, SOFTMAX, 5, 0, 0,
     losses.SparseCategoricalCrossentropy(), "sparse_categorical_accuracy"),
    ("sparse, of outputs that no softmax made", SPARSE, SIGMOID, 5, 0, 0,
     losses.SparseCategoricalCrossentropy(), "sparse_categorical_accuracy"),
    ("categorical cross-entropy, smoothed", CATEGORICAL, SOFTMAX, 5, 0, 0.1,
     losses.CategoricalCrossentropy(label_smoothing=0.1), "categorical_accuracy"),
    ("categorical, of outputs that no softmax made", CATEGORICAL, SIGMOID, 5, 0, 0.1,
     losses.CategoricalCrossentropy(label_smoothing=0.1), "categorical_accuracy"),
    ("categorical cross-entropy from logits, smoothed", CATEGORICAL_LOGITS, LINEAR, 5, 0, 0.2,
     losses.CategoricalCrossentropy(from_logits=True, label_smoothing=0.2), "categorical_accuracy"),
    ("binary cross-entropy", BINARY, SIGMOID, 1, 0, 0, losses.BinaryCrossentropy(), "binary_accuracy"),
    ("binary cross-entropy from logits, smoothed", BINARY_LOGITS, LINEAR, 1, 0, 0.1,
     losses.BinaryCrossentropy(from_logits=True, label_smoothing=0.1), "binary_accuracy of logits"),
    ("binary cross-entropy of several outputs", BINARY, SOFTMAX, 5, 0, 0.1,
     losses.BinaryCrossentropy(label_smoothing=0.1), "categorical_accuracy"),
    ("binary cross-entropy with rows of targets", BINARY_LOGITS, LINEAR, 4, 1, 0,
     losses.BinaryCrossentropy(from_logits=True), "categorical_accuracy"),
    ("mean squared error", SQUARED, LINEAR, 5, 0, 0, losses.MeanSquaredError(), "categorical_accuracy"),
    ("mean squared error with rows of targets", SQUARED, SIGMOID, 3, 1, 0, losses.MeanSquaredError(),
     "categorical_accuracy"),
]

LOSSES_WITH = [  # the same, with what else nn_optimizers is told
    ("binary focal", BINARY_FOCAL, SIGMOID, 1, 0, 0, dict(), losses.BinaryFocalCrossentropy(), "binary_accuracy"),
    ("binary focal from logits, smoothed", BINARY_FOCAL_LOGITS, LINEAR, 1, 0, 0.1, dict(focal_gamma=1.5),
     losses.BinaryFocalCrossentropy(from_logits=True, gamma=1.5, label_smoothing=0.1), "binary_accuracy of logits"),
    ("binary focal, balanced, of several outputs", BINARY_FOCAL, SOFTMAX, 5, 0, 0.1, dict(focal_alpha=0.4),
     losses.BinaryFocalCrossentropy(apply_class_balancing=True, alpha=0.4, label_smoothing=0.1), "categorical_accuracy"),
    ("categorical focal", FOCAL, SOFTMAX, 5, 0, 0, dict(), losses.CategoricalFocalCrossentropy(), "categorical_accuracy"),
    ("categorical focal from logits, smoothed", FOCAL_LOGITS, LINEAR, 5, 0, 0.1, dict(focal_gamma=3, focal_alpha=0.5),
     losses.CategoricalFocalCrossentropy(alpha=0.5, gamma=3, from_logits=True, label_smoothing=0.1), "categorical_accuracy"),
    ("categorical focal of outputs that no softmax made", FOCAL, SIGMOID, 5, 0, 0.1, dict(focal_gamma=0.5),
     losses.CategoricalFocalCrossentropy(gamma=0.5, label_smoothing=0.1), "categorical_accuracy"),
    ("Huber", HUBER, LINEAR, 5, 0, 0, dict(huber_delta=0.3), losses.Huber(0.3), "categorical_accuracy"),
    ("Huber with rows of targets", HUBER, SIGMOID, 3, 1, 0, dict(), losses.Huber(), "categorical_accuracy"),
    ("KL divergence", DIVERGENCE, SOFTMAX, 5, 0, 0, dict(), losses.KLDivergence(), "categorical_accuracy"),
    ("KL divergence with rows of targets", DIVERGENCE, SOFTMAX, 3, 1, 0, dict(), losses.KLDivergence(),
     "categorical_accuracy"),
    ("class weights", SPARSE, SOFTMAX, 5, 0, 0,
     dict(class_weights=5, weight_0=2, weight_1=0.5, weight_2=1, weight_3=0, weight_4=7),
     losses.SparseCategoricalCrossentropy(), "sparse_categorical_accuracy"),
    ("class weights of one output", BINARY, SIGMOID, 1, 0, 0, dict(class_weights=2, weight_0=0.3, weight_1=4),
     losses.BinaryCrossentropy(), "binary_accuracy"),
    ("class weights of a focal loss", FOCAL_LOGITS, LINEAR, 3, 0, 0,
     dict(class_weights=3, weight_0=0.3, weight_1=4, weight_2=1),
     losses.CategoricalFocalCrossentropy(from_logits=True), "categorical_accuracy"),
]


def build(outputs, activation):
    names = {LINEAR: "linear", SOFTMAX: "softmax", SIGMOID: "sigmoid"}
    return keras.Sequential([
        layers.Input((6, 6, 2)), layers.Conv2D(7, 3, activation="relu"), layers.Flatten(),
        layers.Dense(20, activation="relu"), layers.Dense(outputs, activation=names[activation])])


def load_file(path):
    """The tensors of a safetensors file, all of them F32."""
    with open(path, "rb") as file:
        data = file.read()
    begin = 8 + struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:begin])
    return {name: np.frombuffer(data[begin + t["data_offsets"][0]:begin + t["data_offsets"][1]], "<f4").reshape(t["shape"])
            for name, t in header.items() if name != "__metadata__"}


def name_of(weight):
    """dense/kernel, whether Keras puts the model's name before it or not."""
    return "/".join(weight.path.split("/")[-2:])


def relative(a, b):
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    return np.abs(a - b).max() / max(np.abs(b).max(), 1e-30)


def target_of(labels, targets, outputs, accuracy):
    if targets is not None:
        return targets
    if accuracy in (None, "sparse_categorical_accuracy"):
        return labels
    return labels[:, None].astype(np.float32) if outputs == 1 else np.eye(outputs, dtype=np.float32)[labels]


def weights_of(told, labels):
    """What Keras' fit makes of class_weight."""
    count = told.get("class_weights", 0)
    return np.array([told[f"weight_{i}"] for i in range(count)], np.float32)[labels] if count else None


def metrics_of(y, outputs, accuracy):
    if accuracy == "binary_accuracy of logits":  # of which Keras must be told that 0 is a half
        right = keras.metrics.binary_accuracy(y, outputs, threshold=0)
    else:
        right = getattr(keras.metrics, accuracy)(y, outputs)
    top = 0.0
    if outputs.shape[1] > 1:
        sparse = y if accuracy == "sparse_categorical_accuracy" else np.argmax(y, axis=1)
        top = float(np.mean(keras.metrics.sparse_top_k_categorical_accuracy(sparse, outputs, k=2)))
    return float(np.mean(right)), top


def run(program, backend, told, optimizer, loss, accuracy):
    outputs, dense = told.get("outputs", 5), told.get("dense", 0)
    remembers = (told["loss"], told.get("activation")) in [(SPARSE, SOFTMAX), (CATEGORICAL, SOFTMAX), (BINARY, SIGMOID),
                                                         (BINARY_FOCAL, SIGMOID)]
    with tempfile.TemporaryDirectory() as folder:
        command = [program, backend, str(STEPS), folder, "top_k=2"] + [f"{k}={v}" for k, v in told.items()]
        ours = np.array([line.split() for line in
                         subprocess.run(command, check=True, capture_output=True, text=True)
                         .stdout.splitlines()], np.float64)
        keras.backend.clear_session()  # layers are named from the start again
        model = build(outputs, told.get("activation", LINEAR))
        first, one = load_file(folder + "/first.safetensors"), load_file(folder + "/one.safetensors")
        for weight in model.weights:
            weight.assign(first[name_of(weight)])
        x = np.fromfile(folder + "/inputs.f32", np.float32).reshape(STEPS, BATCH, 6, 6, 2)
        labels = np.fromfile(folder + "/labels.i32", np.int32).reshape(STEPS, BATCH)
        targets = np.fromfile(folder + "/targets.f32", np.float32).reshape(STEPS, BATCH, -1) if dense else None
        every = told.get("gradient_accumulation_steps", 1)
        theirs, weights = [], None
        for t in range(STEPS):
            y = target_of(labels[t], targets[t] if dense else None, outputs, accuracy)
            rate = float(optimizer.learning_rate)
            with tf.GradientTape() as tape:
                out = model(x[t], training=True)
                # outputs remember which logits an activation made them of, whichever it was
                value = loss(y, out if remembers else tf.identity(out), weights_of(told, labels[t]))
            measured = metrics_of(y, out.numpy(), accuracy) if accuracy else tuple(ours[t, 1:3])
            theirs.append((float(value),) + measured + (rate,))
            optimizer.apply(tape.gradient(value, model.trainable_variables), model.trainable_variables)
            if t + 1 == every:
                weights = max(relative(one[name_of(w)], w.numpy()) for w in model.weights)
        theirs = np.array(theirs)
        moved = max(relative(first[k], one[k]) for k in first)
        return dict(loss=np.abs(ours[:, 0] / theirs[:, 0] - 1).max(), accuracy=np.abs(ours[:, 1] - theirs[:, 1]).max(),
                    top=np.abs(ours[:, 2] - theirs[:, 2]).max(), rate=np.abs(ours[:, 3] - theirs[:, 3]).max(),
                    weights=weights, moved=moved)


def check(program, backend, name, told, optimizer, loss, accuracy):
    r = run(program, backend, told, optimizer, loss, accuracy)
    good = (r["loss"] < 1e-3 and r["weights"] < 1e-4 and r["rate"] < 1e-7 and r["accuracy"] < 1e-6 and
            r["top"] < 1e-6 and (r["moved"] > 1e-4 or told.get("warmup_steps", 0) > 0))
    return good, (f"{name} on {backend}: largest differences: loss {r['loss']:.1e}, weights after an update "
                  f"{r['weights']:.1e}, rate {r['rate']:.1e}, accuracy {r['accuracy']:.1e}, top {r['top']:.1e}")


def main():
    program = sys.argv[1]
    sparse = losses.SparseCategoricalCrossentropy(from_logits=True)
    runs = [("cpu", name, dict(told, loss=SPARSE_LOGITS), make, sparse, None)
            for name, told, make in CASES]
    every = [row[:6] + (dict(),) + row[6:] for row in LOSSES] + LOSSES_WITH
    for name, number, activation, outputs, dense, smoothing, more, loss, accuracy in every:
        told = dict(loss=number, activation=activation, outputs=outputs, dense=dense, learning_rate=0.1,
                    momentum=0.9, label_smoothing=smoothing, **more)
        runs.append(("cpu", name, told, lambda: optimizers.SGD(0.1, momentum=0.9), loss, accuracy))
    if "all" not in sys.argv[2:]:
        runs = runs[::5]
    print(f"1..{len(runs)}")
    failed = False
    for i, (backend, name, told, make, loss, accuracy) in enumerate(runs, 1):
        good, text = check(program, backend, name, told, make(), loss, accuracy)
        failed |= not good
        print(f"{'ok' if good else 'not ok'} {i} - {text}")
    return failed


sys.exit(main())
