"""Started by srun --hpc-train-roles=chief,worker:2,ps: minimises a square by TensorFlow's ParameterServerStrategy. All
that it knows of the cluster is TF_CONFIG, which TFConfigClusterResolver reads."""
import tensorflow as tf

resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
if resolver.task_type in ("worker", "ps"):
    tf.distribute.Server(resolver.cluster_spec(), job_name=resolver.task_type, task_index=resolver.task_id,
                         protocol="grpc", start=True).join()  # for ever: srun ends it after the chief

strategy = tf.distribute.ParameterServerStrategy(resolver)
coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
with strategy.scope():
    x = tf.Variable(5.0)


@tf.function
def descend():
    with tf.GradientTape() as tape:
        loss = (x - 2.0) ** 2
    x.assign_sub(0.1 * tape.gradient(loss, x))


for _ in range(50):
    coordinator.schedule(descend)
coordinator.join()
print("chief: x is %.2f on %s, %d workers" % (
    x.numpy(), x.device.split("/task")[0].lstrip("/"), len(resolver.cluster_spec().as_dict()["worker"])), flush=True)
