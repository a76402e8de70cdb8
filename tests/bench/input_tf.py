"""input_tf.py FOLDER SIDE BATCH SECONDS: images per second of tf.data, JPEG files to batches of floats."""
import pathlib
import sys
import time

import tensorflow as tf

folder, side, batch, seconds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
cores = len(__import__("os").sched_getaffinity(0))
files = sorted(str(path) for path in pathlib.Path(folder, "train").glob("*/*.jpg"))
names = sorted({path.split("/")[-2] for path in files})
labels = [names.index(path.split("/")[-2]) for path in files]


def load(path, label):
    picture = tf.io.decode_jpeg(tf.io.read_file(path), channels=3)
    return tf.image.resize(picture, (side, side)) * (1 / 255), label


data = tf.data.Dataset.from_tensor_slices((files, labels)).shuffle(len(files), seed=0).repeat()
data = data.map(load, num_parallel_calls=tf.data.AUTOTUNE, deterministic=False).batch(batch).prefetch(2)
options = tf.data.Options()
options.threading.private_threadpool_size = cores
data = data.with_options(options)
images, began = 0, None
for number, (pictures, _) in enumerate(data):
    now = time.monotonic()
    if number == 10:
        began, cpu = now, time.process_time()
    elif number > 10:
        images += pictures.shape[0]
        if now - began > seconds:
            break
print(f"{images / (now - began):.0f} {images / (time.process_time() - cpu):.0f}")
