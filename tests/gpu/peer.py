#!/usr/bin/env python3
"""Training throughputs of PyTorch's: peer.py MODEL BATCH SIDE MODE... [--steps N] [--device D] [--seconds S].

MODEL: mnist-cnn, mnist-convnet, resnet50 (v1.5), resnet50v2, resnet152v2; MODE: eager, compile, graph (the whole step
in one CUDA graph), compile-graph. Channels last, for MNIST's networks contiguous, too, whichever is faster; bf16 autocast on
a GPU, TF32 where fp32 is left, SGD with momentum for the residual networks, pictures that are on the device already. For each
mode a line of JSON, which goes to RESULTS-MODE.json, too: mode, images_per_second, layout, loss; of several lines the last
counts. A mode that fails is said and left out, and the exit code is 1."""
import argparse
import contextlib
import gc
import json
import sys
import time

import torch
from resnet_v2 import resnet_v2
from torch import nn
from torch.nn import functional


class Block(nn.Module):
    """One bottleneck of ResNet v1.5: the stride in the 3x3."""

    def __init__(self, channels, filters, stride):
        super().__init__()
        self.project = None
        if stride > 1 or channels != 4 * filters:
            self.project = nn.Sequential(nn.Conv2d(channels, 4 * filters, 1, stride, bias=False),
                                         nn.BatchNorm2d(4 * filters))
        self.way = nn.Sequential(
            nn.Conv2d(channels, filters, 1, bias=False), nn.BatchNorm2d(filters), nn.ReLU(inplace=True),
            nn.Conv2d(filters, filters, 3, stride, padding=1, bias=False), nn.BatchNorm2d(filters),
            nn.ReLU(inplace=True), nn.Conv2d(filters, 4 * filters, 1, bias=False), nn.BatchNorm2d(4 * filters))

    def forward(self, x):
        return functional.relu(self.way(x) + (x if self.project is None else self.project(x)))


def resnet(counts, classes):
    parts, channels = [nn.Conv2d(3, 64, 7, 2, padding=3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True),
                       nn.MaxPool2d(3, 2, padding=1)], 64
    for stack, count in enumerate(counts):
        for i in range(count):
            parts.append(Block(channels, 64 << stack, 2 if stack > 0 and i == 0 else 1))
            channels = 256 << stack
    return nn.Sequential(*parts, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes))


def make_model(name, classes):
    if name == "mnist-cnn":
        return nn.Sequential(nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Flatten(), nn.Linear(21632, 128), nn.ReLU(),
                             nn.Linear(128, 10))
    if name == "mnist-convnet":
        return nn.Sequential(nn.Conv2d(1, 32, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 5), nn.ReLU(),
                             nn.MaxPool2d(2), nn.Flatten(), nn.Linear(1024, 10))
    if name == "resnet50":
        return resnet((3, 4, 6, 3), classes)
    return resnet_v2({"resnet50v2": (3, 4, 6, 3), "resnet152v2": (3, 8, 36, 3)}[name], classes)


class Training:
    """A model and its step, eager or compiled; all of it in one stream, in which the step can then be captured."""

    def __init__(self, options, compiled, layout):
        self.device = torch.device(options.device)
        self.on_gpu = self.device.type == "cuda"
        self.stream = torch.cuda.Stream() if self.on_gpu else None
        is_mnist = options.model.startswith("mnist")
        classes = 10 if is_mnist else options.classes
        torch.manual_seed(0)
        self.model = make_model(options.model, classes).to(self.device, memory_format=layout)
        self.compute = torch.compile(self.loss_of) if compiled else self.loss_of
        momentum = 0.0 if is_mnist else 0.9
        # Random labels cannot be learnt, and a loss that grows without bound takes other ways through the processor.
        self.optimizer = torch.optim.SGD(self.model.parameters(), 1e-6, momentum=momentum,
                                         **({"fused": True} if self.on_gpu else {}))
        shape = (options.batch, 1 if is_mnist else 3, options.side, options.side)
        # as hpc-train has them: in the type that is computed in
        values = torch.bfloat16 if self.on_gpu else torch.float32
        self.pictures = torch.rand(shape, device=self.device, dtype=values).contiguous(memory_format=layout)
        self.labels = torch.randint(classes, (options.batch,), device=self.device)
        self.loss = None
        self.wait()

    def loss_of(self, pictures, labels):
        return functional.cross_entropy(self.model(pictures), labels)

    def step(self):
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.on_gpu):
            loss = self.compute(self.pictures, self.labels)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
        self.loss = loss.detach()

    def capture(self):
        """A step as one CUDA graph; those before it were the warm-up that PyTorch's manual wants."""
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=self.stream):
            self.step()
        return graph.replay

    def wait(self):
        if self.on_gpu:
            torch.cuda.synchronize()


