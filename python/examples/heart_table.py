"""Heart disease tables of deploy/examples/heart, as the examples read them: ten measures, scaled by public
constants, and whether there is disease. What a program reads and how is its own business."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

# column, middle, scale, and whether 0 was typed for "not measured"
COLUMNS = (
    ("age", 50, 10, False),
    ("trestbps", 130, 20, True),
    ("chol", 250, 50, True),
    ("thalach", 140, 25, False),
    ("oldpeak", 1, 1, False),
    ("sex", 0.5, 1, False),
    ("fbs", 0, 1, False),
    ("exang", 0, 1, False),
    ("cp", 3, 1, False),
    ("restecg", 0, 1, False),
)
INPUTS = len(COLUMNS)


def _number(row: dict[str, str], column: str, middle: float, scale: float, zero_is_missing: bool) -> float:
    text = row[column].strip()
    if text in ("", "?") or (zero_is_missing and float(text) == 0):
        return 0.0  # the middle
    return (float(text) - middle) / scale


def read_tables(paths: Iterable[Path]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Inputs [rows, INPUTS] and labels [rows], 0 or 1."""
    inputs, labels = [], []
    for path in paths:
        with open(path, newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                inputs.append([_number(row, *column) for column in COLUMNS])
                labels.append(float(int(row["num"]) > 0))
    return np.array(inputs, dtype=np.float32), np.array(labels, dtype=np.float32)
