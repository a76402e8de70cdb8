"""Trains a small network on MNIST or Fashion-MNIST with PyTorch's DistributedDataParallel.

Nothing here is about Slurm or hpc-train: init_method="env://" reads MASTER_ADDR, MASTER_PORT, RANK and
WORLD_SIZE, which `srun --hpc-train` sets in every task. A run that was stopped goes on after its last whole
epoch, from the file checkpoint.pt. See mnist_torch.sbatch."""
import gzip
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

EPOCHS = int(os.environ.get("EPOCHS", 3))
CHECKPOINT = "checkpoint.pt"
STEPS = int(os.environ.get("STEPS", 0)) or None  # per epoch; all pictures when it is not given
BATCH_PER_RANK = 64


def read_idx(name):
    with gzip.open(os.path.join(os.environ.get("HPC_TRAIN_DATA", "."), name), "rb") as file:
        data = bytearray(file.read())
    shape = [int.from_bytes(data[4 + 4 * i:8 + 4 * i], "big") for i in range(data[3])]
    return torch.frombuffer(data, dtype=torch.uint8, offset=4 + 4 * data[3]).reshape(shape)


def save(epoch, model, optimizer):
    """After an epoch, by one rank: the last whole one stays until the next is whole."""
    torch.save({"epoch": epoch, "model": model.state_dict(), "optimizer": optimizer.state_dict()}, CHECKPOINT + ".new")
    os.replace(CHECKPOINT + ".new", CHECKPOINT)


def restore(model, optimizer, device):
    """The number of epochs done. One rank looks, as file systems may show another one something else."""
    found = [torch.load(CHECKPOINT, map_location=device)] if dist.get_rank() == 0 and os.path.exists(CHECKPOINT) else [None]
    dist.broadcast_object_list(found)
    if found[0] is None:
        return 0
    model.load_state_dict(found[0]["model"])
    optimizer.load_state_dict(found[0]["optimizer"])
    return found[0]["epoch"]


def main():
    gpu = torch.cuda.is_available()
    dist.init_process_group("nccl" if gpu else "gloo", init_method="env://")
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count()) if gpu else "cpu"
    torch.manual_seed(1)
    pictures = TensorDataset(read_idx("train-images-idx3-ubyte.gz")[:, None].float() / 255,
                             read_idx("train-labels-idx1-ubyte.gz").long())
    sampler = DistributedSampler(pictures, seed=1)
    loader = DataLoader(pictures, BATCH_PER_RANK, sampler=sampler, drop_last=True)
    model = DistributedDataParallel(nn.Sequential(
        nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Flatten(), nn.Linear(32 * 26 * 26, 128), nn.ReLU(),
        nn.Linear(128, 10)).to(device))
    optimizer = torch.optim.SGD(model.parameters(), 0.05)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(restore(model, optimizer, device), EPOCHS):
        sampler.set_epoch(epoch)
        sums = torch.zeros(3, device=device)  # loss, right answers, pictures
        for step, (x, y) in enumerate(loader):
            if step == STEPS:
                break
            x, y = x.to(device), y.to(device)
            optimizer.zero_grad()
            out = model(x)
            loss = criterion(out, y)
            loss.backward()
            optimizer.step()
            sums += torch.stack([loss.detach() * len(y), (out.argmax(1) == y).sum().float(),
                                 torch.tensor(float(len(y)), device=device)])
        dist.all_reduce(sums)
        loss, right, count = sums.tolist()
        if dist.get_rank() == 0:
            print("epoch %d: loss %.4f accuracy %.4f" % (epoch + 1, loss / count, right / count), flush=True)
            save(epoch + 1, model, optimizer)
    weights = sum(p.double().abs().sum().item() for p in model.parameters())
    print("rank %d of %d: loss %.4f accuracy %.4f weights %.6f" % (
        dist.get_rank(), dist.get_world_size(), loss / count, right / count, weights), flush=True)
    dist.barrier()
    if dist.get_rank() == 0:
        os.remove(CHECKPOINT)  # it is trained
    dist.destroy_process_group()


main()
