"""One measurement for peers.py: MODEL fit|loop BATCH THREADS STEPS DATA, by TensorFlow.

fit is Keras' own; loop is a tf.function of one step, called from Python. Data come from a tf.data pipeline that shuffles
and batches what lies in memory, as Keras users write it."""
import os
import time

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
import peer_lib as peer
import tensorflow as tf
import keras
from keras import layers

tf.config.threading.set_intra_op_parallelism_threads(peer.THREADS)
tf.config.threading.set_inter_op_parallelism_threads(peer.THREADS)


def make_model():
    if peer.MODEL == "mnist-cnn":
        return keras.Sequential([layers.Input((28, 28)), layers.Reshape((28, 28, 1)),
                                 layers.Conv2D(32, 3, activation="relu"), layers.Flatten(),
                                 layers.Dense(128, activation="relu"), layers.Dense(10)]), 0.2, True
    if peer.MODEL == "mnist-convnet":
        return keras.Sequential([layers.Input((28, 28, 1)), layers.Conv2D(32, 5, activation="relu"),
                                 layers.MaxPooling2D(), layers.Conv2D(64, 5, activation="relu"),
                                 layers.MaxPooling2D(), layers.Flatten(),
                                 layers.Dense(10, activation="softmax")]), 0.01, False
    make = {"resnet50v2": keras.applications.ResNet50V2, "resnet101v2": keras.applications.ResNet101V2,
            "resnet152v2": keras.applications.ResNet152V2, "mobilenetv2": keras.applications.MobileNetV2,
            "densenet121": keras.applications.DenseNet121, "efficientnetb0": keras.applications.EfficientNetB0}[peer.MODEL]
    return make(weights=None, input_shape=(peer.SIDE, peer.SIDE, 3), classes=10), 0.01, False


def make_data():
    if not peer.IS_MNIST:
        return tf.data.Dataset.from_tensors(peer.made_up()).cache().repeat()
    pictures, labels = peer.mnist()
    if peer.MODEL == "mnist-convnet":
        pictures = pictures[..., None]
    data = tf.data.Dataset.from_tensor_slices((pictures, labels)).shuffle(60000).repeat()
    return data.batch(peer.BATCH).prefetch(tf.data.AUTOTUNE)


def fit(model, optimizer, loss, data, clock):
    class Notes(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            clock.step_ended()

    model.compile(optimizer, loss, metrics=["accuracy"])
    notes = Notes()
    if peer.STEPS > 1:
        model.fit(data, steps_per_epoch=peer.FIRST_STEPS, verbose=0, callbacks=[notes])
    began = time.perf_counter()
    model.fit(data, steps_per_epoch=peer.STEPS, verbose=0, callbacks=[notes] if peer.STEPS == 1 else [])
    return time.perf_counter() - began


def loop(model, optimizer, loss, data, clock):
    accuracy = keras.metrics.SparseCategoricalAccuracy()

    @tf.function
    def step(pictures, labels):
        with tf.GradientTape() as tape:
            outputs = model(pictures, training=True)
            value = loss(labels, outputs)
        gradients = tape.gradient(value, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        accuracy.update_state(labels, outputs)
        return value

    batches = iter(data)
    if peer.STEPS > 1:
        for _ in range(peer.FIRST_STEPS):
            float(step(*next(batches)))
            clock.step_ended()
    began = time.perf_counter()
    for _ in range(peer.STEPS):
        value = step(*next(batches))
        if peer.STEPS == 1:
            float(value)
            clock.step_ended()
    float(value)
    return time.perf_counter() - began


def main():
    clock = peer.Clock()
    model, rate, logits = make_model()
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=logits)
    optimizer = keras.optimizers.SGD(rate)
    run = {"fit": fit, "loop": loop}[peer.MODE]
    seconds = run(model, optimizer, loss, make_data(), clock)
    peer.report(clock.first, seconds)


main()
