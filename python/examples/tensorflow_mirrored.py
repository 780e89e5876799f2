"""A small network in TensorFlow, on two virtual devices under tf.distribute.MirroredStrategy: each holds a replica
and half of every batch, gradients are summed over both, and the replicas stay alike. Tensors of the plan:
hidden.kernel [10, 8], hidden.bias [8], output.kernel [8, 1], output.bias [1], zero at first; in round 1 every site
adds the same first weights, from a fixed seed."""

import numpy as np
import tensorflow as tf

from domicile_trainer import Model, Result, Task, TaskError, run
from heart_table import INPUTS, read_tables

LEARNING_RATE = 0.5
DEVICES = 2
SHAPES = {"hidden.kernel": (INPUTS, 8), "hidden.bias": (8,), "output.kernel": (8, 1), "output.bias": (1,)}


def two_devices() -> tf.distribute.MirroredStrategy:
    (processor,) = tf.config.list_physical_devices("CPU")
    tf.config.set_logical_device_configuration(processor, [tf.config.LogicalDeviceConfiguration()] * DEVICES)
    return tf.distribute.MirroredStrategy([f"CPU:{i}" for i in range(DEVICES)])


def first_weights(received: Model, round_number: int) -> Model:
    if round_number > 1:
        return received
    random = np.random.default_rng(1)
    return {name: (random.standard_normal(shape) * 0.3 if name.endswith("kernel") else np.zeros(shape)).astype(np.float32)
            for name, shape in SHAPES.items()}


def losses(variables: dict[str, tf.Variable], inputs: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
    hidden = tf.tanh(inputs @ variables["hidden.kernel"] + variables["hidden.bias"])
    logits = tf.squeeze(hidden @ variables["output.kernel"] + variables["output.bias"], 1)
    return tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits)


def train(model: Model, task: Task) -> Result:
    tf.config.threading.set_intra_op_parallelism_threads(task.threads)
    tf.config.threading.set_inter_op_parallelism_threads(DEVICES)
    strategy = two_devices()
    inputs, labels = read_tables(task.data)
    start = first_weights(model, task.round)
    with strategy.scope():
        variables = {name: tf.Variable(values) for name, values in start.items()}
    loss = float(tf.reduce_mean(losses(variables, inputs, labels)))
    batch = min(task.batch or len(labels), len(labels))
    data = tf.data.Dataset.from_tensor_slices((inputs, labels)).shuffle(len(labels), seed=task.round)
    batches = iter(strategy.experimental_distribute_dataset(data.repeat().batch(batch)))

    def step(part_inputs: tf.Tensor, part_labels: tf.Tensor) -> None:
        with tf.GradientTape() as tape:
            loss_part = tf.reduce_sum(losses(variables, part_inputs, part_labels)) / batch
        gradients = tape.gradient(loss_part, list(variables.values()))
        summed = tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.SUM, gradients)
        for variable, gradient in zip(variables.values(), summed, strict=True):
            variable.assign_sub(LEARNING_RATE * gradient)

    replicated = tf.function(lambda pair: strategy.run(step, args=pair))
    for done in range(task.local_steps):
        replicated(next(batches))
        task.progress((done + 1) / task.local_steps)
    trained = {}
    for name, variable in variables.items():
        copies = [copy.numpy() for copy in strategy.experimental_local_results(variable)]
        if len(copies) != DEVICES or any(not np.array_equal(copies[0], copy) for copy in copies):
            raise TaskError(f"the replicas of `{name}` differ")
        trained[name] = copies[0]
    rows = min(task.local_steps * batch, len(labels))
    return Result.of(trained, model, rows=rows, examples=len(labels), loss=loss)


run(train)
