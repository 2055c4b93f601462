"""Read a torch file from elsewhere: its tensors and plain values, and nothing else.

Such files are pickles, which can call any function. None is given to Python's unpickler: a child
process, with limits on its memory, lists the globals that the pickle names (reading opcodes,
running nothing), refuses any that is not expected, and lets torch's weights-only reader build the
rest, with inert stand-ins for the classes of the systems that wrote it. What comes back is a
safetensors file and JSON. Run as a program, this module is that child.
"""

import pickletools
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, Self

import orjson

from web2gpt.errors import InputError
from web2gpt.io.progress import ProgressLine

TENSORS, VALUES = "tensors.safetensors", "values.json"
REFUSED = 3  # the child's exit code with a message for the user

_STANDS_FOR = re.compile(
    r"(megatron|deepspeed|apex|fp16)\.[\w.]+"
    r"|argparse\.Namespace|types\.SimpleNamespace|pathlib\.(Pure)?PosixPath"
    r"|numpy\.(_?core\.multiarray\.(_reconstruct|scalar)|ndarray|dtype|dtypes\.\w+)"
)
"""Globals that get a stand-in: classes of the systems that write such files, and what random
states are made of."""
_OF_TORCH = re.compile(
    r"torch\.[\w.]+|collections\.(OrderedDict|Counter)|_codecs\.encode|builtins\.(set|bytearray)"
    r"|__builtin__\.set"
)
"""Globals left to torch's own list, which refuses in its turn what it does not know."""
_KEPT_APART = (
    ("optimizer",),
    ("optimizer_state_dict",),
    ("lr_scheduler",),
    ("opt_param_scheduler",),
)
_LEGACY_PICKLES = 5  # magic number, protocol, system, object, storage keys
_PICKLE_LIMIT = 256 << 20  # bytes of the pickle itself, tensors aside
_NODES, _DEPTH, _TEXT = 1_000_000, 32, 10_000


@dataclass(frozen=True)
class Contents:
    """What a file held. ``values`` go by dotted path; ``tensors`` is a safetensors file."""

    values: Mapping[str, Any]
    tensors: Path

    @classmethod
    def of(cls, folder: Path) -> Self:
        """What ``convert`` wrote."""
        return cls(orjson.loads((folder / VALUES).read_bytes()), folder / TENSORS)


def read_untrusted(paths: Sequence[Path], folder: Path) -> dict[Path, Contents]:
    """Tensors and plain values of torch files, put into ``folder``, by one child for all of them.

    Raises ``InputError`` if a file cannot be read, or calls for anything but tensors.
    """
    places = {path: folder / f"{number:05d}" for number, path in enumerate(paths)}
    pairs = [(str(path.absolute()), str(place.absolute())) for path, place in places.items()]
    command = [sys.executable, "-I", "-m", __name__]
    with (
        TemporaryFile() as errors,  # a pipe that nobody empties would stop a child with much to say
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors
        ) as child,
        ProgressLine("read", unit="files", total=len(pairs)) as progress,
    ):
        assert child.stdin and child.stdout
        with child.stdin:
            child.stdin.write(orjson.dumps(pairs))
        for line in child.stdout:
            progress.advance(note=Path(line.decode().strip()).name)
        child.wait()
        errors.seek(0)
        said = errors.read().decode(errors="replace").strip().splitlines()
    if child.returncode:
        last = said[-1] if said else "no message"
        if child.returncode != REFUSED:
            last = f"{paths[min(progress.done, len(paths) - 1)]}: cannot be read ({last})."
        raise InputError(last)
    return {path: Contents.of(place) for path, place in places.items()}


class Inert:
    """Stands for any object that is neither a tensor nor plain; takes everything, keeps nothing."""

    def __new__(cls, *_: object, **__: object) -> "Inert":
        return super().__new__(cls)

    def __init__(self, *_: object, **__: object):
        pass

    def __setstate__(self, state: object) -> None:
        pass


class Arguments(Inert):
    """Stands for ``argparse.Namespace``: the settings of a run, of which plain values are kept."""

    state: object = None

    def __setstate__(self, state: object) -> None:
        self.state = state


class RefusedError(Exception):
    """The file asks for what it must not have."""


def globals_of(path: Path) -> list[str]:
    """Dotted names of all globals that the file's pickles name, without running anything."""
    found: dict[str, None] = {}
    for name, argument in _opcodes(path):
        if name == "GLOBAL":
            found[str(argument).replace(" ", ".", 1)] = None
        elif name in ("STACK_GLOBAL", "INST", "OBJ", "EXT1", "EXT2", "EXT4"):
            raise RefusedError(f"holds the opcode {name}, which torch does not write.")
    return list(found)


