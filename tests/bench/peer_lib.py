"""What the two peers' scripts share: MNIST from its files, and the JSON line that peers.py reads."""
import gzip
import json
import os
import sys
import time

import numpy

MODEL, MODE, BATCH, THREADS, STEPS, DATA = (sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]),
                                            int(sys.argv[5]), sys.argv[6])
FIRST_STEPS = 10 if MODEL.startswith("mnist") else 2  # before the clock starts, where more than one step is timed
IS_MNIST = MODEL.startswith("mnist")
SIDE = 128  # of made-up pictures


def read_idx(name, header):
    path = os.path.join(DATA, name)
    with gzip.open(path + ".gz") if os.path.exists(path + ".gz") else open(path, "rb") as file:
        return numpy.frombuffer(file.read(), numpy.uint8, offset=header)


def mnist():
    """Pictures [60000][28][28], 0 to 1, and labels."""
    pictures = read_idx("train-images-idx3-ubyte", 16).reshape(-1, 28, 28)
    return pictures.astype("float32") / 255, read_idx("train-labels-idx1-ubyte", 8).astype("int64")


def made_up(channels_last=True):
    shape = (BATCH, SIDE, SIDE, 3) if channels_last else (BATCH, 3, SIDE, SIDE)
    return numpy.random.default_rng(0).random(shape, "float32"), numpy.arange(BATCH) % 10


def report(first_step_ended, seconds):
    """`seconds` of STEPS steps."""
    print(json.dumps({"first_step_ended": first_step_ended, "step": seconds / STEPS}))


class Clock:
    """Notes when the first step has ended."""

    def __init__(self):
        self.first = None

    def step_ended(self):
        if self.first is None:
            self.first = time.time()
