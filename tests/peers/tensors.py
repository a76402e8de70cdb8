"""Tensors in safetensors files, F32 alone: an independent reader and writer of few lines."""
import json
import struct

import numpy as np


def save_file(tensors, path):
    """The header's length, the header, the numbers."""
    header, data = {}, []
    begin = 0
    for name, values in tensors.items():
        raw = np.ascontiguousarray(values, np.float32).tobytes()
        header[name] = {"dtype": "F32", "shape": list(values.shape), "data_offsets": [begin, begin + len(raw)]}
        data.append(raw)
        begin += len(raw)
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(data))


def load_file(path):
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        data = file.read()
    header.pop("__metadata__", None)
    return {name: np.frombuffer(data[slice(*entry["data_offsets"])], np.float32).reshape(entry["shape"])
            for name, entry in header.items()}
