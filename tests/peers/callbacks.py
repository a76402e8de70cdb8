"""EarlyStopping and ReduceLROnPlateau on random sequences: Keras' own, and ours (tests/peers/callbacks.c)."""
import random, subprocess, sys

import keras

program, cases = sys.argv[1], int(sys.argv[2])
random.seed(7)


class Model:
    """What the callbacks ask of a model."""

    def __init__(self, rate):
        self.optimizer = keras.optimizers.SGD(rate)
        self.metrics, self.stop_training, self.weights = [], False, None

    def get_weights(self):
        return []

    def set_weights(self, weights):
        pass


def ours(kind, options, values, *rate):
    text = options.pop("monitor") + ":" + ",".join(f"{key}={value}" for key, value in options.items())
    out = subprocess.run([program, kind, text.rstrip(":"), *map(str, rate)], input="\n".join(map(repr, values)), text=True,
                         capture_output=True, check=True)
    return [tuple(map(float, line.split())) for line in out.stdout.splitlines()]


def stopping(options, values):
    callback = keras.callbacks.EarlyStopping(**options, restore_best_weights=True)
    callback.set_model(Model(0.1))
    callback.on_train_begin()
    seen = []
    for epoch, value in enumerate(values):
        callback.on_epoch_end(epoch, {options["monitor"]: value})
        seen.append((float(callback.model.stop_training), float(callback.best_epoch)))
        if callback.model.stop_training:
            break
    return seen


def plateau(options, values, rate):
    callback = keras.callbacks.ReduceLROnPlateau(**options)
    callback.set_model(Model(rate))
    callback.on_train_begin()
    seen = []
    for epoch, value in enumerate(values):
        callback.on_epoch_end(epoch, {options["monitor"]: value})
        seen.append((float(callback.model.optimizer.learning_rate),))
    return seen


def sequence():
    """A curve that falls and stays, with ties and now and then a NaN, but not at first."""
    value, values = random.uniform(1, 3), []
    for epoch in range(random.randint(1, 40)):
        value = max(0.0, value + random.choice((-0.2, -0.05, -1e-4, 0, 0, 0.02, 0.1)))
        values.append(float("nan") if epoch > 4 and random.random() < 0.03 else round(value, 4))
    return values


def some(**choices):
    return {key: random.choice(values) for key, values in choices.items() if random.random() < 0.6}


print("1..2")
wrong = []
for _ in range(cases):
    options = {"monitor": "val_loss", "mode": random.choice(("min", "max")),
               **some(patience=(0, 1, 2, 5), min_delta=(0, 0.01, 0.1, -0.05), baseline=(1.0, 2.0), start_from_epoch=(0, 1, 4))}
    values = sequence()
    want, got = stopping(options, values), ours("stopping", dict(options), values)
    if want != got:
        wrong.append((options, values, want, got))
print("not ok" if wrong else "ok", f"1 - EarlyStopping: {cases} sequences end after the same epoch, with the same best one")
for case in wrong[:3]:
    print("#", *case, sep="\n# ")
failed, wrong = bool(wrong), []
for _ in range(cases):
    options = {"monitor": "loss", "mode": random.choice(("min", "max")),
               **some(patience=(1, 2, 5), min_delta=(0, 1e-3, 0.1), factor=(0.1, 0.5, 0.9), cooldown=(0, 1, 3), min_lr=(0, 1e-3))}
    values, rate = sequence(), 0.1
    want, got = plateau(options, values, rate), ours("plateau", dict(options), values, rate)
    if len(want) != len(got) or any(abs(a[0] - b[0]) > 1e-5 * a[0] for a, b in zip(want, got)):
        wrong.append((options, values, want, got))
print("not ok" if wrong else "ok", f"2 - ReduceLROnPlateau: the same learning rates after each epoch of {cases} sequences")
for case in wrong[:3]:
    print("#", *case, sep="\n# ")
sys.exit(failed or bool(wrong))
