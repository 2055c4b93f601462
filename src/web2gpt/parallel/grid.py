"""The process grid: which ranks share a layer, form a pipeline, or hold replicas.

Ranks are numbered pipeline-major, then data, then tensor, so that a layer's ranks are neighbours:
rank = (pipeline_rank * data + data_rank) * tensor + tensor_rank. DeepSpeed's grid has the same
order and serves as its ``mpu``.
"""

from dataclasses import dataclass
from typing import Any, Self

import torch
import torch.distributed as dist

from web2gpt.config.training import Parallel
from web2gpt.parallel.communication import TensorGroup


@dataclass(frozen=True)
class Grid:
    """This process's place.

    ``data_group``: the replicas of what it holds. ``model_group``: all tensor and pipeline ranks
    of its replica. ``tied_group``: the stages that hold a copy of the token embedding, the first
    and the last. Each is None where there is nobody else in it.
    """

    layout: Parallel
    rank: int
    pipeline_rank: int
    data_rank: int
    tensor: TensorGroup
    data_group: Any
    model_group: Any
    tied_group: Any

    @classmethod
    def of(cls, layout: Parallel) -> Self:
        """Lay the running process group out. Collective; the world must have the layout's size."""
        shape = (layout.pipeline, layout.data, layout.tensor)
        ranks = torch.arange(layout.pipeline * layout.data * layout.tensor).view(shape)
        rank = dist.get_rank()
        pipeline_rank, data_rank, tensor_rank = (ranks == rank).nonzero()[0].tolist()
        sharers = _own_group(ranks.flatten(0, 1), rank)
        return cls(
            layout,
            rank,
            pipeline_rank,
            data_rank,
            TensorGroup.of(
                sharers,
                tensor_rank,
                layout.tensor,
                sequence=layout.sequence and layout.tensor > 1,
            ),
            _own_group(ranks.transpose(1, 2).flatten(0, 1), rank),
            _own_group(ranks.transpose(0, 1).flatten(1), rank),
            _own_group(ranks[[0, -1]].flatten(1).t(), rank) if layout.pipeline > 1 else None,
        )

    @property
    def is_last_stage(self) -> bool:
        return self.pipeline_rank == self.layout.pipeline - 1


def _own_group(rows: torch.Tensor, rank: int) -> Any:
    """One group for each row of ranks; the one that ``rank`` is in (None if it is alone there)."""
    own = None
    for row in rows.tolist():
        group = dist.new_group(row) if len(row) > 1 else None
        if rank in row:
            own = group
    return own
