"""One task: what domicile-trainer gives, and what it gets (docs/formats/trainer-program.md)."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .model_file import read_model, write_model

VERSION = 1
PROGRESS_DESCRIPTOR = 3
LARGEST_INTEGER = 2**53 - 1

Model = dict[str, NDArray[np.float32]]


class TaskError(ValueError):
    """A task or an answer that is not as the format says."""


@dataclass(frozen=True)
class Tensor:
    name: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Task:
    job: str
    round: int  # from 1
    dataset: str  # its alias
    data: tuple[Path, ...]  # the site's files, to read
    local_steps: int  # of the plan: optimizer steps to make; 0: local_epochs
    local_epochs: int  # of the plan: passes over the rows; 0: local_steps
    batch: int  # of the plan: rows a step, 0: all
    threads: int  # what the site lets the program use
    tensors: tuple[Tensor, ...]  # of the plan, in order
    model_path: Path = field(repr=False)
    delta_path: Path = field(repr=False)
    answer_path: Path = field(repr=False)

    @classmethod
    def parse(cls, text: str) -> Task:
        """Raises TaskError for another version, or what is not a task."""
        try:
            task = json.loads(text)
            if task["v"] != VERSION:
                raise TaskError(f"the task is of version {task['v']}, this package knows {VERSION}")
            return cls(
                job=str(task["job"]),
                round=int(task["round"]),
                dataset=str(task["dataset"]),
                data=tuple(Path(path) for path in task["data"]),
                local_steps=int(task["local_steps"]),
                local_epochs=int(task["local_epochs"]),
                batch=int(task["batch"]),
                threads=int(task["threads"]),
                tensors=tuple(Tensor(t["name"], tuple(t["shape"])) for t in task["tensors"]),
                model_path=Path(task["model"]),
                delta_path=Path(task["delta"]),
                answer_path=Path(task["answer"]),
            )
        except (KeyError, TypeError, json.JSONDecodeError) as error:
            raise TaskError(f"not a task: {error!r}") from error

    def progress(self, share: float) -> None:
        """Says how much is done, 0 to 1. Never fails: nobody may be listening."""
        try:
            os.write(PROGRESS_DESCRIPTOR, b"%d\n" % max(0, min(100, int(share * 100))))
        except OSError:
            pass


@dataclass(frozen=True)
class Result:
    delta: Mapping[str, NDArray[np.float32]]  # trained minus received
    rows: int  # distinct rows that steps used: the weight
    examples: int = 0  # rows over which `loss` was taken
    loss: float | None = None  # mean loss of the model *received*

    @classmethod
    def of(
        cls,
        trained: Mapping[str, NDArray[Any]],
        received: Mapping[str, NDArray[Any]],
        *,
        rows: int,
        examples: int = 0,
        loss: float | None = None,
    ) -> Result:
        """From the trained weights themselves."""
        if trained.keys() != received.keys():
            raise TaskError(f"trained tensors {sorted(trained)} are not those received {sorted(received)}")
        delta = {
            name: np.asarray(trained[name], dtype=np.float32) - np.asarray(received[name], dtype=np.float32)
            for name in received
        }
        return cls(delta, rows, examples, loss)

    def answer(self) -> dict[str, int]:
        answer = {"v": VERSION, "rows": int(self.rows), "examples": int(self.examples)}
        if self.loss is not None and math.isfinite(self.loss):
            micro = round(self.loss * self.examples * 1e6)
            if abs(micro) <= LARGEST_INTEGER:
                answer["loss_sum_micro"] = micro
        return answer


def _check(result: Result, tensors: tuple[Tensor, ...]) -> None:
    """domicile-trainer refuses the same; here the error is where the mistake is."""
    wanted = {tensor.name: tensor.shape for tensor in tensors}
    got = {name: tuple(values.shape) for name, values in result.delta.items()}
    if got != wanted:
        raise TaskError(f"the delta's tensors are {got}, the plan's are {wanted}")
    for name, values in result.delta.items():
        if not np.isfinite(values).all():
            raise TaskError(f"the delta of `{name}` is not finite; the learning rate may be too high")
    if result.rows < 1:
        raise TaskError("no rows were used")


def run(train: Callable[[Model, Task], Result]) -> None:
    """Reads the task, lets `train` do it, and writes the answer. An error ends the program with its trace, which
    stays at the site."""
    path = os.environ.get("DOMICILE_TASK")
    if path is None:
        sys.exit("DOMICILE_TASK is not set: domicile-trainer starts this program (docs/formats/trainer-program.md)")
    task = Task.parse(Path(path).read_text(encoding="utf-8"))
    model: Model = read_model(task.model_path)
    result = train(model, task)
    _check(result, task.tensors)
    write_model(task.delta_path, {tensor.name: result.delta[tensor.name] for tensor in task.tensors})
    with open(task.answer_path, "w", encoding="utf-8") as file:
        json.dump(result.answer(), file)
