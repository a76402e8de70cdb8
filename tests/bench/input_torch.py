"""input_torch.py FOLDER SIDE BATCH SECONDS: images per second of torch's DataLoader with torchvision, JPEG files to
batches of floats: the best of Pillow and torchvision's own decoder, and of several numbers of workers."""
import os
import sys
import time

import torch
from torchvision import datasets, io
from torchvision.transforms import v2

folder, side, batch, seconds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
cores = len(os.sched_getaffinity(0))
torch.set_num_threads(1)
pillow = dict(transform=v2.Compose([v2.Resize((side, side)), v2.ToImage(), v2.ToDtype(torch.float32, scale=True)]))
tensors = dict(
    loader=lambda path: io.decode_image(path, mode="RGB"),
    transform=v2.Compose([v2.ToDtype(torch.float32, scale=True), v2.Resize((side, side), antialias=False)]))


def cpu_seconds():
    """Of this process and its workers, who are its children."""
    total = time.process_time()
    for child in open(f"/proc/self/task/{os.getpid()}/children").read().split():
        fields = open(f"/proc/{child}/stat").read().rsplit(")", 1)[1].split()
        total += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return total


def measure(how, workers, seconds):
    data = datasets.ImageFolder(os.path.join(folder, "train"), **how)
    loader = torch.utils.data.DataLoader(data, batch_size=batch, shuffle=True, num_workers=workers,
                                         prefetch_factor=2 if workers else None)
    images, began = 0, None
    for number, (pictures, _) in enumerate(loader):
        now = time.monotonic()
        if number == 4:
            began, cpu = now, cpu_seconds()
        elif number > 4:
            images += len(pictures)
            if now - began > seconds:
                break
    return images / (now - began), images / (cpu_seconds() - cpu)


choices = [(how, workers) for how in (pillow, tensors) for workers in (0, cores, 2 * cores)]
if os.environ.get("HPC_TRAIN_TORCH_CHOICE"):
    best = int(os.environ["HPC_TRAIN_TORCH_CHOICE"])
else:
    rates = [measure(how, workers, 1)[0] for how, workers in choices]
    best = max(range(len(choices)), key=rates.__getitem__)
    print(f"choice {best}:", " ".join(f"{rate:.0f}" for rate in rates), file=sys.stderr)
print("{:.0f} {:.0f}".format(*measure(*choices[best], seconds)))
