"""The state_dict of torchvision's resnet50 as --weights of --model resnet50: the same predictions, and what does not fit is an
error that says what. Prints TAP.

usage: torchvision_resnet.py HPC_TRAIN"""
import json
import os
import struct
import subprocess
import sys
import tempfile

import numpy as np
import torch
import torchvision

PICTURES, CLASSES, SIDE = 3, 7, 64
HPC_TRAIN = sys.argv[1]


def save(tensors, path):
    """A safetensors file of float and integer tensors, as safetensors.torch writes it."""
    header, data, begin = {}, [], 0
    for name, value in tensors.items():
        raw = value.contiguous().numpy().tobytes()
        header[name] = {"dtype": "I64" if value.dtype == torch.int64 else "F32", "shape": list(value.shape),
                        "data_offsets": [begin, begin + len(raw)]}
        data.append(raw)
        begin += len(raw)
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(data))


def predict(weights, model="resnet50"):
    return subprocess.run([HPC_TRAIN, "predict", "--model", model, "--classes", str(CLASSES), "--resize", f"{SIDE}x{SIDE}",
                           "--weights", weights, "--data", "pictures.npz", "--top-k", str(CLASSES), "--output", "ours.jsonl"],
                          capture_output=True, text=True)


def draw():
    """Weights of every kind; some variances are so small that epsilon matters."""
    torch.manual_seed(1)
    net = torchvision.models.resnet50(num_classes=CLASSES).eval()
    state = net.state_dict()
    for name, value in state.items():
        if name.endswith("running_var"):
            value.uniform_(0.5, 1.5)
        elif name.endswith("running_mean") or name.endswith("bias"):
            value.normal_(0, 0.2)
        elif value.dim() == 1:
            value.uniform_(0.3, 0.9)
    state["bn1.running_var"].uniform_(1e-5, 1e-3)
    net.load_state_dict(state)
    return net, state


def check_predictions(net, state):
    pictures = np.random.default_rng(2).integers(0, 256, (PICTURES, SIDE, SIDE, 3)).astype(np.uint8)
    labels = np.zeros(PICTURES, np.uint8)
    np.savez("pictures.npz", x_train=pictures, y_train=labels, x_test=pictures, y_test=labels)
    save(state, "torch.safetensors")
    run = predict("torch.safetensors")
    assert run.returncode == 0, run.stderr
    ours = np.zeros((PICTURES, CLASSES))
    for line in open("ours.jsonl"):
        row = json.loads(line)
        for one in row["top"]:
            ours[row["index"], one["class"]] = one["probability"]
    x = torch.from_numpy(pictures.astype(np.float32) / np.float32(255)).permute(0, 3, 1, 2)
    with torch.no_grad():
        theirs = torch.softmax(net(x), 1).numpy()
    assert np.ptp(theirs, axis=0).max() > 1e-3, "all pictures are alike"
    difference = np.abs(ours - theirs).max()
    assert difference < 1e-5, f"largest difference {difference:.1e}"
    return f"largest difference {difference:.1e}"


def check_refused(state, model, words):
    save(state, "other.safetensors")
    run = predict("other.safetensors", model)
    assert run.returncode == 65, (run.returncode, run.stderr)
    assert words in run.stderr, run.stderr
    return words


def main():
    net, state = draw()
    missing = {name: value for name, value in state.items() if name != "layer2.0.downsample.1.bias"}
    shape = state | {"fc.weight": state["fc.weight"][:, :5]}
    more = state | {"layer5.0.conv1.weight": state["conv1.weight"]}
    checks = [("predictions", check_predictions, (net, state)),
              ("a missing tensor", check_refused, (missing, "resnet50", 'tensor "conv3_block1_0_bn/beta" is missing')),
              ("another shape", check_refused, (shape, "resnet50", 'tensor "predictions/kernel" does not have the model\'s shape 2048x7')),
              ("an unknown tensor", check_refused, (more, "resnet50", 'the model has no "layer5.0.conv1.weight"')),
              ("another model", check_refused, (state, "resnet50v2", "which --model resnet50 takes"))]
    print(f"1..{len(checks)}")
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for number, (name, check, arguments) in enumerate(checks, 1):
            try:
                good, text = True, check(*arguments)
            except AssertionError as error:
                good, text = False, str(error).replace("\n", " ")
            failed += not good
            print(f"{'ok' if good else 'not ok'} {number} - {name}: {text}", flush=True)
        os.chdir("/")
    return failed > 0


sys.exit(main())
