"""Logistic regression in NumPy: full-batch gradient steps. Tensors of the plan: weight [10], bias [1]."""

import numpy as np

from domicile_trainer import Model, Result, Task, run
from heart_table import read_tables

LEARNING_RATE = 0.5


def train(model: Model, task: Task) -> Result:
    inputs, labels = read_tables(task.data)
    weight = model["weight"].astype(np.float64)
    bias = model["bias"].astype(np.float64)
    loss = None
    for step in range(task.local_steps):
        logits = inputs @ weight + bias
        if loss is None:
            loss = float(np.mean(np.logaddexp(0, logits) - labels * logits))
        error = 1 / (1 + np.exp(-logits)) - labels
        weight -= LEARNING_RATE * inputs.T @ error / len(labels)
        bias -= LEARNING_RATE * error.mean()
        task.progress((step + 1) / task.local_steps)
    return Result.of({"weight": weight, "bias": bias}, model, rows=len(labels), examples=len(labels), loss=loss)


run(train)
