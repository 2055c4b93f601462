"""Signs of life: each rank notes step and time in shared memory; the launcher reads them.

A rank beats whenever it takes a micro-batch, ends a step, or ends a part of a save. A hung
collective stops all beats of a node, as ranks wait for each other at every step.
"""

import mmap
import struct
import time
from pathlib import Path
from typing import Self

START = 300.0  # seconds more that ranks have until one of them has beaten
ASLEEP = 5.0  # seconds between two looks, after which the one who looks was stopped itself
_RECORD = struct.Struct("dq")  # monotonic seconds, the same clock for all processes; step
_UNBORN = -1


class Pulse:
    """The beats of a node's ranks, by their number on the node."""

    def __init__(self, path: Path):
        with path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), 0)

    @classmethod
    def create(cls, path: Path, ranks: int) -> Self:
        """Make the file, for ranks that are about to start."""
        path.write_bytes(_RECORD.pack(time.monotonic(), _UNBORN) * ranks)
        return cls(path)

    def beat(self, rank: int, step: int) -> None:
        _RECORD.pack_into(self._map, rank * _RECORD.size, time.monotonic(), step)

    def step(self, rank: int) -> int:
        """The step that a rank was last seen at; 0 before the first."""
        step: int = _RECORD.unpack_from(self._map, rank * _RECORD.size)[1]
        return max(0, step)

    def silence(self) -> float:
        """Seconds since any rank's last beat; fewer while all are starting."""
        records = list(_RECORD.iter_unpack(self._map[:]))
        beaten = [seen for seen, step in records if step != _UNBORN]
        last: float = max(beaten) if beaten else records[0][0] + START
        return time.monotonic() - last


class Watch:
    """The launcher's side of it: silence as it heard it.

    Time in which it was stopped itself, as a whole job is by ``scontrol suspend``, does not count.
    """

    def __init__(self, pulse: Pulse):
        self._pulse = pulse
        self._looked = self._awake = time.monotonic()

    def silence(self) -> float:
        """Seconds for which no rank has beaten; to be asked often."""
        now = time.monotonic()
        if now - self._looked > ASLEEP:
            self._awake = now
        self._looked = now
        return min(self._pulse.silence(), now - self._awake)


class Heart:
    """One rank's side of it."""

    def __init__(self, pulse: Pulse, rank: int):
        self._pulse, self._rank = pulse, rank
        self.step = 0

    def beat(self) -> None:
        self._pulse.beat(self._rank, self.step)
