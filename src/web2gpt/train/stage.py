"""The stage train: from the sample index to a finished run of checkpoints.

Holds the work folder's lease while the ranks run, so that a run never trains twice at once, and
publishes done.json, metrics.jsonl and tensorboard/ together at the end.
"""

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from web2gpt.checkpoint.identity import deciding, identity_of, record_identity
from web2gpt.config.derive import world_size
from web2gpt.config.train_stage import TrainStage
from web2gpt.config.versions import VERSIONS
from web2gpt.errors import ConfigError, InputError
from web2gpt.io.atomic import TEMPORARY, read_json
from web2gpt.io.checksums import checksum
from web2gpt.io.made import made_by
from web2gpt.io.work import WorkFolder
from web2gpt.train.attempts import remembered
from web2gpt.train.device import choose_device
from web2gpt.train.job import CURVES, DONE, METRICS, Job
from web2gpt.train.launcher import RankError, Ranks, following_requests, run_ranks
from web2gpt.train.nodes import Nodes
from web2gpt.train.origin import check_origin, origin
from web2gpt.train.tracker import check_tracker
from web2gpt.train.turn import leading, turn_comes


@dataclass(frozen=True)
class TrainFiles:
    """Where the stage reads and writes. ``output`` is the folder of what is published."""

    index: Path
    tokenizer: Path
    output: Path
    checkpoints: Path
    work: Path
    documents: Mapping[str, str] = field(default_factory=dict)  # documents.parquet by dataset


def train_run(files: TrainFiles, stage: TrainStage, attempt: int = 1) -> bool:
    """Run the stage. False if it was stopped on request, and can be carried on.

    ``attempt``: tries in a row, this one counted; see ``train.attempts``.
    """
    # Beside the work folder, not in it: that is its owner's alone.
    error = files.work.with_name(f"{files.work.name}_error.json")
    with remembered(error, attempt), following_requests() as ranks:
        job, decides = _plan(files, stage, nodes := Nodes.of())
        folder = WorkFolder(files.work, _mapping(job))
        if nodes.rank > 0:
            return _help(job, nodes, ranks, lambda: folder.is_published(_published(files.output)))
        with folder as work:
            if not work.is_published(_published(files.output)):
                news = record_identity(files.checkpoints, decides)
                if news:
                    print(f"train: {news}", flush=True)
                if not _run(job, nodes, ranks):
                    return False
                _publish(work, job, files.output)
    print(_summary(read_json(files.output / DONE)), flush=True)
    return True


def _plan(files: TrainFiles, stage: TrainStage, nodes: Nodes) -> tuple[Job, dict[str, Any]]:
    """The job, and what decides its weights. Raises before anything has been started or written."""
    nodes.share(world_size(stage.parallel))
    device = choose_device(stage.train, stage.parallel, nodes=nodes.count)
    check_tracker(stage.train)
    manifest = read_manifest(files, stage)
    decides = deciding(stage, manifest, origin(stage.train))
    check_origin(stage.train, decides)
    identity = identity_of(decides)
    vocab_size = manifest["tokenizer"]["vocab_size"]
    run_folder = files.checkpoints / identity
    job = Job(
        stage, files.index, vocab_size, identity, run_folder, files.work, device, files.documents
    )
    return job, decides


def _run(job: Job, nodes: Nodes, ranks: Ranks) -> bool:
    """Run the ranks; a draft that a failed save left behind does not fill the disk any longer."""
    try:
        with leading(job.work, nodes):
            return run_ranks(job, nodes, ranks)
    except RankError:
        for draft in job.run_folder.glob(f"{TEMPORARY}step_*"):
            shutil.rmtree(draft, ignore_errors=True)
        raise


def read_manifest(files: TrainFiles, stage: TrainStage) -> Mapping[str, Any]:
    """The index's manifest. Raises ``InputError`` if it does not fit tokenizer or model."""
    with made_by("index", files.index):
        manifest: Mapping[str, Any] = read_json(files.index)
        length = manifest["settings"]["sequence_length"]
    if length != stage.model.n_positions:
        raise ConfigError(
            f"model.n_positions = {stage.model.n_positions}, but {files.index} was made for "
            f"{length}; run index again"
        )
    _check_tokenizer(files, manifest)
    return manifest


def _check_tokenizer(files: TrainFiles, manifest: Mapping[str, Any]) -> None:
    with made_by("tokenizer", files.tokenizer):
        found = checksum(files.tokenizer)
    if found != manifest["tokenizer"]["blake2b"]:
        raise InputError(
            f"{files.tokenizer}: not the tokenizer that {files.index} was made with; "
            "run index again"
        )


def _published(output: Path) -> list[Path]:
    return [output / DONE, output / METRICS, *sorted((output / CURVES).glob("*"))]


def _publish(work: WorkFolder, job: Job, output: Path) -> None:
    """Move done.json to its place, and copies of the curves."""
    work.check()
    shutil.rmtree(output / CURVES, ignore_errors=True)
    shutil.copyfile(job.run_folder / METRICS, work.path / METRICS)
    shutil.copytree(job.run_folder / CURVES, work.path / CURVES, dirs_exist_ok=True)
    files = {work.path / name: output / name for name in (METRICS, DONE)}
    for path in sorted((work.path / CURVES).iterdir()):
        files[path] = output / CURVES / path.name
    work.publish(files)


def _mapping(job: Job) -> dict[str, Any]:
    """What makes the work folder's contents this job's."""
    return {
        "stage": "train",
        "version": VERSIONS["train"],
        "identity": job.identity,
        "settings": job.stage.model_dump(mode="json"),
    }


def _help(job: Job, nodes: Nodes, ranks: Ranks, is_over: Callable[[], bool]) -> bool:
    """A node after the first: its ranks only; lease and results are the first node's.

    It ends too when the first finds that the work was done, or done by another meanwhile.
    """
    if not turn_comes(job.work, nodes, lambda: ranks.asked, is_over):
        return not ranks.asked
    # Beside the work folder, not in it: its owner empties it when it begins another job.
    own = replace(job, work=job.work.with_name(f"{job.work.name}_node_{nodes.rank:04d}"))
    own.work.mkdir(parents=True, exist_ok=True)
    return run_ranks(own, nodes, ranks, is_over)


def _summary(done: Mapping[str, Any]) -> str:
    losses = (("loss", done["loss"]), ("validation loss", done["valid_loss"]))
    said = "".join(f", {name} {loss:.4f}" for name, loss in losses if loss is not None)
    return (
        f"train: step {done['step']:,}, {done['tokens']:,} tokens{said}, "
        f"{done['seconds']:,.0f} s; {done['checkpoint']}"
    )
