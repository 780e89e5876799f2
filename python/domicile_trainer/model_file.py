"""Model files: the strict subset of safetensors that Domicile reads and writes (docs/formats/model.md)."""

from __future__ import annotations

import json
import math
import re
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

MAX_HEADER_BYTES = 1 << 20
MAX_DATA_BYTES = 8 << 30
MAX_TENSORS = 10_000
NAME = re.compile(r"[A-Za-z0-9_.]{1,120}\Z")
DTYPES = {"F32": np.dtype("<f4"), "I64": np.dtype("<i8")}


class ModelFileError(ValueError):
    """A file that is not as the format says; the text names tensor and rule."""


def _closed_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ModelFileError("the header has a key twice")
    return members


def _header(file: bytes) -> tuple[dict[str, Any], bytes]:
    if len(file) < 8:
        raise ModelFileError("the file is shorter than its length field")
    (length,) = struct.unpack_from("<Q", file)
    if length > MAX_HEADER_BYTES or length > len(file) - 8:
        raise ModelFileError("the header is too long, or cut off")
    text = file[8 : 8 + length]
    if not text.startswith(b"{"):
        raise ModelFileError("the header is no JSON object")
    try:
        header = json.loads(text.decode("utf-8"), object_pairs_hook=_closed_object)
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise ModelFileError("the header is no JSON object") from error
    return header, file[8 + length :]


def _is_size(value: Any, least: int) -> bool:
    return type(value) is int and least <= value <= MAX_DATA_BYTES


def _tensor_place(name: str, entry: Any) -> tuple[np.dtype[Any], tuple[int, ...], int, int]:
    if not NAME.match(name):
        raise ModelFileError("a tensor's name is not [A-Za-z0-9_.]+ of at most 120 characters")
    if not isinstance(entry, dict) or entry.keys() != {"dtype", "shape", "data_offsets"}:
        raise ModelFileError(f"`{name}` needs exactly dtype, shape and data_offsets")
    shape, offsets = entry["shape"], entry["data_offsets"]
    if entry["dtype"] not in DTYPES:
        raise ModelFileError(f"`{name}` has a dtype other than F32 and I64")
    if not isinstance(shape, list) or len(shape) > 8 or not all(_is_size(size, 1) for size in shape):
        raise ModelFileError(f"`{name}` has a shape that is none")
    if not isinstance(offsets, list) or len(offsets) != 2 or not all(_is_size(at, 0) for at in offsets):
        raise ModelFileError(f"`{name}` has offsets that are none")
    dtype = DTYPES[entry["dtype"]]
    if offsets[1] - offsets[0] != math.prod(shape) * dtype.itemsize:
        raise ModelFileError(f"`{name}` has a shape that disagrees with its offsets")
    return dtype, tuple(shape), offsets[0], offsets[1]


def parse_model(file: bytes) -> dict[str, NDArray[Any]]:
    """The tensors in the order of their data. Raises ModelFileError."""
    header, data = _header(file)
    metadata = header.pop("__metadata__", {})
    if metadata and (metadata.keys() != {"format"} or len(str(metadata["format"])) > 16):
        raise ModelFileError("the header has metadata beyond a short `format`")
    if len(header) > MAX_TENSORS or len(data) > MAX_DATA_BYTES:
        raise ModelFileError("the file has too many tensors, or too much data")
    places = {name: _tensor_place(name, entry) for name, entry in header.items()}
    tensors: dict[str, NDArray[Any]] = {}
    end = 0
    for name, (dtype, shape, begin, stop) in sorted(places.items(), key=lambda item: item[1][2]):
        if begin != end or stop > len(data):
            raise ModelFileError(f"`{name}` overlaps another tensor, leaves a hole, or is cut off")
        tensors[name] = np.frombuffer(data[begin:stop], dtype=dtype).reshape(shape).copy()
        end = stop
    if end != len(data):
        raise ModelFileError("there are bytes after the last tensor")
    return tensors


def print_model(tensors: Mapping[str, NDArray[np.float32]]) -> bytes:
    """The file, tensors in the given order: the same tensors give the same bytes."""
    header: dict[str, Any] = {}
    parts: list[bytes] = []
    end = 0
    for name, values in tensors.items():
        if not NAME.match(name):
            raise ModelFileError("a tensor's name is not [A-Za-z0-9_.]+ of at most 120 characters")
        part = np.ascontiguousarray(values, dtype="<f4").tobytes()
        header[name] = {"dtype": "F32", "shape": list(values.shape), "data_offsets": [end, end + len(part)]}
        parts.append(part)
        end += len(part)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + b"".join(parts)


def read_model(path: str | Path) -> dict[str, NDArray[Any]]:
    return parse_model(Path(path).read_bytes())


def write_model(path: str | Path, tensors: Mapping[str, NDArray[np.float32]]) -> None:
    # In place: a program may write the file it is given, and make no other.
    with open(path, "wb") as file:
        file.write(print_model(tensors))
