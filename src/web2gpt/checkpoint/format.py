"""The checkpoint folder: what stands in it and how it is checked.

``step_00001000/``

- ``tensor_TT_pipeline_PP.safetensors``: what (tensor, pipeline) rank holds, as float32: for each
  parameter ``weight/<name>``, ``exp_avg/<name>`` and ``exp_avg_sq/<name>`` (AdamW's moments),
  whole over data ranks and ZeRO, cut to this tensor rank's slice, without padding rows. A tensor
  that tensor ranks replicate stands in the file of each, so that they can be compared.
- ``state.json``: everything else that the next step depends on.
- ``reference.safetensors``: ``tokens`` int64 [1, n] and the trainer's ``logits`` float32 [1, n, V].
- ``index.json``: where each tensor's slices stand, and a checksum for every other file.

Invariant: the layout appears nowhere but in file names and in the slices that index.json gives, so
that a checkpoint can be read under any other. The folder is renamed into place last: one that has
its final name is complete.
"""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from itertools import accumulate
from pathlib import Path
from typing import Any, Self

from web2gpt.errors import InputError
from web2gpt.io.atomic import read_json, write_json
from web2gpt.io.checksums import checksum
from web2gpt.io.made import made_by
from web2gpt.parallel.split import Range, Slice

FORMAT = 1
INDEX = "index.json"
STATE = "state.json"
REFERENCE = "reference.safetensors"
DTYPE = "float32"
PRECISIONS = ("fp32", "bf16", "fp16")
KINDS = ("weight", "exp_avg", "exp_avg_sq")
"""What is kept of each parameter: its float32 value, and AdamW's two moments."""

_STEP_FOLDER = re.compile(r"step_(\d{8,})")


def step_folder(step: int) -> str:
    """The name of the checkpoint after ``step`` optimizer steps."""
    return f"step_{step:08d}"


def step_of(folder: Path) -> int | None:
    """The step of a checkpoint folder, by its name; None if it is no finished checkpoint."""
    match = _STEP_FOLDER.fullmatch(folder.name)
    return int(match[1]) if match else None


def rank_file(tensor_rank: int, pipeline_rank: int) -> str:
    """The file of a (tensor, pipeline) rank."""
    return f"tensor_{tensor_rank:02d}_pipeline_{pipeline_rank:02d}.safetensors"


@dataclass(frozen=True)
class Part:
    """One file's slice of a tensor. ``dim`` None: the file holds the whole tensor."""

    file: str
    dim: int | None
    ranges: tuple[Range, ...] = ()

    @classmethod
    def of(cls, file: str, part: Slice) -> Self:
        return cls(file, part.dim, part.ranges)

    def as_slice(self, shape: tuple[int, ...]) -> Slice:
        """The slice, given the tensor's global ``shape``."""
        if self.dim is None:
            return Slice(None, (), shape)
        length = sum(part.length for part in self.ranges)
        return Slice(self.dim, self.ranges, (*shape[: self.dim], length, *shape[self.dim + 1 :]))

    def to_json(self) -> dict[str, Any]:
        ranges = [[r.local_start, r.global_start, r.length] for r in self.ranges]
        return {"file": self.file, "dim": self.dim, "ranges": ranges}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        dim, ranges = value["dim"], [Range(*map(_count, r)) for r in value["ranges"]]
        starts = accumulate((r.length for r in ranges), initial=0)
        if any(r.local_start != start for r, start in zip(ranges, starts, strict=False)):
            raise ValueError("ranges of a slice leave a gap")
        return cls(_file_name(value["file"]), None if dim is None else _count(dim), tuple(ranges))


@dataclass(frozen=True)
class TensorEntry:
    """A tensor's global shape, and the slices of it that files hold."""

    shape: tuple[int, ...]
    parts: tuple[Part, ...]

    def to_json(self) -> dict[str, Any]:
        parts = [part.to_json() for part in self.parts]
        return {"shape": list(self.shape), "dtype": DTYPE, "parts": parts}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        shape = tuple(map(_count, value["shape"]))
        parts = tuple(Part.from_json(part) for part in value["parts"])
        cuts = {part.dim for part in parts}
        if value["dtype"] != DTYPE or not cuts or cuts - {None, *range(len(shape))}:
            raise ValueError("not a tensor's slices")
        if len(cuts) > 1:
            raise ValueError("slices along several dimensions")
        return cls(shape, parts)


