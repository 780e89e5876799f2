"""usage: test_domicile_trainer.py   (by ctest; ends with 77 and a reason where NumPy is missing)"""

import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import unittest

PYTHON = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(PYTHON))
sys.path.insert(0, str(PYTHON / "examples"))
try:
    import numpy as np

    from domicile_trainer import ModelFileError, Result, Task, TaskError, Tensor
    from domicile_trainer.model_file import parse_model, print_model
except ImportError as missing:
    print(f"skipped: python has no {missing.name}")
    sys.exit(77)

HEART = PYTHON.parent / "deploy/examples/heart/data/cleveland.csv"


def file_of(header, data=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def entry(shape, begin, end, dtype="F32"):
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


class ModelFile(unittest.TestCase):
    def test_what_is_printed_reads_back_to_the_same_bits(self):
        tensors = {"b.weight": np.array([[1, -2, 3e-40]], np.float32), "a": np.float32(7).reshape(())}
        file = print_model(tensors)
        back = parse_model(file)
        self.assertEqual(list(back), ["b.weight", "a"])
        self.assertTrue(np.array_equal(back["b.weight"], tensors["b.weight"]))
        self.assertEqual(back["a"].shape, ())
        self.assertEqual(print_model(back), file)
        self.assertEqual((8 + struct.unpack_from("<Q", file)[0]) % 8, 0)

    def test_any_order_of_keys_and_a_short_format_are_read(self):
        file = file_of({"__metadata__": {"format": "pt"}, "y": entry([1], 4, 8), "x": entry([1], 0, 4)},
                       struct.pack("<2f", 1, 2))
        self.assertEqual({name: float(v[0]) for name, v in parse_model(file).items()}, {"x": 1, "y": 2})

    def test_what_the_format_forbids_is_refused(self):
        four = struct.pack("<f", 1)
        cases = {
            "nothing": b"",
            "header cut off": struct.pack("<Q", 99) + b"{}",
            "header too long": struct.pack("<Q", 1 << 40) + b"{}",
            "no object": file_of(b"[1]"),
            "blank first": file_of(b" {}"),
            "key twice": file_of(b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},'
                                 b'"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}', four),
            "name": file_of({"a b": entry([1], 0, 4)}, four),
            "long name": file_of({"a" * 121: entry([1], 0, 4)}, four),
            "dtype": file_of({"a": entry([1], 0, 4, "F16")}, four),
            "dimension 0": file_of({"a": entry([0], 0, 0)}),
            "nine dimensions": file_of({"a": entry([1] * 9, 0, 4)}, four),
            "boolean size": file_of({"a": entry([True], 0, 4)}, four),
            "fraction": file_of({"a": entry([1.0], 0, 4)}, four),
            "shape and offsets": file_of({"a": entry([2], 0, 4)}, four),
            "out of bounds": file_of({"a": entry([2], 0, 8)}, four),
            "hole": file_of({"a": entry([1], 4, 8)}, four * 2),
            "overlap": file_of({"a": entry([1], 0, 4), "b": entry([1], 0, 4)}, four),
            "trailing": file_of({"a": entry([1], 0, 4)}, four + b"x"),
            "other key": file_of({"a": entry([1], 0, 4) | {"note": 1}}, four),
            "metadata": file_of({"__metadata__": {"note": "x"}, "a": entry([1], 0, 4)}, four),
            "backwards": file_of({"a": entry([1], 4, 0)}, four),
        }
        for name, file in cases.items():
            with self.subTest(name), self.assertRaises(ModelFileError):
                parse_model(file)


