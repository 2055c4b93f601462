"""What follows from the configuration: shards, world size, accumulation, padded vocabulary.

Here only, so that no number is worked out twice.
"""

from dataclasses import dataclass
from typing import Self

from web2gpt.config.combinations import check_combination
from web2gpt.config.length import batch_sizes
from web2gpt.config.training import Model, Parallel, Train

MOST_RAMPUP_SIZES = 10_000


@dataclass(frozen=True)
class BatchPlan:
    """How a global batch is made up."""

    micro_batch_size: int
    data: int
    accumulation: int

    @classmethod
    def of(cls, train: Train, parallel: Parallel, batch_size: int | None = None) -> Self:
        """For the full global batch, or for ``batch_size`` of the ramp-up."""
        share = train.micro_batch_size * parallel.data
        size = train.global_batch_size if batch_size is None else batch_size
        return cls(train.micro_batch_size, parallel.data, size // share)

    @property
    def global_batch_size(self) -> int:
        return self.micro_batch_size * self.data * self.accumulation

    def equation(self) -> str:
        return (
            f"global batch {self.global_batch_size} = micro-batch {self.micro_batch_size} "
            f"x data {self.data} x accumulation {self.accumulation}"
        )


def world_size(parallel: Parallel) -> int:
    """Processes of the layout."""
    return parallel.tensor * parallel.pipeline * parallel.data


def world_equation(parallel: Parallel) -> str:
    return (
        f"processes {world_size(parallel)} = tensor {parallel.tensor} "
        f"x pipeline {parallel.pipeline} x data {parallel.data}"
    )


def padded_vocab_size(vocab_size: int, model: Model, parallel: Parallel) -> int:
    """The vocabulary's size rounded up so that each tensor rank gets whole, aligned rows."""
    multiple = model.vocab_multiple * parallel.tensor
    return -(-vocab_size // multiple) * multiple


def check_layout(model: Model, parallel: Parallel, train: Train) -> None:
    """Raise ``ValueError`` if the layout does not divide model and batch, is not ``processes``, or
    is no combination that trains rightly.

    For sections that are valid in themselves.
    """
    if train.processes not in (None, world_size(parallel)):
        raise ValueError(
            f"train.processes = {train.processes}, but {world_equation(parallel)}; "
            "change one of them"
        )
    if world_size(parallel) % train.nodes:
        raise ValueError(
            f"train.nodes = {train.nodes} does not divide the processes: "
            f"{world_equation(parallel)}; change one of them"
        )
    for name, value in (("model.n_head", model.n_head), ("model.n_embd", model.n_embd)):
        if value % parallel.tensor:
            raise ValueError(
                f"parallel.tensor = {parallel.tensor} does not divide {name} = {value}; "
                f"take a divisor of {value}, such as {_divisor(value, parallel.tensor)}"
            )
    if parallel.sequence and model.n_positions % parallel.tensor:
        raise ValueError(
            f"parallel.sequence: parallel.tensor = {parallel.tensor} does not divide "
            f"model.n_positions = {model.n_positions}; set parallel.sequence to false"
        )
    if parallel.pipeline > model.n_layer:
        raise ValueError(
            f"parallel.pipeline = {parallel.pipeline} is more than model.n_layer = "
            f"{model.n_layer}; a stage needs a layer: take {model.n_layer} or fewer"
        )
    check_combination(train, parallel)
    _check_batches(train, parallel)


def _check_batches(train: Train, parallel: Parallel) -> None:
    micro, data = train.micro_batch_size, parallel.data
    start, full = train.rampup_start, train.global_batch_size
    if start is not None and start > full:
        raise ValueError(
            f"train.rampup_start = {start} is more than global_batch_size = {full}; start with less"
        )
    if start is not None and parallel.offload:
        raise ValueError(
            "train.rampup_start: with parallel.offload the number of micro-batches is fixed; "
            "set one of them to null or false"
        )
    if start is not None and (full - start) // train.rampup_increment > MOST_RAMPUP_SIZES:
        raise ValueError(
            f"train.rampup_increment = {train.rampup_increment} from {start} to {full} makes more "
            f"than {MOST_RAMPUP_SIZES:,} sizes of batch; grow by more"
        )
    for size in [full, *batch_sizes(train)]:
        if size % (micro * data):
            name = "global_batch_size =" if size == full else "rampup_start, rampup_increment:"
            raise ValueError(
                f"train.{name} {size} is not a multiple of micro_batch_size {micro} x data {data} "
                f"= {micro * data}; {_way_out(size, train, parallel)}"
            )


def _way_out(size: int, train: Train, parallel: Parallel) -> str:
    """What to do about a global batch that does not divide."""
    share = train.micro_batch_size * parallel.data
    if size != train.global_batch_size:
        return f"take multiples of {share} for both"
    around = [near for near in (size // share * share, -(-size // share) * share) if near]
    ways = [f"{' or '.join(map(str, around))} works"]
    if size % parallel.data == 0:
        ways.append(f"micro_batch_size {_divisor(size // parallel.data, train.micro_batch_size)}")
    return ", or ".join(ways)


def _divisor(number: int, most: int) -> int:
    """The largest divisor of ``number`` that is no more than ``most``."""
    return next(part for part in range(min(number, most), 0, -1) if number % part == 0)


def shard_names(source: str, shards: int) -> list[str]:
    """The shards of a source; those of all URL sources together are named ``urls``."""
    return [f"{source}-{number:04d}" for number in range(shards)]
