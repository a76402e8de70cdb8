"""cluster_peer_tf.py STEPS, started by srun --hpc-train: W1 by Keras under MultiWorkerMirroredStrategy, made-up pictures, 64 per
node; the first node prints images per second of all, over the steps after ten to warm up."""
import os
import sys
import time

os.environ["TF_USE_LEGACY_KERAS"] = "1"  # Keras 3 does not have this strategy
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy
import tensorflow as tf
import tf_keras as keras

WARM_UP, PER_NODE = 10, 64
steps = int(sys.argv[1])
tf.config.threading.set_intra_op_parallelism_threads(1)
tf.config.threading.set_inter_op_parallelism_threads(2)
strategy = tf.distribute.MultiWorkerMirroredStrategy()
total = PER_NODE * strategy.num_replicas_in_sync
with strategy.scope():
    model = keras.Sequential([
        keras.layers.Input((28, 28)), keras.layers.Reshape((28, 28, 1)), keras.layers.Conv2D(32, 3, activation="relu"),
        keras.layers.Flatten(), keras.layers.Dense(128, activation="relu"), keras.layers.Dense(10)])
    model.compile(keras.optimizers.SGD(1e-6), keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
pictures = numpy.random.default_rng(0).random((total, 28, 28), "float32")
data = tf.data.Dataset.from_tensors((pictures, numpy.arange(total) % 10)).cache().repeat()
options = tf.data.Options()
options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
data = data.unbatch().batch(total).with_options(options).prefetch(2)
model.fit(data, steps_per_epoch=WARM_UP, epochs=1, verbose=0)
began = time.perf_counter()
model.fit(data, steps_per_epoch=steps, epochs=1, verbose=0)
if int(os.environ["RANK"] if "RANK" in os.environ else os.environ["SLURM_PROCID"]) == 0:
    print("images_per_second %.1f" % (total * steps / (time.perf_counter() - began)), flush=True)