ROUND_SECONDS = 0.1  # at least, that the queue's filling and draining counts little


def rate_of(options, training, step):
    """The median of rounds, images/s."""
    training.wait()
    rates, began, count = [], time.perf_counter(), options.steps or 10
    while True:
        start = time.perf_counter()
        for _ in range(count):
            step()
        training.wait()
        taken = time.perf_counter() - start
        if not options.steps and taken < ROUND_SECONDS and not rates:
            count = int(count * 1.5 * ROUND_SECONDS / taken) + 1
            continue
        rates.append(options.batch * count / taken)
        if options.steps or (len(rates) >= 3 and time.perf_counter() - began > options.seconds):
            return sorted(rates)[len(rates) // 2]


def measure(options, compiled, layout):
    """Yields what is found of each mode that is asked for: as it is, then the step in a graph."""
    plain, graph = ("compile", "compile-graph") if compiled else ("eager", "graph")
    training = Training(options, compiled, LAYOUTS[layout])
    with torch.cuda.stream(training.stream) if training.on_gpu else contextlib.nullcontext():
        for _ in range(1 if options.steps or options.warm else 10):
            training.step()
        training.wait()
        for mode in (plain, graph) if not options.warm else ():
            if mode in options.mode:
                step = training.capture() if mode == graph else training.step
                rate = rate_of(options, training, step)
                if not torch.isfinite(training.loss):
                    raise ArithmeticError(f"{mode}: the loss is {float(training.loss)}")
                yield {"mode": mode, "images_per_second": rate, "layout": layout, "loss": float(training.loss)}


def keep_best(options, best, found):
    before = best.get(found["mode"])
    if before is None or before["images_per_second"] < found["images_per_second"]:
        best[found["mode"]] = found
        print(json.dumps(found), flush=True)
        if options.results:
            with open(f"{options.results}-{found['mode']}.json", "w") as file:
                json.dump(found, file)


def keep_no_choice():
    """What Inductor chooses by measuring, while others use the GPU, must not stay."""
    try:
        from torch._inductor.runtime.autotune_cache import AutotuneCache
        AutotuneCache.save = lambda *_arguments, **_more: None
    except ImportError as error:  # another PyTorch: it is found out anew then, perhaps
        print(f"choices made while compiling stay: {error}", file=sys.stderr)


LAYOUTS = {"channels-last": torch.channels_last, "contiguous": torch.contiguous_format}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("batch", type=int)
    parser.add_argument("side", type=int)
    parser.add_argument("mode", nargs="+", choices=("eager", "compile", "graph", "compile-graph"))
    parser.add_argument("--steps", type=int, default=0, help="0: as many as fit in --seconds")
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--classes", type=int, default=1000)
    parser.add_argument("--warm", action="store_true", help="one step alone, for compile's cache on disk")
    parser.add_argument("--results", help="what the files' names begin with")
    options = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    torch.backends.cudnn.benchmark = not options.warm
    torch.backends.cudnn.benchmark_limit = 0  # of all algorithms, not of ten
    if options.warm:
        keep_no_choice()
    best, failed = {}, False
    # One channel may be the faster one the other way.
    layouts = list(LAYOUTS) if options.model.startswith("mnist") else ["channels-last"]
    for compiled in (True, False):  # the fastest first, should time run out
        if not any(mode.startswith("compile") == compiled for mode in options.mode):
            continue
        for layout in layouts:
            try:
                for found in measure(options, compiled, layout):
                    keep_best(options, best, found)
            except Exception as error:  # the others may do
                print(f"{'compiled' if compiled else 'eager'}, {layout}: {error}", file=sys.stderr, flush=True)
                failed = True
            gc.collect()
            torch.compiler.reset()
            if options.device == "cuda":
                torch.cuda.empty_cache()
    sys.exit(failed)


main()
