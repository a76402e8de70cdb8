"""data_peers.py DATA_DUMP: data sets written here by numpy and TensorFlow, read by us and by them. Prints TAP."""
import os
import pickle
import subprocess
import sys
import tarfile
import tempfile

from importlib.util import find_spec

import h5py
import keras
import numpy as np
import tensorflow as tf
from keras.src.trainers.data_adapters.array_slicing import train_validation_split

dump, number = sys.argv[1], 0


def ours(path, split="train", size=(0, 0), channels=3, share=None):
    out = subprocess.run([dump, path, split, str(size[0]), str(size[1]), str(channels)] + ([repr(share)] if share else []),
                         stdout=subprocess.PIPE, check=True).stdout
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
print("1..20")
with tempfile.TemporaryDirectory() as top:
    x, y = random.integers(0, 256, (20, 32, 32, 3), dtype=np.uint8), random.integers(0, 10, 20)
    np.savez_compressed(f"{top}/a.npz", x_train=x, y_train=y, x_test=x[:5], y_test=y[:5].astype(np.uint8))
    same("npz", ours(f"{top}/a.npz"), x.astype(np.float32), y)
    same("npz, test pictures", ours(f"{top}/a.npz", "test"), x[:5].astype(np.float32), y[:5])

    # fit(validation_split=...): every share, of 2 to 20 pictures
    different = []
    for count in (2, 7, 10, 20):
        np.savez(f"{top}/some.npz", x_train=x[:count], y_train=y[:count])
        for share in (0.01, 0.07, 0.1, 0.2, 0.25, 1 / 3, 0.3, 0.5, 0.57, 0.7, 0.8, 0.9):
            try:
                (train_x, train_y), (held_x, held_y) = train_validation_split((x[:count], y[:count]), share)
            except ValueError:
                refused = subprocess.run([dump, f"{top}/some.npz", "train", "0", "0", "3", repr(share)], stderr=subprocess.PIPE)
                different += [(count, share)] if refused.returncode != 65 else []
                continue
            for which, pictures, labels in (("train", train_x, train_y), ("test", held_x, held_y)):
                got = ours(f"{top}/some.npz", which, share=share)
                if not (np.array_equal(got[0], pictures.astype(np.float32)) and np.array_equal(got[1], labels)):
                    different.append((count, share, which))
    ok(not different, f"the held out part of an .npz is Keras' {different}")
    grey = x[..., 0]
    for name, array in (("images-idx3", grey), ("labels-idx1", y.astype(np.uint8))):
        write(f"{top}/idx/train-{name}-ubyte", bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">i4").tobytes() +
              array.tobytes())
    (_, _), (held_x, held_y) = train_validation_split((grey[..., None], y), 0.15)
    same("the held out part of IDX files is Keras'", ours(f"{top}/idx", "test", (0, 0), 1, 0.15), held_x.astype(np.float32),
         held_y)

    # data that is not read, written by those who do; pyarrow and lmdb may be absent
    with h5py.File(f"{top}/x.h5", "w") as file:
        file["x_train"] = x
    with tf.io.TFRecordWriter(f"{top}/train.tfrecord-00000-of-00001") as file:
        file.write(y.tobytes())
    kinds = {"x.h5": "an HDF5 file", "train.tfrecord-00000-of-00001": "a TFRecord file"}
    if find_spec("pyarrow"):
        import pyarrow
        import pyarrow.feather
        import pyarrow.parquet
        table = pyarrow.table({"label": y})
        pyarrow.parquet.write_table(table, f"{top}/train.parquet")
        pyarrow.feather.write_feather(table, f"{top}/train.arrow")
        kinds |= {"train.parquet": "a Parquet file", "train.arrow": "an Arrow file"}
    if find_spec("lmdb"):
        import lmdb
        with lmdb.open(f"{top}/base").begin(write=True) as writer:
            writer.put(b"0", y.tobytes())
        kinds["base"] = "an LMDB database"
    said = {name: subprocess.run([dump, f"{top}/{name}", "train", "0", "0", "3"], stderr=subprocess.PIPE, text=True)
            for name in kinds}
    ok(all(said[name].returncode == 65 and f"is {kind}, which is not read" in said[name].stderr
           for name, kind in kinds.items()), "data of others are named: " + ", ".join(kinds.values()))

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

    # as many as image_dataset_from_directory holds out, drawn from all: which ones depends on its seed
    whole, odd = ours(f"{top}/folder", "train", (9, 9)), []
    for share in (0.1, 0.2, 0.25, 0.3, 0.5, 0.9):
        theirs = [len(keras.utils.image_dataset_from_directory(
            f"{top}/folder", image_size=(9, 9), batch_size=None, validation_split=share, subset=subset, seed=1, verbose=0))
            for subset in ("training", "validation")]
        parts = [ours(f"{top}/folder", which, (9, 9), share=share) for which in ("train", "test")]
        together = np.concatenate([part[0] for part in parts])
        one_of_all = all((whole[0] == picture).all((1, 2, 3)).sum() == (together == picture).all((1, 2, 3)).sum()
                         for picture in whole[0])
        odd += [share] if [len(part[1]) for part in parts] != theirs or not one_of_all else []
    ok(not odd, f"as many pictures of a folder are held out as Keras does {odd}")

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
