"""One measurement for peers.py: MODEL eager|compile BATCH THREADS STEPS DATA, by PyTorch.

Pictures are channels-last; the MNIST cases index a shuffled order into tensors in memory, which is faster than a
DataLoader. The residual networks are Keras' V2 graphs, layer by layer; MobileNetV2, DenseNet121 and EfficientNetB0 are
torchvision's."""
import os
import sys
import time

import peer_lib as peer
import torch
from torch import nn
from torch.nn import functional

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "gpu"))
from resnet_v2 import resnet_v2  # noqa: E402

torch.set_num_threads(peer.THREADS)


def make_model():
    if peer.MODEL == "mnist-cnn":
        return nn.Sequential(nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Flatten(), nn.Linear(21632, 128), nn.ReLU(),
                             nn.Linear(128, 10)), 0.2
    if peer.MODEL == "mnist-convnet":
        return nn.Sequential(nn.Conv2d(1, 32, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 5), nn.ReLU(),
                             nn.MaxPool2d(2), nn.Flatten(), nn.Linear(1024, 10)), 0.01
    if peer.MODEL in ("mobilenetv2", "densenet121", "efficientnetb0"):
        import torchvision
        make = {"mobilenetv2": torchvision.models.mobilenet_v2, "densenet121": torchvision.models.densenet121,
                "efficientnetb0": torchvision.models.efficientnet_b0}[peer.MODEL]
        return make(weights=None, num_classes=10), 0.01
    blocks = {"resnet50v2": (3, 4, 6, 3), "resnet101v2": (3, 4, 23, 3), "resnet152v2": (3, 8, 36, 3)}[peer.MODEL]
    return resnet_v2(blocks), 0.01


def batches():
    if not peer.IS_MNIST:
        pictures, labels = peer.made_up(channels_last=False)
        pictures = torch.from_numpy(pictures).contiguous(memory_format=torch.channels_last)
        labels = torch.from_numpy(labels)
        while True:
            yield pictures, labels
    pictures, labels = (torch.from_numpy(array) for array in peer.mnist())
    pictures = pictures[:, None]
    while True:
        order = torch.randperm(len(labels))
        for at in range(0, len(order) - peer.BATCH + 1, peer.BATCH):
            chosen = order[at:at + peer.BATCH]
            yield pictures[chosen], labels[chosen]


def main():
    clock = peer.Clock()
    model, rate = make_model()
    model = model.to(memory_format=torch.channels_last)
    compute = torch.compile(model) if peer.MODE == "compile" else model
    optimizer = torch.optim.SGD(model.parameters(), rate)
    source = batches()

    def run(steps):
        total, correct = torch.zeros(()), torch.zeros((), dtype=torch.long)
        for _ in range(steps):
            pictures, labels = next(source)
            outputs = compute(pictures)
            loss = functional.cross_entropy(outputs, labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.detach()
            correct += (outputs.detach().argmax(1) == labels).sum()
            clock.step_ended()
        return float(total) / steps, int(correct)

    if peer.STEPS > 1:
        run(peer.FIRST_STEPS)
    began = time.perf_counter()
    run(peer.STEPS)
    peer.report(clock.first, time.perf_counter() - began)


main()
