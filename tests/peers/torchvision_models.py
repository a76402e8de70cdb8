"""The state_dict of torchvision's models as --weights of the built-in models in its form: the same predictions, of bytes that are
normalized as its weights for ImageNet expect it; of the same networks with Keras' names, too; and what does not fit is an error
that says what. With HPC_TRAIN_LONG the large models. Prints TAP.

usage: torchvision_models.py HPC_TRAIN [MODEL...]"""
import json
import os
import struct
import subprocess
import sys
import tempfile

import numpy as np
import torch
import torchvision

from tensors import load_file

PICTURES, CLASSES = 3, 7
HPC_TRAIN, WANTED = sys.argv[1], sys.argv[2:]
LONG = os.environ.get("HPC_TRAIN_LONG", "0") not in ("", "0")
MEAN, DEVIATION = np.float32([0.485, 0.456, 0.406]), np.float32([0.229, 0.224, 0.225])

MODELS = [  # of torchvision, here, size of the pictures (an even one and an odd one are padded otherwise), slow
    ("resnet18", "resnet18", (64, 71), False),
    ("mobilenet_v2", "mobilenetv2", (64, 71), False),
    ("mobilenet_v3_small", "mobilenetv3small", (64, 71), False),
    ("efficientnet_b0", "efficientnetb0", (70, 65), False),
    ("resnet50", "resnet50", (64, 64), False),
    ("densenet121", "densenet121", (64, 71), True),
    ("inception_v3", "inceptionv3", (96, 91), True),
    ("resnet34", "resnet34", (64, 64), True),
    ("resnet101", "resnet101", (64, 64), True),
    ("resnet152", "resnet152", (64, 64), True),
    ("vgg16", "vgg16", (224, 255), True),
    ("vgg19", "vgg19", (224, 224), True),
]
KERAS_TOO = ("resnet50", "densenet121", "vgg16", "vgg19")  # the same network, without normalization of pixels


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
        file.write(struct.pack("<Q", len(text)) + text)
        file.writelines(data)


def run(command, model, size, weights, *options):
    return subprocess.run([HPC_TRAIN, command, "--model", model, "--resize", f"{size[0]}x{size[1]}", "--weights", weights,
                           "--device", "cpu", *options], capture_output=True, text=True, check=False)


def predict(model, size, weights, classes=CLASSES):
    return run("predict", model, size, weights, "--classes", str(classes), "--data", "pictures.npz", "--top-k", str(CLASSES),
               "--output", "ours.jsonl")


def settle(net, size):
    """Weights of every kind, and moving statistics near those of pictures, so that these are told apart at the end."""
    pictures = torch.from_numpy((draw_pictures(size) - MEAN) / DEVIATION).permute(0, 3, 1, 2)
    norms = [module for module in net.modules() if isinstance(module, torch.nn.BatchNorm2d)]
    with torch.no_grad():
        for name, value in net.named_parameters():
            if name.endswith("bias"):
                value.normal_(0, 0.1)
            elif value.dim() == 1:
                value.uniform_(0.3, 0.9)
            elif value.dim() == 2:
                value.normal_(0, (2 / value.shape[1]) ** 0.5)
        for norm in norms:
            norm.train()
            norm.momentum = 1
        if norms:
            net(pictures)
        for norm in norms:
            norm.eval()
            norm.running_var += norm.running_var.mean()  # rounding of nearly constant channels is not made larger
            norm.running_var *= torch.empty_like(norm.running_var).uniform_(0.25, 0.75)
            norm.running_mean += norm.running_var.sqrt() * torch.empty_like(norm.running_mean).normal_(0, 0.2)
        last = [module for module in net.modules() if isinstance(module, torch.nn.Linear)][-1]
        logits = net(pictures)
        last.weight /= 2 * logits.std()  # probabilities that are neither 0 nor 1
    return net, net.state_dict()


def make(kind, size):
    torch.manual_seed(1)
    options = {"transform_input": True, "init_weights": False} if kind == "inception_v3" else {}
    return settle(getattr(torchvision.models, kind)(num_classes=CLASSES, **options).eval(), size)