class Folder:
    """What domicile-trainer gives a program, in a temporary folder."""

    def __init__(self, test, model, **changed):
        self.home = tempfile.TemporaryDirectory()
        test.addCleanup(self.home.cleanup)
        path = pathlib.Path(self.home.name)
        self.delta, self.answer = path / "delta", path / "answer"
        (path / "model").write_bytes(print_model(model))
        tensors = [{"name": name, "shape": list(values.shape)} for name, values in model.items()]
        self.task = {"v": 1, "job": "j", "round": 1, "dataset": "heart", "data": [str(HEART)], "local_steps": 1, "local_epochs": 0,
                     "batch": 0, "threads": 1, "tensors": tensors, "model": str(path / "model"),
                     "delta": str(self.delta), "answer": str(self.answer)} | changed
        (path / "task.json").write_text(json.dumps(self.task))
        self.environment = os.environ | {"DOMICILE_TASK": str(path / "task.json"), "PYTHONPATH": str(PYTHON)}

    def run(self, command):
        """Exit code, standard error, and what was written to descriptor 3."""
        read, write = os.pipe()
        moved = os.dup(write)  # 3 may be one of the pipe's own ends here

        def to_three():
            os.dup2(moved, 3)

        done = subprocess.run([sys.executable, *command], env=self.environment, capture_output=True, text=True,
                              close_fds=False, preexec_fn=to_three)
        os.close(write)
        os.close(moved)
        with open(read, "rb") as file:
            return done.returncode, done.stderr, file.read()


class Program(unittest.TestCase):
    zeros = {"weight": np.zeros(10, np.float32), "bias": np.zeros(1, np.float32)}

    def test_one_step_of_the_numpy_example_is_the_gradient_by_hand(self):
        from heart_table import read_tables

        folder = Folder(self, self.zeros)
        code, error, progress = folder.run([str(PYTHON / "examples/numpy_logistic.py")])
        self.assertEqual((code, error), (0, ""))
        inputs, labels = read_tables([HEART])
        delta = parse_model(folder.delta.read_bytes())
        by_hand = 0.5 * np.mean([(y - 0.5) * x for x, y in zip(inputs, labels)], axis=0)
        np.testing.assert_allclose(delta["weight"], by_hand, rtol=1e-5)
        self.assertEqual(json.loads(folder.answer.read_text()),
                         {"v": 1, "rows": 303, "examples": 303, "loss_sum_micro": round(303 * np.log(2) * 1e6)})
        self.assertEqual(progress, b"100\n")

    def test_a_mistake_ends_the_program_and_says_where(self):
        cases = {
            "shape": ("Result({'weight': model['weight'], 'bias': np.zeros(2, np.float32)}, 1)", "tensors are"),
            "name": ("Result({'weight': model['weight']}, 1)", "tensors are"),
            "not finite": ("Result({n: v + np.nan for n, v in model.items()}, 1)", "not finite"),
            "no rows": ("Result(model, 0)", "no rows"),
        }
        for name, (expression, said) in cases.items():
            with self.subTest(name):
                folder = Folder(self, self.zeros)
                code, error, _ = folder.run(["-c", "import numpy as np\nfrom domicile_trainer import *\n"
                                             f"run(lambda model, task: {expression})"])
                self.assertEqual(code, 1)
                self.assertIn(said, error)
                self.assertFalse(folder.answer.exists())

    def test_another_version_of_the_task_is_refused(self):
        code, error, _ = Folder(self, self.zeros, v=2).run(["-c", "from domicile_trainer import *\nrun(lambda m, t: None)"])
        self.assertEqual(code, 1)
        self.assertIn("version 2", error)

    def test_a_task_says_what_it_is(self):
        task = Task.parse(json.dumps(Folder(self, self.zeros, batch=7).task))
        self.assertEqual((task.batch, task.tensors[0]), (7, Tensor("weight", (10,))))
        with self.assertRaises(TaskError):
            Task.parse("{}")

    def test_a_result_is_trained_minus_received(self):
        one, three = {"a": np.ones(2, np.float32)}, {"a": np.full(2, 3.0)}
        self.assertTrue(np.array_equal(Result.of(three, one, rows=1).delta["a"], [2, 2]))
        with self.assertRaises(TaskError):
            Result.of({"b": one["a"]}, one, rows=1)
        self.assertNotIn("loss_sum_micro", Result(one, 1, 1, float("nan")).answer())
        self.assertNotIn("loss_sum_micro", Result(one, 1).answer())
        self.assertEqual(Result(one, 1, 4, 0.25).answer()["loss_sum_micro"], 1_000_000)


if __name__ == "__main__":
    unittest.main(verbosity=2)
