"""data_peers.py DATA_DUMP: data sets written here by numpy and TensorFlow, read by us and by them. Prints TAP."""
import os
import pickle
import subprocess
import sys
import tarfile
import tempfile

import keras
import numpy as np
import tensorflow as tf

dump, number = sys.argv[1], 0


def ours(path, split="train", size=(0, 0), channels=3):
    out = subprocess.run([dump, path, split, str(size[0]), str(size[1]), str(channels)], stdout=subprocess.PIPE,
                         check=True).stdout
    header, rest = out.split(b"\n", 1)
    n, *shape = (int(word) for word in header.split())
    labels = np.frombuffer(rest[:4 * n], np.int32)
    return np.frombuffer(rest[4 * n:], np.float32).reshape(n, *shape), labels


def ok(right, name):
    global number
    number += 1
    print(f"{'' if right else 'not '}ok {number} - {name}", flush=True)


def same(name, got, pictures, labels, within=0.0):
    right = got[0].shape == pictures.shape and np.array_equal(got[1], labels)
    apart = np.abs(got[0] - pictures).max() if right else np.inf
    ok(right and apart <= within, f"{name} (largest difference {apart:g})")


def write(path, data):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(data)


random = np.random.default_rng(1)
print("1..16")
with tempfile.TemporaryDirectory() as top:
    x, y = random.integers(0, 256, (20, 32, 32, 3), dtype=np.uint8), random.integers(0, 10, 20)
    np.savez_compressed(f"{top}/a.npz", x_train=x, y_train=y, x_test=x[:5], y_test=y[:5].astype(np.uint8))
    same("npz", ours(f"{top}/a.npz"), x.astype(np.float32), y)
    same("npz, test pictures", ours(f"{top}/a.npz", "test"), x[:5].astype(np.float32), y[:5])

    planes = x.transpose(0, 3, 1, 2).reshape(20, 3072)
    for protocol in range(2, 6):
        folder = f"{top}/py{protocol}"
        for i in range(5):
            part = slice(4 * i, 4 * i + 4)
            batch = {"data": planes[part], "labels": y[part].tolist(), "filenames": ["x"] * 4, "batch_label": str(i)}
            write(f"{folder}/data_batch_{i + 1}", pickle.dumps(batch, protocol))
        same(f"CIFAR-10, pickle protocol {protocol}", ours(folder), x.astype(np.float32), y)
    records = np.concatenate([y[:, None].astype(np.uint8), planes], axis=1)
    for i in range(5):
        write(f"{top}/bin/data_batch_{i + 1}.bin", records[4 * i:4 * i + 4].tobytes())
    same("CIFAR-10, binary", ours(f"{top}/bin"), x.astype(np.float32), y)

    # Keras' own reading of a folder, in its order; sizes differ
    for i in range(12):
        height, width = random.integers(5, 70, 2)
        smooth = tf.image.resize(random.integers(0, 256, (4, 4, 3)), (height, width)).numpy().astype(np.uint8)
        coded = tf.io.encode_jpeg(smooth) if i % 2 else tf.io.encode_png(smooth)
        write(f"{top}/folder/{'zebra ant Bee'.split()[i % 3]}/{i}.{'jpeg' if i % 2 else 'png'}", coded.numpy())
    for size in ((32, 32), (128, 128), (17, 90)):
        theirs = keras.utils.image_dataset_from_directory(f"{top}/folder", image_size=size, shuffle=False, verbose=0,
                                                          batch_size=None)
        pictures, labels = (np.stack([np.array(part[i]) for part in theirs]) for i in range(2))
        # TensorFlow decodes JPEG there with a faster, less accurate DCT
        same(f"folder at {size}, beside Keras", ours(f"{top}/folder", "train", size), pictures, labels, 16)
        files = sorted(f"{top}/folder/{name}/{file}" for name in os.listdir(f"{top}/folder")
                       for file in os.listdir(f"{top}/folder/{name}"))

        def read(path, size=size):
            data = tf.io.read_file(path)
            picture = (tf.io.decode_jpeg(data, channels=3, dct_method="INTEGER_ACCURATE") if path.endswith("jpeg")
                       else tf.io.decode_png(data, channels=3))
            return tf.image.resize(picture, size).numpy()
        files.sort(key=lambda path: (path.split("/")[-2], path.split("/")[-1]))
        same(f"folder at {size}, with the same DCT, beside tf.image.resize",
             ours(f"{top}/folder", "train", size), np.stack([read(path) for path in files]), labels, 1e-3)

    with tarfile.open(f"{top}/a.tar.gz", "w:gz") as archive:
        archive.add(f"{top}/folder", "train")
    folder, tar = (ours(path, "train", (20, 20)) for path in (f"{top}/folder", f"{top}/a.tar.gz"))
    same("tar of that folder", tar, folder[0], folder[1])
    with tarfile.open(f"{top}/web.tar", "w") as archive:
        for i, path in enumerate(files):
            write(f"{top}/label", str(folder[1][i]).encode())
            archive.add(path, f"{i:04}.{path.split('.')[-1]}")
            archive.add(f"{top}/label", f"{i:04}.cls")
    same("WebDataset", ours(f"{top}/web.tar", "train", (20, 20)), folder[0], folder[1])
    grey = ours(f"{top}/folder", "train", (20, 20), 1)[0]
    ok(grey.shape == (12, 20, 20, 1), "one channel")