def draw_pictures(size):
    """Large patches and noise."""
    random, patches = np.random.default_rng(2), np.ones((-(-size[1] // 3), -(-size[0] // 3), 1))
    pictures = np.stack([np.kron(random.uniform(0, 200, (3, 3, 3)), patches) for _ in range(PICTURES)])[:, :size[1], :size[0]]
    pictures = (pictures + random.uniform(0, 55, pictures.shape)).astype(np.uint8)
    labels = np.zeros(PICTURES, np.uint8)
    np.savez("pictures.npz", x_train=pictures, y_train=labels, x_test=pictures, y_test=labels)
    return pictures.astype(np.float32) / np.float32(255)


def theirs(net, pictures):
    with torch.no_grad():
        return torch.softmax(net(torch.from_numpy(pictures).permute(0, 3, 1, 2)), 1).numpy()


def ours():
    found = np.zeros((PICTURES, CLASSES))
    with open("ours.jsonl", encoding="utf-8") as file:
        for row in map(json.loads, file):
            for one in row["top"]:
                found[row["index"], one["class"]] = one["probability"]
    return found


def check_same(model, size, expected, weights):
    """Predictions with a file of weights; what is said on the way."""
    done = predict(model, size, weights)
    assert done.returncode == 0, done.stderr
    apart = np.ptp(expected, axis=0).max()
    assert apart > 3e-3 and expected.max() < 0.999, f"all pictures are alike: {apart:.1e}, {expected.max()}"
    difference = np.abs(ours() - expected).max()
    assert difference < 1e-5, f"largest difference {difference:.1e}"
    return f"largest difference {difference:.1e}", done.stderr


def check_model(model, size, net, state):
    pictures = draw_pictures(size)
    save(state, "torch.safetensors")
    seen, said = check_same(model + "-torchvision", size, theirs(net, (pictures - MEAN) / DEVIATION), "torch.safetensors")
    assert "warning" not in said, said
    if model not in KERAS_TOO:
        return seen
    other, said = check_same(model, size, theirs(net, pictures), "torch.safetensors")
    assert f"lacks the normalization of pixels of those for ImageNet, which --model {model}-torchvision has" in said, said
    return f"{seen}; with Keras' names, of pixels of 0 to 1: {other}"


def check_own_files(model, size, net, state):
    """Saved again, it has names of layers here, and is no state_dict."""
    expected = theirs(net, (draw_pictures(size) - MEAN) / DEVIATION)
    save(state, "torch.safetensors")
    for name in ("again.safetensors", "again.weights.h5"):
        done = subprocess.run([HPC_TRAIN, "export", "--model", model, "--classes", str(CLASSES), "--resize", f"{size[0]}x{size[1]}",
                               "--weights", "torch.safetensors", "--output", name], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        check_same(model, size, expected, name)
    return "safetensors and .weights.h5"


def check_refused(state, model, size, words):
    save(state, "other.safetensors")
    done = predict(model, size, "other.safetensors")
    assert done.returncode == 65, (done.returncode, done.stderr)
    assert words in done.stderr, done.stderr
    return words


def check_other_head(state, model, size, head):
    """All but the last layer is loaded for another number of classes, if that is wanted; a step changes moving statistics."""
    save(state, "torch.safetensors")
    done = predict(model, size, "torch.safetensors", classes=5)
    words = f'tensor "{head}/kernel" does not have the model\'s shape'
    assert done.returncode == 65 and words in done.stderr, done.stderr
    done = run("fit", model, size, "torch.safetensors", "--classes", "5", "--skip-mismatch", "--data", "synthetic:4", "--batch-size",
               "4", "--epochs", "1", "--learning-rate", "1e-30", "--verbose", "0", "--save-weights", "head.safetensors")
    assert done.returncode == 0, done.stderr
    assert f"not loaded, with initial values: {head} (kernel: another shape)" in done.stderr, done.stderr
    count = 0
    for name, value in load_file("head.safetensors").items():
        if name.endswith("/kernel") and value.ndim == 4 and not name.startswith(head):
            count += 1
            kernel = state[name.replace("/kernel", ".weight")].numpy()
            assert np.allclose(value, kernel.transpose(2, 3, 1, 0), 0, 1e-20) or kernel.shape[1] == 1, name
    assert count > 10, count
    return f"{count} kernels are the file's"


def with_old_names(state):
    """As DenseNet's weights for ImageNet are downloaded."""
    new = {}
    for name, value in state.items():
        for word in ("norm1", "norm2", "conv1", "conv2"):
            if ".denselayer" in name:
                name = name.replace(f".{word}.", f".{word[:4]}.{word[4]}.")
        new[name] = value
    return new


def check_old_names(size, net, state):
    expected = theirs(net, (draw_pictures(size) - MEAN) / DEVIATION)
    old = with_old_names(state)
    assert "features.denseblock1.denselayer1.norm.1.weight" in old
    save(old, "old.safetensors")
    return check_same("densenet121-torchvision", size, expected, "old.safetensors")[0]


def checks_of_resnet(net, state, size):
    form = "resnet18-torchvision"
    missing = {name: value for name, value in state.items() if name != "layer2.0.downsample.1.bias"}
    shape = state | {"fc.weight": state["fc.weight"][:, :5]}
    more = state | {"layer5.0.conv1.weight": state["conv1.weight"]}
    yield "a missing tensor", check_refused, (missing, form, size, 'tensor "layer2.0.downsample.1/beta" is missing')
    yield "another shape", check_refused, (shape, form, size, 'tensor "fc/kernel" does not have the model\'s shape 512x7')
    yield "an unknown tensor", check_refused, (more, form, size, 'the model has no "layer5.0.conv1.weight"')
    for other in ("resnet34-torchvision", "resnet50", "resnet50v2", "mobilenetv2-torchvision"):
        yield f"given to {other}", check_refused, (state, other, size, f"which --model {form} takes; this model is {other}")
    yield "another number of classes", check_other_head, (state, form, size, "fc")
    yield "weights are saved and read", check_own_files, (form, size, net, state)


def checks_of(kind, model, size):
    net, state = make(kind, size)
    yield "predictions", check_model, (model, size, net, state)
    if kind == "resnet18":
        yield from checks_of_resnet(net, state, size)
    elif model not in KERAS_TOO and not kind.startswith("resnet"):
        yield "given to Keras' form", check_refused, (state, model, size, f"which --model {model}-torchvision takes")
        yield "weights are saved and read", check_own_files, (model + "-torchvision", size, net, state)
    elif kind == "densenet121":
        yield "names of older files", check_old_names, (size, net, state)
    elif kind == "vgg16":
        for side in ((64, 64), (32, 49 * 32)):
            yield f"pictures of {side[0]}x{side[1]}", check_refused, (state, model + "-torchvision", side, "give --resize 224x224")


def main():
    number, failed = 0, 0
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for kind, model, size, slow in MODELS:
            if (kind not in WANTED) if WANTED else (slow and not LONG):
                continue
            for name, check, arguments in checks_of(kind, model, size):
                try:
                    good, text = True, check(*arguments)
                except (AssertionError, KeyError) as error:
                    good, text = False, str(error).replace("\n", " ")
                number += 1
                failed += not good
                print(f"{'ok' if good else 'not ok'} {number} - {kind}: {name}: {text}", flush=True)
        os.chdir("/")
    print(f"1..{number}")
    return failed > 0


sys.exit(main())
