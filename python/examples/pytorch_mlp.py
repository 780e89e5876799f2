"""A small network in PyTorch. Tensors of the plan, by PyTorch's own names: 0.weight [8, 10], 0.bias [8],
2.weight [1, 8], 2.bias [1]. All start at zero, which a network cannot leave: in round 1, every site adds the same
first weights, from a fixed seed."""

import numpy as np
import torch
from torch import nn

from domicile_trainer import Model, Result, Task, run
from heart_table import INPUTS, read_tables


def network(received: Model, round_number: int) -> nn.Sequential:
    torch.manual_seed(1)
    net = nn.Sequential(nn.Linear(INPUTS, 8), nn.Tanh(), nn.Linear(8, 1))
    if round_number > 1:
        net.load_state_dict({name: torch.from_numpy(values) for name, values in received.items()})
    return net


def train(model: Model, task: Task) -> Result:
    torch.set_num_threads(task.threads)
    inputs, labels = (torch.from_numpy(part) for part in read_tables(task.data))
    net = network(model, task.round)
    loss_of = nn.BCEWithLogitsLoss()
    with torch.no_grad():
        loss = loss_of(net(inputs).squeeze(1), labels).item()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.3, momentum=0.9)
    generator = torch.Generator().manual_seed(task.round)
    batch = task.batch or len(labels)
    used: set[int] = set()
    order = torch.empty(0, dtype=torch.long)
    for step in range(task.local_steps):
        if len(order) == 0:
            order = torch.randperm(len(labels), generator=generator)
        rows, order = order[:batch], order[batch:]
        used.update(rows.tolist())
        optimizer.zero_grad()
        loss_of(net(inputs[rows]).squeeze(1), labels[rows]).backward()
        optimizer.step()
        task.progress((step + 1) / task.local_steps)
    trained: dict[str, np.ndarray] = {name: values.detach().numpy() for name, values in net.state_dict().items()}
    return Result.of(trained, model, rows=len(used), examples=len(labels), loss=loss)


run(train)
