"""cluster_peer_torch.py STEPS, started by srun --hpc-train: W1 by torch's DistributedDataParallel over gloo, made-up pictures, 64
per node; the first rank prints images per second of all, over the steps after ten to warm up."""
import datetime
import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

WARM_UP, PER_NODE = 10, 64
steps = int(sys.argv[1])
torch.set_num_threads(1)
dist.init_process_group("gloo", init_method="env://", timeout=datetime.timedelta(seconds=120))
model = DistributedDataParallel(nn.Sequential(
    nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Flatten(), nn.Linear(21632, 128), nn.ReLU(), nn.Linear(128, 10)))
optimizer = torch.optim.SGD(model.parameters(), 1e-6)
criterion = nn.CrossEntropyLoss()
pictures, labels = torch.rand(PER_NODE, 1, 28, 28), torch.arange(PER_NODE) % 10
for step in range(WARM_UP + steps):
    if step == WARM_UP:
        dist.barrier()
        began = time.perf_counter()
    optimizer.zero_grad()
    criterion(model(pictures), labels).backward()
    optimizer.step()
dist.barrier()
if dist.get_rank() == 0:
    print("images_per_second %.1f" % (PER_NODE * dist.get_world_size() * steps / (time.perf_counter() - began)), flush=True)
dist.destroy_process_group()
