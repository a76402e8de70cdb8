"""A checkpoint that hpc-train wrote, read with Python's safetensors, json and, where installed, xxhash. Prints TAP.

usage: checkpoint.py CHECKPOINT"""
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
from safetensors import safe_open
from safetensors.numpy import load_file

try:
    import xxhash
except ImportError:
    xxhash = None

count = 0


def ok(good, name):
    global count
    count += 1
    print("ok" if good else "not ok", count, "-", name)


def same(tensor, dtype, values):
    want = np.array(values, dtype)
    return tensor.dtype == want.dtype and tensor.shape == want.shape and tensor.tobytes() == want.tobytes()


with tempfile.TemporaryDirectory() as folder:
    ok(subprocess.run([sys.argv[1], folder]).returncode == 0, "a checkpoint is saved and exported")
    at = folder + "/step-0000000007/"
    first, second = (load_file(f"{at}part-0000{i}.safetensors") for i in range(2))
    ok(sorted(first) == ["bytes", "empty", "rows", "weights/f"], "the first part's names")
    ok(same(first["bytes"], "uint8", [0, 128, 255]), "U8")
    ok(same(first["weights/f"], "float32", [[1.5, -2, 3.25]]), "F32")
    ok(first["empty"].shape == (0, 3), "a tensor without rows")
    ok(same(second["integers"], "int64", [-2**63, 2**63 - 1]), "I64")
    ok(same(second["counter"], "uint64", 2**64 - 1), "U64, a scalar")
    ok(same(np.concatenate([first["rows"], second["rows"]]), "float64", [[1e300, -0.5], [3, 4]]), "F64 in slices")
    with safe_open(at + "part-00001.safetensors", "numpy") as part:
        ok(json.loads(part.metadata()["slices"]) == {"rows": [1, 2]}, "the metadata have the slices' rows")
    state = json.load(open(at + "state.json"))
    ok(state["class_names"] == ["cat", "dog"], "the state is what was given")
    manifest = json.load(open(at + "manifest.json"))
    ok(manifest["step"] == 7 and [f["name"] for f in manifest["files"]] == sorted(set(os.listdir(at)) - {"manifest.json"}),
       "the manifest has the step and all files")
    ok(all(os.path.getsize(at + f["name"]) == f["bytes"] for f in manifest["files"]), "with their sizes")
    if xxhash:
        ok(all(xxhash.xxh3_128_hexdigest(open(at + f["name"], "rb").read()) == f["xxh3"] for f in manifest["files"]),
           "with their XXH3-128")
        check = manifest.pop("check")
        ok(xxhash.xxh3_128_hexdigest(json.dumps(manifest, sort_keys=True, separators=(",", ":")).encode()) == check,
           "and its own, of compact JSON with sorted keys")
    exported = load_file(folder + "/exported.safetensors")
    ok(list(exported) == ["f"] and same(exported["f"], "float32", [[1.5, -2, 3.25]]), "the exported weights, without their prefix")
    with safe_open(folder + "/exported.safetensors", "numpy") as file:
        ok(json.loads(file.metadata()["class_names"]) == ["cat", "dog"], "with the class names")
print(f"1..{count}")
