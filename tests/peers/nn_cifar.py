"""ResNet50V2 on CIFAR-10's JPEGs, `hpc-train fit` beside Keras: the same initial weights, the same pictures
in the same order. Prints a table as TAP comments, then TAP.

Rounding grows at every step, so that after some tens of them no two programs have the same losses: nor have Keras
and Keras with the pictures of each batch the other way round, which "twice" shows. So means of WINDOW steps are
compared. Their bounds are a first guess: nobody has yet run this to its end, with "twice" or without.

usage: nn_cifar.py HPC_TRAIN ARCHIVE [STEPS [twice]]"""
import json
import os
import subprocess
import sys
import tarfile
import tempfile

import keras
import numpy as np
import tensorflow as tf

SIDE, BATCH, RATE, SEED = 32, 64, 0.01, 3
TRAIN, TEST, CLASSES = 2000, 200, 10  # pictures of each class
WINDOW, MASK = 50, (1 << 64) - 1


# ---- the order of the samples, from the description in agent/data/sampler.c ----


def mix(x):
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9 & MASK
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb & MASK
    return x ^ (x >> 31)


def shuffled(count, number):
    key = mix(SEED + 0x9e3779b97f4a7c15 & MASK)
    key = mix(key ^ mix(number + 0xd1b54a32d192ed03 & MASK))
    order = list(range(count))
    for i in range(count, 1, -1):
        j = mix(key + i * 0x9e3779b97f4a7c15 & MASK) * i >> 64
        order[i - 1], order[j] = order[j], order[i - 1]
    return order


def batches(count, steps):
    stream, number = [], 0
    while len(stream) < steps * BATCH:
        stream += shuffled(count, number)
        number += 1
    return np.array(stream[:steps * BATCH]).reshape(steps, BATCH)


# ---- the pictures ----


def extract(archive, folder):
    with tarfile.open(archive) as file:
        for member in file:
            parts = member.name.split("/")
            if member.isfile() and len(parts) == 3 and int(parts[2].split(".")[0]) < (
                    TRAIN if parts[0] == "train" else TEST):
                file.extract(member, folder, filter="data")


def load(folder):
    """All pictures by class and name, as 0 to 1, and their labels; decoded as precisely as ours."""
    pictures, labels = [], []
    for label, name in enumerate(sorted(os.listdir(folder))):
        for file in sorted(os.listdir(f"{folder}/{name}")):
            data = tf.io.read_file(f"{folder}/{name}/{file}")
            picture = tf.io.decode_jpeg(data, channels=3, dct_method="INTEGER_ACCURATE")
            pictures.append(tf.image.resize(picture, (SIDE, SIDE)).numpy() / np.float32(255))
            labels.append(label)
    return np.stack(pictures), np.array(labels, np.int32)


# ---- training ----


def ours(program, data, weights, steps, log):
    command = [program, "fit", "--model=resnet50v2", f"--classes={CLASSES}", f"--resize={SIDE}x{SIDE}",
               f"--data={data}", f"--validation-data={data}", f"--weights={weights}", f"--batch-size={BATCH}",
               f"--learning-rate={RATE}", f"--seed={SEED}", f"--steps-per-epoch={steps}", "--epochs=1",
               f"--log-dir={log}", "--verbose=0"]
    subprocess.run(command, check=True)
    with open(log + "/metrics.jsonl") as file:
        lines = [json.loads(line) for line in file]
    with open(log + "/history.csv") as file:
        last = dict(zip(*(line.strip().split(",") for line in file)))
    return (np.array([(line["loss"], line["accuracy"]) for line in lines]),
            (float(last["val_loss"]), float(last["val_accuracy"])))


def theirs(model, weights, train, test, steps, backwards):
    model.load_weights(weights)
    model.compile(optimizer=keras.optimizers.SGD(RATE), loss="sparse_categorical_crossentropy", metrics=["accuracy"],
                  jit_compile=False)
    curve = []
    for indices in batches(len(train[0]), steps):
        indices = indices[::-1] if backwards else indices
        curve.append(model.train_on_batch(train[0][indices], train[1][indices]))
        model.reset_metrics()
    return np.array(curve, np.float64), tuple(model.evaluate(*test, batch_size=200, verbose=0))


def windows(curve):
    """Means of WINDOW steps: [windows][loss, accuracy]."""
    return curve.reshape(-1, WINDOW, 2).mean(axis=1)


def tell(name, curve, test):
    rows = " ".join(f"{loss:.4f}/{accuracy:.4f}" for loss, accuracy in windows(curve))
    print(f"# {name}: {rows}; test {test[0]:.4f}/{test[1]:.4f}", flush=True)


def compare(name, a, b):
    """The largest and the mean difference of the windows' losses, the same of their accuracies."""
    d = windows(a[0]) - windows(b[0])
    largest, mean = np.abs(d).max(axis=0), np.abs(d.mean(axis=0))
    print(f"# {name}: first step's losses differ by {abs(a[0][0, 0] / b[0][0, 0] - 1):.1e}; windows' losses by "
          f"at most {largest[0]:.4f}, in the mean {mean[0]:.4f}; accuracies {largest[1]:.4f}, {mean[1]:.4f}; "
          f"on test pictures {abs(a[1][1] - b[1][1]):.4f}", flush=True)
    return largest, mean


def main():
    program, archive = sys.argv[1:3]
    steps = int(sys.argv[3]) if len(sys.argv) > 3 else 400
    twice = sys.argv[4:] == ["twice"]
    tf.config.threading.set_intra_op_parallelism_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    with tempfile.TemporaryDirectory() as top:
        data, weights = top + "/data", top + "/first.weights.h5"
        extract(archive, data)
        keras.utils.set_random_seed(SEED)
        model = keras.applications.ResNet50V2(weights=None, input_shape=(SIDE, SIDE, 3), classes=CLASSES)
        model.save_weights(weights)
        mine = ours(program, data, weights, steps, top + "/log")
        tell("ours", *mine)
        train, test = load(data + "/train"), load(data + "/test")
        keras_ = theirs(model, weights, train, test, steps, False)
        tell("Keras", *keras_)
        if twice:
            again = theirs(model, weights, train, test, steps, True)
            tell("Keras, batches the other way round", *again)
            compare("Keras and Keras", keras_, again)
        largest, mean = compare("ours and Keras", mine, keras_)
    learned = windows(mine[0])
    results = [
        (abs(mine[0][0, 0] / keras_[0][0, 0] - 1) < 1e-5, "the first step's loss is Keras'"),
        (np.abs(mine[0][:5, 0] / keras_[0][:5, 0] - 1).max() < 1e-2, "and those of the first five steps nearly"),
        (learned[-1, 0] < learned[0, 0] - 0.3 and learned[-1, 1] > learned[0, 1] + 0.1, "it learns"),
        (largest[0] < 0.08 and mean[0] < 0.03, "the losses fall as Keras' do"),
        (largest[1] < 0.03 and mean[1] < 0.012, "the accuracies rise as Keras' do"),
    ]
    print(f"1..{len(results)}")
    for number, (good, text) in enumerate(results, 1):
        print(f"{'ok' if good else 'not ok'} {number} - {text}")
    return not all(good for good, _ in results)


sys.exit(main())
