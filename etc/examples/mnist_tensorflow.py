"""Trains a small network on MNIST or Fashion-MNIST with TensorFlow's MultiWorkerMirroredStrategy.

Nothing here is about Slurm or hpc-train: the strategy reads TF_CONFIG, which `srun --hpc-train` sets in
every task. One task alone trains alone. A run that was stopped goes on after its last whole epoch, from the
folder backup/. See mnist_tensorflow.sbatch."""
import gzip
import os
import sys

# fit() has this strategy in Keras 2 alone; from TensorFlow 2.16 on that is the package tf_keras.
os.environ["TF_USE_LEGACY_KERAS"] = "1"

import numpy as np
import tensorflow as tf

try:
    tf.keras.layers
except ImportError:
    sys.exit("mnist_tensorflow.py: MultiWorkerMirroredStrategy does not train with Keras 3: pip install tf_keras~=%s"
             % ".".join(tf.__version__.split(".")[:2]))

EPOCHS = int(os.environ.get("EPOCHS", 3))
STEPS = int(os.environ.get("STEPS", 0)) or None  # per epoch; all pictures when it is not given
BATCH_PER_WORKER = 64

# Before anything else of TensorFlow runs: it starts the server by which the workers meet.
strategy = tf.distribute.MultiWorkerMirroredStrategy()


def read_idx(name):
    with gzip.open(os.path.join(os.environ.get("HPC_TRAIN_DATA", "."), name), "rb") as file:
        data = file.read()
    dimensions = data[3]
    shape = np.frombuffer(data, ">i4", dimensions, 4)
    return np.frombuffer(data, np.uint8, offset=4 + 4 * dimensions).reshape(shape)


def dataset(global_batch):
    pictures = read_idx("train-images-idx3-ubyte.gz").astype(np.float32) / 255
    labels = read_idx("train-labels-idx1-ubyte.gz").astype(np.int64)
    return (tf.data.Dataset.from_tensor_slices((pictures, labels))
            .shuffle(len(labels), seed=1).repeat().batch(global_batch)), len(labels)


def build():
    model = tf.keras.Sequential([
        tf.keras.layers.Input((28, 28)),
        tf.keras.layers.Reshape((28, 28, 1)),
        tf.keras.layers.Conv2D(32, 3, activation="relu"),
        tf.keras.layers.Flatten(),
        tf.keras.layers.Dense(128, activation="relu"),
        tf.keras.layers.Dense(10)])
    model.compile(loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
                  optimizer=tf.keras.optimizers.SGD(0.05), metrics=["accuracy"])
    return model


workers = strategy.num_replicas_in_sync
batches, count = dataset(BATCH_PER_WORKER * workers)
with strategy.scope():
    model = build()
steps = STEPS or count // (BATCH_PER_WORKER * workers)
chief = strategy.cluster_resolver.task_id in (None, 0)
history = model.fit(batches, epochs=EPOCHS, steps_per_epoch=steps, verbose=2 if chief else 0,
                    callbacks=[tf.keras.callbacks.BackupAndRestore("backup")])
last = {name: values[-1] for name, values in history.history.items()}  # empty if no epoch was left to train
print("worker %d of %d: loss %.4f accuracy %.4f" % (
    strategy.cluster_resolver.task_id or 0, workers, last.get("loss", np.nan), last.get("accuracy", np.nan)), flush=True)
