"""Groups of processes for the distributed tests, started once and used for many layouts.

Python's fork server imports torch and deepspeed once; each rank is a fork of it, ready in tenths of
a second. One group for each world size lives as long as the test session. A group in which a rank
failed or hung is killed, because its other ranks wait for each other; the next use starts anew.
"""

import gc
import multiprocessing
import os
import socket
import traceback
from collections.abc import Callable
from multiprocessing import forkserver
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any
from unittest.mock import patch

CONTEXT = multiprocessing.get_context("forkserver")
PRELOAD = ["torch", "torch._dynamo", "deepspeed", "deepspeed.pipe", "rank_tasks"]
PATIENCE = 400.0  # seconds; on a busy machine eight ranks that wait for each other are slow


class RankError(AssertionError):
    """A rank raised; carries its traceback."""


class World:
    """``size`` ranks over gloo. ``run(function, *arguments)`` calls it on each, gives all results.

    ``function`` must be importable by name from a module in this folder.
    """

    def __init__(self, size: int):
        self.size = size
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
        self.ranks = []
        for rank in range(size):
            here, there = CONTEXT.Pipe()
            process = CONTEXT.Process(target=serve, args=(there, rank, size, port), daemon=True)
            process.start()
            there.close()
            self.ranks.append((process, here))

    def run(self, function: Callable[..., Any], *arguments: Any) -> list[Any]:
        for _, pipe in self.ranks:
            pipe.send((function, arguments))
        results: dict[int, Any] = {}
        numbers = {id(pipe): rank for rank, (_, pipe) in enumerate(self.ranks)}
        waiting = [pipe for _, pipe in self.ranks]
        while waiting:
            ready = wait(waiting, timeout=PATIENCE)
            if not ready:
                self.kill()
                raise RankError(f"ranks {[numbers[id(pipe)] for pipe in waiting]} hang")
            for pipe in ready:
                assert isinstance(pipe, Connection)
                rank = numbers[id(pipe)]
                try:
                    failure, results[rank] = pipe.recv()
                except EOFError:
                    failure = "died"
                if failure:
                    self.kill()
                    raise RankError(f"rank {rank}: {failure}")
                waiting.remove(pipe)
        return [results[rank] for rank in range(self.size)]

    @property
    def is_alive(self) -> bool:
        return all(process.is_alive() for process, _ in self.ranks)

    def kill(self) -> None:
        for process, _ in self.ranks:
            process.kill()
            process.join()


class Worlds:
    """``worlds[4]`` is the living group of four ranks."""

    def __init__(self) -> None:
        self._worlds: dict[int, World] = {}

    def __getitem__(self, size: int) -> World:
        world = self._worlds.get(size)
        if world is None or not world.is_alive:
            world = self._worlds[size] = World(size)
        return world

    def kill(self) -> None:
        for world in self._worlds.values():
            world.kill()


def start_fork_server(folder: Path, accelerator: str = "cpu") -> None:
    """Start what ranks are forked from, in an environment that is theirs alone; before any rank."""
    CONTEXT.set_forkserver_preload(PRELOAD)
    environment = {
        "DS_ACCELERATOR": accelerator,
        "OMP_NUM_THREADS": "1",
        "TORCH_EXTENSIONS_DIR": str(folder),
        "CXX": "/bin/false",
    }
    with patch.dict(os.environ, environment):
        forkserver.ensure_running()


def serve(pipe: Connection, rank: int, size: int, port: int) -> None:
    """A rank's life: join the group, then do as told until killed."""
    os.environ.update(
        RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(size), LOCAL_SIZE=str(size)
    )
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    import torch.distributed as dist
    from deepspeed.accelerator.cpu_accelerator import CPU_Accelerator

    from web2gpt.parallel.processes import join, meeting_by_address

    # DeepSpeed asks for fp16 in hardware; torch computes it on any CPU, only slowly.
    CPU_Accelerator.is_fp16_supported = lambda self: True
    join(meeting_by_address(f"127.0.0.1:{port}", rank, size), rank, size, threads=1)
    world = dist.group.WORLD
    while True:
        try:
            function, arguments = pipe.recv()
        except EOFError:
            return
        try:
            answer = None, function(*arguments)
        except BaseException:  # noqa: BLE001 - whatever a rank met, it tells
            answer = traceback.format_exc(), None
        let_go_of_groups(world)
        pipe.send(answer)


def let_go_of_groups(world: Any) -> None:
    """Destroy the groups that a layout made, and forget them where they are still known: each has
    threads of its own, which wake now and then, and on a GPU memory too."""
    import torch.distributed as dist
    from deepspeed.utils import groups
    from torch.distributed.distributed_c10d import _world

    from web2gpt.parallel import communication

    groups._WORLD_GROUP = None
    communication._groups.clear()
    gc.collect()
    for group in list(_world.pg_map):
        if group is not world:
            dist.destroy_process_group(group)
