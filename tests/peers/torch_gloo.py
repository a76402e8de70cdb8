"""Started by srun --hpc-train: torch.distributed with gloo, from the environment's variables alone."""
import datetime
import os

import torch
import torch.distributed as dist

dist.init_process_group("gloo", init_method="env://", timeout=datetime.timedelta(seconds=60))
total = torch.tensor([float(dist.get_rank() + 1)])
dist.all_reduce(total)
print("rank %d of %d on %s: sum %g" % (
    dist.get_rank(), dist.get_world_size(), os.environ["SLURMD_NODENAME"], total.item()), flush=True)
dist.destroy_process_group()
