"""Models beside PyTorch's, in float64: the same weights, the same batches; predictions, every gradient, the moving
statistics and the losses of 20 steps of SGD with momentum. PyTorch has other conventions than Keras and we where
a layer is not symmetric: of padding that is one longer behind than before, of windows that stand out of the
picture, of a moving average's momentum and variance. Here they are translated from what PyTorch's manual says,
by nothing that came from Keras. Prints TAP. HPC_TRAIN_TEST_BACKEND names other backends than cpu and ref.

usage: nn_torch.py NN_MODELS"""
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
import torch
import torch.nn.functional as F

from tensors import load_file, save_file

BATCH, STEPS, RATE, MOMENTUM, CLASSES = 6, 20, 0.02, 0.9, 5


# ---- a model: (name, class, its configuration, the layers that it reads) ----


class Network:
    def __init__(self, shape):
        self.shape, self.layers = shape, []

    def add(self, kind, *reads, **config):
        """Reads the layer before it unless told otherwise; returns its name."""
        name = f"layer{len(self.layers)}"
        before = self.layers[-1][0] if self.layers else "image"
        self.layers.append((name, kind, config, reads or (before,)))
        return name

    def to_json(self):
        image = {"class_name": "InputLayer", "name": "image", "inbound_nodes": [],
                 "config": {"name": "image", "batch_shape": [None, *self.shape]}}
        layers = [{"class_name": kind, "name": name, "config": {"name": name, **config},
                   "inbound_nodes": [[[read, 0, 0, {}] for read in reads]]}
                  for name, kind, config, reads in self.layers]
        return json.dumps({"class_name": "Functional", "config": {
            "name": "network", "layers": [image] + layers, "input_layers": [["image", 0, 0]],
            "output_layers": [[self.layers[-1][0], 0, 0]]}})


def pair(value):
    return (value, value) if isinstance(value, int) else tuple(value)