@dataclass(frozen=True)
class FileEntry:
    """A file's size and checksum (blake2b-256, hex)."""

    bytes: int
    blake2b: str

    @classmethod
    def of(cls, path: Path) -> Self:
        return cls(path.stat().st_size, checksum(path))


@dataclass(frozen=True)
class Index:
    """``index.json``. ``model`` holds the sizes of GPT-2 by their configuration names, and
    ``vocab_size``; ``tensors`` goes by parameter name, one entry for all ``KINDS``;
    ``precision`` is that of the training: fp32, bf16 or fp16."""

    identity: str
    step: int
    model: Mapping[str, Any]
    tensors: Mapping[str, TensorEntry]
    files: Mapping[str, FileEntry]
    precision: str = "fp32"

    def write(self, folder: Path) -> None:
        write_json(
            folder / INDEX,
            {
                "format": FORMAT,
                "identity": self.identity,
                "step": self.step,
                "precision": self.precision,
                "model": dict(self.model),
                "tensors": {name: entry.to_json() for name, entry in self.tensors.items()},
                "files": {name: asdict(entry) for name, entry in sorted(self.files.items())},
            },
        )

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Read ``folder/index.json``. Raises ``InputError`` if there is none of a known format."""
        path = folder / INDEX
        try:
            value = read_json(path)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise InputError(
                f"{path}: no such file, so {folder} is no checkpoint; name one."
            ) from error
        except ValueError as error:
            raise InputError(f"{path}: not JSON ({error}); take another checkpoint.") from error
        if not isinstance(value, dict) or value.get("format") != FORMAT:
            raise InputError(f"{path}: not a checkpoint of format {FORMAT}; take another one.")
        with made_by("train", path):
            files = {_file_name(name): FileEntry(**e) for name, e in value["files"].items()}
            return cls(
                str(value["identity"]),
                _count(value["step"]),
                {**value["model"], "vocab_size": _count(value["model"]["vocab_size"])},
                {name: TensorEntry.from_json(entry) for name, entry in value["tensors"].items()},
                files,
                PRECISIONS[PRECISIONS.index(value.get("precision", "fp32"))],
            )

    def check_files(self, folder: Path) -> None:
        """Raise ``InputError`` if a file is missing or is not, byte for byte, the one written."""
        for name, entry in self.files.items():
            path = folder / name
            if not path.is_file():
                raise InputError(f"{path}: missing from the checkpoint; take another one.")
            if FileEntry.of(path) != entry:
                raise InputError(
                    f"{path}: size or checksum is not what {INDEX} says; the file is damaged, "
                    "take another checkpoint."
                )


@dataclass(frozen=True)
class State:
    """``state.json``: what the next step depends on, beside weights and moments.

    ``optimizer_steps`` is AdamW's count of applied steps (``step`` less those that were passed over
    or not applied); ``samples`` is the position in the training data; ``skipped`` counts steps that
    were not applied, ``bad_in_a_row`` those up to now whose loss or gradient was not finite;
    ``loss_scaler`` holds the dynamic loss scale's attributes (fp16); ``random`` what random numbers
    are a function of; ``schedule`` the learning-rate schedule it ran under, and ``layout`` the
    layout: both for the reader only.
    """

    step: int
    optimizer_steps: int
    samples: int
    tokens: int
    skipped: int = 0
    bad_in_a_row: int = 0
    loss_scaler: Mapping[str, float | int] | None = None
    random: Mapping[str, Any] = field(default_factory=dict)
    schedule: Mapping[str, Any] = field(default_factory=dict)
    layout: Mapping[str, Any] = field(default_factory=dict)

    def write(self, folder: Path) -> None:
        write_json(folder / STATE, asdict(self))

    @classmethod
    def read(cls, folder: Path) -> Self:
        with made_by("train", folder / STATE):
            state = cls(**read_json(folder / STATE))
            for count in (state.step, state.optimizer_steps, state.samples, state.tokens):
                _count(count)
            layout, schedule = dict(state.layout), dict(state.schedule)
            return replace(state, layout=layout, schedule=schedule)


def _count(value: Any) -> int:
    """A number of something, or a place. Raises ``ValueError`` for anything else."""
    if type(value) is not int or value < 0:
        raise ValueError(f"{value!r} is no count")
    return value


def _file_name(value: Any) -> str:
    """The name of a file inside the folder. Raises ``ValueError`` for a way out of it."""
    if Path(value).name != value or value == "..":
        raise ValueError(f"{value!r} is not the name of a file beside the index")
    return str(value)
