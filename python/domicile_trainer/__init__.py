"""Makes a Python function the trainer of a Domicile site.

`domicile-trainer` checks what may run and starts this program for one task at a time, behind walls without a
network; see docs/formats/trainer-program.md. A whole program:

    from domicile_trainer import Result, run

    def train(model, task):
        rows = read(task.data[0])
        trained = {name: values.copy() for name, values in model.items()}
        for step in range(task.local_steps):
            ...                                    # change `trained`
            task.progress((step + 1) / task.local_steps)
        return Result.of(trained, model, rows=len(rows))

    run(train)
"""

from .model_file import ModelFileError, read_model, write_model
from .program import Model, Result, Task, TaskError, Tensor, run

__all__ = ["Model", "ModelFileError", "Result", "Task", "TaskError", "Tensor", "read_model", "run", "write_model"]
