"""The starts of a run, noted beside its checkpoints: what the report counts restarts by."""

import time
from pathlib import Path

import orjson

from web2gpt.train.job import Job
from web2gpt.train.memory import Case, worst_memory

STARTS = "starts.jsonl"


def note_start(job: Job, step: int) -> None:
    """Append a row: the step that is gone on from, the time, the memory that is expected.

    ``estimated_bytes`` is what torch should allocate on the fullest rank (docs/estimate.md).
    """
    stage = job.stage
    memory = worst_memory(Case(stage.model, stage.parallel, stage.train, job.vocab_size))
    row = {"step": step, "time": round(time.time(), 3), "estimated_bytes": int(memory.allocated)}
    path: Path = job.run_folder / STARTS
    with path.open("ab") as file:
        file.write(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE))