def same_padding(size, window, strides, dilation=(1, 1)):
    """As many windows as strides, the last perhaps not whole; (left, right, top, bottom) as F.pad wants it."""
    padding = []
    for n, k, s, d in zip(size, window, strides, dilation):
        total = max((-(-n // s) - 1) * s + (k - 1) * d + 1 - n, 0)
        padding = [total // 2, total - total // 2] + padding
    return padding


class Convolution:
    def __init__(self, config, channels, depthwise):
        window = pair(config["kernel_size"])
        filters = config.get("depth_multiplier", 1) if depthwise else config["filters"]
        self.config, self.depthwise = config, depthwise
        self.shapes = {"kernel": (*window, channels, filters)}
        if config.get("use_bias", True):
            self.shapes["bias"] = (channels * filters if depthwise else filters,)

    def __call__(self, x, weights, _training):
        kernel = weights["kernel"]
        strides, dilation = (pair(self.config.get(key, 1)) for key in ("strides", "dilation_rate"))
        if self.config.get("padding") == "same":
            x = F.pad(x, same_padding(x.shape[2:], kernel.shape[:2], strides, dilation))
        groups = kernel.shape[2] if self.depthwise else 1
        kernel = (kernel.permute(2, 3, 0, 1).flatten(0, 1)[:, None] if self.depthwise
                  else kernel.permute(3, 2, 0, 1))
        return F.conv2d(x, kernel, weights.get("bias"), strides, 0, dilation, groups)


class Pooling:
    shapes = {}

    def __init__(self, config, largest):
        self.config, self.largest = config, largest

    def __call__(self, x, _weights, _training):
        window = pair(self.config["pool_size"])
        strides = pair(self.config.get("strides", window))
        padding = [0] * 4
        if self.config.get("padding") == "same":
            padding = same_padding(x.shape[2:], window, strides)
        if padding[0] == padding[2] == 0:  # nothing before the picture: windows out of it at the end at most
            pool = F.max_pool2d if self.largest else F.avg_pool2d
            return pool(x, window, strides, ceil_mode=any(padding))
        if self.largest:
            return F.max_pool2d(F.pad(x, padding, value=-torch.inf), window, strides)
        inside = F.pad(torch.ones_like(x), padding)
        return F.avg_pool2d(F.pad(x, padding), window, strides) / F.avg_pool2d(inside, window, strides)


class Normalization:
    def __init__(self, config, channels):
        self.momentum, self.epsilon = config.get("momentum", 0.99), config.get("epsilon", 1e-3)
        self.shapes = {name: (channels,) for name in ("gamma", "beta", "moving_mean", "moving_variance")}

    def __call__(self, x, weights, training):
        mean, variance = weights["moving_mean"].clone(), weights["moving_variance"].clone()
        y = F.batch_norm(x, mean, variance, weights["gamma"], weights["beta"], training, 1 - self.momentum,
                         self.epsilon)
        if training:  # PyTorch moves towards the sum of squares by n - 1, not by n
            n, kept = x.numel() // x.shape[1], self.momentum * weights["moving_variance"]
            weights["moving_mean"].copy_(mean)
            weights["moving_variance"].copy_(kept + (variance - kept) * (n - 1) / n)
        return y


class Dense:
    def __init__(self, config, channels):
        self.shapes = {"kernel": (channels, config["units"]), "bias": (config["units"],)}

    def __call__(self, x, weights, _training):
        return x @ weights["kernel"] + weights["bias"]


class Plain:
    shapes = {}

    def __init__(self, function):
        self.function = function

    def __call__(self, *inputs):
        return self.function(*inputs[:-2])


def layer_of(kind, config, channels):
    if kind == "Add":
        return Plain(lambda a, b: a + b)
    if kind == "Activation":
        return Plain(F.relu)
    if kind == "Flatten":
        return Plain(lambda x: x.permute(0, 2, 3, 1).flatten(1))  # channels are the last for us
    if kind == "GlobalAveragePooling2D":
        return Plain(lambda x: x.mean(dim=(2, 3)))
    if kind == "ZeroPadding2D":
        return Plain(lambda x: F.pad(x, config["padding"][1] + config["padding"][0]))
    if kind.endswith("Conv2D"):
        return Convolution(config, channels, kind == "DepthwiseConv2D")
    if kind.endswith("Pooling2D"):
        return Pooling(config, kind == "MaxPooling2D")
    return {"BatchNormalization": Normalization, "Dense": Dense}[kind](config, channels)


class Torch:
    """The network in PyTorch, with random weights of float32's precision."""

    def __init__(self, network, random):
        self.network, self.layers, self.weights = network, {}, {}
        values = {"image": torch.zeros((1, network.shape[2], *network.shape[:2]), dtype=torch.float64)}
        for name, kind, config, reads in network.layers:
            layer = self.layers[name] = layer_of(kind, config, values[reads[0]].shape[1])
            for part, shape in layer.shapes.items():
                value = (random.uniform(0.7, 1.3, shape) if part in ("gamma", "moving_variance") else
                         random.normal(0, 0.1 if len(shape) < 2 else np.prod(shape[:-1]) ** -0.5, shape))
                value = torch.tensor(value.astype(np.float32), dtype=torch.float64)
                self.weights[f"{name}/{part}"] = value.requires_grad_(not part.startswith("moving"))
            with torch.no_grad():
                values[name] = self.run_layer(name, reads, values, False)
        self.first = {name: value.detach().numpy().astype(np.float32) for name, value in self.weights.items()}

    def run_layer(self, name, reads, values, training):
        weights = {part: self.weights[f"{name}/{part}"] for part in self.layers[name].shapes}
        return self.layers[name](*(values[read] for read in reads), weights, training)

    def __call__(self, x, training):
        values = {"image": x.permute(0, 3, 1, 2)}
        for name, _, _, reads in self.network.layers:
            values[name] = self.run_layer(name, reads, values, training)
        return values[self.network.layers[-1][0]]

    def train(self, x, y):
        sgd = torch.optim.SGD([w for w in self.weights.values() if w.requires_grad], RATE, MOMENTUM)
        x = torch.tensor(x, dtype=torch.float64)
        y = torch.tensor(y, dtype=torch.int64)
        result = {"predictions": self(x[0], False).detach().numpy(), "losses": []}
        for t, (pictures, labels) in enumerate(zip(x, y)):
            outputs = self(pictures, True)
            loss = F.cross_entropy(outputs, labels)
            sgd.zero_grad()
            loss.backward()
            result["losses"].append(loss.item())
            if t == 0:
                result["outputs"] = outputs.detach().numpy()
                result["gradients"] = {name: (w.grad if w.requires_grad else w).numpy().copy()
                                       for name, w in self.weights.items()}
            sgd.step()
        result["last"] = {name: w.detach().numpy() for name, w in self.weights.items()}
        return result


# ---- the cases ----


def around(*layers, shape=(9, 10, 3)):
    """Between a convolution, whose gradient is what the layers pass back, and a Dense that makes logits."""
    network = Network(shape)
    network.add("Conv2D", filters=6, kernel_size=[2, 2])
    for kind, config in layers:
        network.add(kind, **config)
    network.add("Flatten")
    network.add("Dense", units=CLASSES)
    return network


def residual():
    network = Network((11, 8, 3))
    x = network.add("Conv2D", filters=8, kernel_size=[3, 3], padding="same")
    for stride in (1, 2, 1):
        network.add("BatchNormalization", x, momentum=0.9, epsilon=1e-3)
        network.add("Activation", activation="relu")
        network.add("Conv2D", filters=8, kernel_size=[3, 3], strides=[stride, stride], padding="same", use_bias=False)
        network.add("BatchNormalization", epsilon=1e-5)
        network.add("Activation", activation="relu")
        y = network.add("Conv2D", filters=8, kernel_size=[3, 3], padding="same")
        if stride > 1:
            x = network.add("Conv2D", x, filters=8, kernel_size=[1, 1], strides=[stride, stride])
        x = network.add("Add", x, y)
    network.add("GlobalAveragePooling2D")
    network.add("Dense", units=CLASSES)
    return network


def cases():
    yield "small residual network", residual()
    for shape in ((9, 10, 3), (10, 9, 3)):  # what the layer reads is one smaller
        for padding in ("same", "valid"):
            of = f"of {shape[0] - 1}x{shape[1] - 1}, {padding}"
            yield f"Conv2D 3x4 by 2x3 {of}", around(("Conv2D", dict(
                filters=5, kernel_size=[3, 4], strides=[2, 3], padding=padding)), shape=shape)
            yield f"DepthwiseConv2D 3x3 by 2x2, multiplier 2, {of}", around(("DepthwiseConv2D", dict(
                kernel_size=[3, 3], strides=[2, 2], padding=padding, depth_multiplier=2)), shape=shape)
            for kind in ("MaxPooling2D", "AveragePooling2D"):
                for pool, strides in (([2, 2], [2, 2]), ([3, 2], [2, 3]), ([4, 4], [1, 1])):
                    yield f"{kind} {pool[0]}x{pool[1]} by {strides[0]}x{strides[1]} {of}", around((kind, dict(
                        pool_size=pool, strides=strides, padding=padding)), shape=shape)
    yield "Conv2D dilated 3x2, same", around(("Conv2D", dict(
        filters=4, kernel_size=[3, 4], dilation_rate=[3, 2], padding="same")))
    yield "ZeroPadding2D", around(("ZeroPadding2D", dict(padding=[[1, 0], [2, 3]])))
    yield "BatchNormalization", around(("BatchNormalization", dict(momentum=0.8, epsilon=1e-2)))
    yield "BatchNormalization's defaults and ReLU", around(("BatchNormalization", {}),
                                                           ("Activation", {"activation": "relu"}))


def ours(program, backend, network, weights, x, y):
    with tempfile.TemporaryDirectory() as folder:
        x.tofile(folder + "/inputs.f32")
        y.tofile(folder + "/labels.i32")
        save_file(weights, folder + "/weights.safetensors")
        with open(folder + "/model.json", "w") as file:
            file.write(network.to_json())
        command = [program, "model.json", folder, backend, str(BATCH), str(len(x)), str(RATE), str(MOMENTUM)]
        run = subprocess.run(command, capture_output=True, text=True)
        if run.returncode != 0:
            raise RuntimeError(run.stderr.strip())
        return {"losses": [float(loss) for loss in run.stdout.split()],
                "gradients": load_file(folder + "/gradients.safetensors"),
                "last": load_file(folder + "/last.safetensors"),
                **{kind: np.fromfile(f"{folder}/{kind}.f32", np.float32).reshape(BATCH, -1)
                   for kind in ("predictions", "outputs")}}


def apart(a, b, scale=None):
    return float(np.linalg.norm(np.asarray(a, np.float64) - b) / (scale or np.linalg.norm(b)))


def check(program, network, seed):
    random = np.random.default_rng(seed)
    peer = Torch(network, random)
    x = random.normal(0, 1, (STEPS, BATCH, *network.shape)).astype(np.float32)
    y = random.integers(0, CLASSES, (STEPS, BATCH)).astype(np.int32)
    truth = peer.train(x, y)
    good, seen = True, []
    for backend in os.environ.get("HPC_TRAIN_TEST_BACKEND", "cpu ref").split():
        mine = ours(program, backend, network, peer.first, x, y)
        assert mine["gradients"].keys() == truth["gradients"].keys()
        largest = {"outputs": max(apart(mine[what], truth[what]) for what in ("predictions", "outputs")), "gradients": 0,
                   "losses": float(np.abs(np.divide(mine["losses"], truth["losses"]) - 1).max()),
                   "last weights": 0}
        for name, gradient in truth["gradients"].items():
            scale, kernel = np.linalg.norm(gradient), truth["gradients"].get(name.replace("/bias", "/kernel"), 0)
            if scale < 1e-9 * np.linalg.norm(kernel):  # zero but for rounding, before BatchNormalization
                scale = np.linalg.norm(kernel)
            largest["gradients"] = max(largest["gradients"], apart(mine["gradients"][name], gradient, scale))
            largest["last weights"] = max(largest["last weights"], apart(mine["last"][name], truth["last"][name]))
        wider = 10 if backend == "cuda" else 1  # convolutions by transforms
        good = good and (largest["outputs"] < 1e-5 * wider and largest["gradients"] < 1e-4 * wider and
                         largest["losses"] < 1e-3 and largest["last weights"] < 1e-3)
        seen.append(f"{backend} " + ", ".join(f"{what} {value:.1e}" for what, value in largest.items()))
    return good, "; ".join(seen)


def main():
    torch.set_num_threads(1)
    number, failed = 0, 0
    for number, (name, network) in enumerate(cases(), 1):
        try:
            good, text = check(sys.argv[1], network, number)
        except (RuntimeError, AssertionError) as error:
            good, text = False, str(error).replace("\n", " ")
        failed += not good
        print(f"{'ok' if good else 'not ok'} {number} - {name}: {text}", flush=True)
    print(f"1..{number}")
    return failed > 0


sys.exit(main())
