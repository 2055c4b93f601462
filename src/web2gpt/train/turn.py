"""When the nodes of a launch begin: together, once the first one holds the work folder.

The first node waits for the lease as long as another training holds it. Ranks that others started
meanwhile would wait for it inside a rendezvous that has an end; so the others wait for a file, of
this launch alone, that the first one leaves beside the work folder.
"""

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from web2gpt.train.nodes import Nodes

POLL = 0.5  # seconds between looks


@contextmanager
def leading(work: Path, nodes: Nodes) -> Iterator[None]:
    """For the owner of the folder ``work``: the other nodes of its launch begin.

    What earlier launches left goes; a launch that fails leaves its file, for a node that is late.
    """
    if nodes.count > 1:
        for old in work.parent.glob(f"{work.name}_launch_*"):
            old.unlink(missing_ok=True)
        _flag(work, nodes).touch()
    yield
    if nodes.count > 1:
        _flag(work, nodes).unlink(missing_ok=True)


def turn_comes(
    work: Path, nodes: Nodes, asked: Callable[[], bool], is_over: Callable[[], bool]
) -> bool:
    """For the other nodes: wait for the first. False if asked to stop, or all is done already."""
    while not _flag(work, nodes).exists():
        if asked() or is_over():
            return False
        time.sleep(POLL)
    return True


def _flag(work: Path, nodes: Nodes) -> Path:
    return work.with_name(f"{work.name}_launch_{re.sub(r'[^0-9A-Za-z.]', '_', nodes.launch)}")
