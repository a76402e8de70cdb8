"""Started by srun --hpc-train: asks TensorFlow's own TFConfigClusterResolver what it reads in TF_CONFIG."""
import os

import tensorflow as tf

resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
cluster = resolver.cluster_spec().as_dict()
rank = int(os.environ["SLURM_PROCID"])
address = cluster["worker"][resolver.task_id]
print("rank %d: %s %d of %d, address of this node: %s, in TensorFlow's order: %s" % (
    rank, resolver.task_type, resolver.task_id, len(cluster["worker"]),
    address.split(":")[0] == os.environ["SLURMD_NODENAME"], resolver.task_id == rank), flush=True)