def stand_ins(names: list[str]) -> list[Any]:
    """What the reader puts for each global that is not torch's. Raises ``RefusedError``."""
    stands: list[Any] = []
    for name in names:
        if _STANDS_FOR.fullmatch(name):
            stands.append((Arguments if name.endswith("Namespace") else Inert, name))
        elif not _OF_TORCH.fullmatch(name):
            raise RefusedError(
                f"calls for {name}, which no checkpoint needs. It was refused, and nothing of it "
                "ran; if you trust the file, convert it where it was written."
            )
    return stands


def _opcodes(path: Path) -> Iterator[tuple[str, Any]]:
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            members = [one for one in archive.infolist() if one.filename.endswith("/data.pkl")]
            if len(members) != 1 or members[0].file_size > _PICKLE_LIMIT:
                raise RefusedError("is a zip file, but none that torch wrote.")
            content = archive.read(members[0])
        yield from ((op.name, argument) for op, argument, _ in pickletools.genops(content))
    else:
        with path.open("rb") as file:
            for _ in range(_LEGACY_PICKLES):
                yield from ((op.name, argument) for op, argument, _ in pickletools.genops(file))


def _load(path: Path) -> Any:
    import torch

    try:
        stands = stand_ins(globals_of(path))
    except (ValueError, zipfile.BadZipFile, UnicodeDecodeError) as error:
        raise RefusedError(f"is no file of torch.save ({error}).") from error
    with torch.serialization.safe_globals(stands):
        return torch.load(
            path, map_location="cpu", weights_only=True, mmap=zipfile.is_zipfile(path)
        )


def _leaves(whole: Any) -> Iterator[tuple[str, Any]]:
    """Tensors and plain values under their dotted paths; everything else is left out. A dictionary
    counts as often as it is met, for a few that hold each other unfold without end."""
    import torch

    waiting: list[tuple[tuple[str, ...], Any]] = [((), whole)]
    for _ in range(_NODES):
        if not waiting:
            return
        path, value = waiting.pop()
        value = value.state if isinstance(value, Arguments) else value
        if isinstance(value, dict) and len(path) < _DEPTH:
            inner = [((*path, str(k)), v) for k, v in value.items() if isinstance(k, str | int)]
            waiting += [one for one in reversed(inner) if one[0] not in _KEPT_APART]
        elif isinstance(value, torch.Tensor):
            yield ".".join(path), value.detach()
        elif isinstance(value, torch.dtype):
            yield ".".join(path), str(value)
        elif _is_plain(value):
            yield ".".join(path), value
    raise RefusedError(f"holds more than {_NODES:,} values.")


def _is_plain(value: Any) -> bool:
    if isinstance(value, str):
        return len(value) < _TEXT and not any(
            "\ud800" <= character < "\ue000" for character in value
        )
    if isinstance(value, int):
        return abs(value) < 1 << 63
    return value is None or isinstance(value, float)


def _write(value: Any, folder: Path) -> None:
    import torch
    from safetensors.torch import save_file

    tensors, values = {}, {}
    for key, leaf in _leaves(value):
        if isinstance(leaf, torch.Tensor):
            if leaf.layout == torch.strided and not leaf.is_quantized and not leaf.is_complex():
                tensors[key] = leaf.clone(memory_format=torch.contiguous_format)
        else:
            values[key] = leaf
    save_file(tensors, folder / TENSORS)
    (folder / VALUES).write_bytes(orjson.dumps(values))


def convert(path: Path, folder: Path) -> None:
    """Write the tensors and plain values of the torch file ``path`` to ``folder``: for the child,
    which has limits. Raises ``RefusedError``, or whatever torch makes of a broken file."""
    _write(_load(path), folder)


def main(pairs: list[tuple[str, str]]) -> int:
    """The child's work, for (file, folder) each; gives its exit code. Prints each file when read,
    nothing else: messages go to standard error."""
    import resource
    from pickle import UnpicklingError

    largest = max(Path(file).stat().st_size for file, _ in pairs)
    memory = (8 << 30) + 4 * largest  # torch itself maps some of it
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for file, folder in pairs:
        try:
            Path(folder).mkdir(parents=True)
            convert(Path(file), Path(folder))
        except RefusedError as error:
            message = str(error)
        except (UnpicklingError, RuntimeError, MemoryError, EOFError, LookupError, ValueError) as e:
            first = (str(e).splitlines() or [""])[0]
            message = f"cannot be read as tensors ({type(e).__name__}: {first})."
        else:
            print(file, flush=True)
            continue
        print(f"{file}: {message}", file=sys.stderr)
        return REFUSED
    return 0


if __name__ == "__main__":
    sys.exit(main(orjson.loads(sys.stdin.buffer.read())))
