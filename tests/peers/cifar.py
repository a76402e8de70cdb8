"""CIFAR-10's JPEGs from an archive of train/CLASS/NUMBER.jpg and test/CLASS/NUMBER.jpg, and the order in which
`hpc-train fit` takes samples."""
import os
import tarfile

import numpy as np
import tensorflow as tf

MASK = (1 << 64) - 1


def extract(archive, folder, train, test):
    """The first TRAIN and TEST pictures of each class."""
    safe = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
    with tarfile.open(archive) as file:
        for member in file:
            parts = member.name.split("/")
            if member.isfile() and len(parts) == 3 and int(parts[2].split(".")[0]) < (
                    train if parts[0] == "train" else test):
                file.extract(member, folder, **safe)


def load(folder):
    """All pictures by class and name, as bytes [n][32][32][3], and their labels; decoded as precisely as ours."""
    pictures, labels = [], []
    for label, name in enumerate(sorted(os.listdir(folder))):
        for file in sorted(os.listdir(f"{folder}/{name}")):
            data = tf.io.read_file(f"{folder}/{name}/{file}")
            pictures.append(tf.io.decode_jpeg(data, channels=3, dct_method="INTEGER_ACCURATE").numpy())
            labels.append(label)
    return np.stack(pictures), np.array(labels, np.int32)


# ---- the order, from the description in agent/data/sampler.c ----


def mix(x):
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9 & MASK
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb & MASK
    return x ^ (x >> 31)


def shuffled(seed, count, number):
    """Of COUNT samples in epoch NUMBER, from 0."""
    key = mix(seed + 0x9e3779b97f4a7c15 & MASK)
    key = mix(key ^ mix(number + 0xd1b54a32d192ed03 & MASK))
    order = list(range(count))
    for i in range(count, 1, -1):
        j = mix(key + i * 0x9e3779b97f4a7c15 & MASK) * i >> 64
        order[i - 1], order[j] = order[j], order[i - 1]
    return order
