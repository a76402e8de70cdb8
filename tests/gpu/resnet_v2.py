"""Keras' ResNetV2 in PyTorch, layer by layer, as the benchmarks on CPUs and GPUs compare it."""
from torch import nn
from torch.nn import functional


class Block(nn.Module):
    """One bottleneck of ResNetV2: pre-activation, the stride in the 3x3."""

    def __init__(self, channels, filters, stride, project):
        super().__init__()
        self.stride = stride
        self.norm = nn.BatchNorm2d(channels, eps=1.001e-5, momentum=0.01)
        self.project = nn.Conv2d(channels, 4 * filters, 1, stride) if project else None
        self.first = nn.Conv2d(channels, filters, 1, bias=False)
        self.first_norm = nn.BatchNorm2d(filters, eps=1.001e-5, momentum=0.01)
        self.second = nn.Conv2d(filters, filters, 3, stride, padding=1, bias=False)
        self.second_norm = nn.BatchNorm2d(filters, eps=1.001e-5, momentum=0.01)
        self.third = nn.Conv2d(filters, 4 * filters, 1)

    def forward(self, x):
        active = functional.relu(self.norm(x))
        if self.project is not None:
            x = self.project(active)
        elif self.stride > 1:
            x = functional.max_pool2d(x, 1, self.stride)
        y = functional.relu(self.first_norm(self.first(active)))
        y = functional.relu(self.second_norm(self.second(y)))
        return x + self.third(y)


def resnet_v2(blocks, classes=10):
    parts, channels = [nn.Conv2d(3, 64, 7, 2, padding=3), nn.ConstantPad2d(1, 0.0), nn.MaxPool2d(3, 2)], 64
    for stack, count in enumerate(blocks):
        filters = 64 << stack
        for i in range(count):
            last = i == count - 1 and stack < 3
            parts.append(Block(channels, filters, 2 if last else 1, i == 0))
            channels = 4 * filters
    norm = nn.BatchNorm2d(channels, eps=1.001e-5, momentum=0.01)
    return nn.Sequential(*parts, norm, nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes))
