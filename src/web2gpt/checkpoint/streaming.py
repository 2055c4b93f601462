"""Writing a safetensors file one tensor at a time.

The library's own ``save_file`` wants all tensors at once; the format does not: 8 bytes of header
length, a JSON header with each tensor's place, then the tensors' bytes back to back. Shapes and
types are given first, so the header can be written before any tensor is made.
Source: https://github.com/huggingface/safetensors, "Format".
"""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Self

import orjson
import torch
from torch import Tensor

_CODES = {torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16"}
_METADATA = MappingProxyType({"format": "pt"})


class SafetensorsWriter:
    """``with SafetensorsWriter(path, shapes, dtype) as writer: writer.write(tensor)`` for each
    tensor of ``shapes``, in its order. Raises ``ValueError`` on a tensor out of turn.

    ``metadata`` stands in the header; by default what transformers wants to see there.
    """

    def __init__(
        self,
        path: Path,
        shapes: Mapping[str, tuple[int, ...]],
        dtype: torch.dtype,
        metadata: Mapping[str, str] = _METADATA,
    ):
        self._expected = list(shapes.items())
        self._dtype = dtype
        self._written = 0
        self._file = path.open("wb")
        self._file.write(_header(shapes, dtype, metadata))

    def write(self, name: str, tensor: Tensor) -> None:
        expected = self._expected[self._written]
        if (name, tuple(tensor.shape)) != expected or tensor.dtype != self._dtype:
            raise ValueError(f"{name} {tuple(tensor.shape)} {tensor.dtype}: {expected} is next")
        self._file.write(tensor.contiguous().view(-1).view(torch.uint8).numpy().data)
        self._written += 1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        self._file.close()
        if kind is None and self._written != len(self._expected):
            raise ValueError(f"{self._expected[self._written][0]} was not written")


def tensor_bytes(shape: tuple[int, ...], dtype: torch.dtype) -> int:
    """Bytes of a tensor of this shape."""
    return torch.Size(shape).numel() * dtype.itemsize


def _header(
    shapes: Mapping[str, tuple[int, ...]], dtype: torch.dtype, metadata: Mapping[str, str]
) -> bytes:
    header: dict[str, object] = {"__metadata__": dict(metadata)} if metadata else {}
    end = 0
    for name, shape in shapes.items():
        start, end = end, end + tensor_bytes(shape, dtype)
        header[name] = {"dtype": _CODES[dtype], "shape": shape, "data_offsets": [start, end]}
    text = orjson.dumps(header)
    text += b" " * (-len(text) % 8)  # so that the tensors start aligned
    return len(text).to_bytes(8, "little") + text
