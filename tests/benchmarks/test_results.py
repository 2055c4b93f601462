"""What GPUs said, as it is committed, against what is worked out without one."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from train_case import Case, stage_of

from web2gpt.train.memory import Case as MemoryCase
from web2gpt.train.memory import worst_memory

RESULTS = Path(__file__).parent / "results"
MENDED = ("4-before-smaller-blocks.jsonl", "345M ours:micro_batch_size=8,recompute=full")


def peaks() -> Iterator[Any]:
    """Each case of this trainer of which a peak was measured; one took more than it does now."""
    for path in sorted(RESULTS.glob("*h200/*.jsonl")):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            result = json.loads(line)
            ours = "estimate_bytes" in result and result["estimate_bytes"]
            if ours and (path.name, result["case"]) != MENDED:
                name = f"{path.parent.name}/{path.name}:{number}"
                yield pytest.param(result, id=f"{name} {result['case']}")


@pytest.mark.parametrize("result", list(peaks()))
def test_the_estimate_is_within_a_twentieth_of_every_peak_that_was_measured(
    result: dict[str, Any],
) -> None:
    case = Case(**{"lr": 3e-4, **result["settings"]})  # the first results do not name it
    stage = stage_of(case)
    memory = worst_memory(MemoryCase(stage.model, stage.parallel, stage.train, case.vocab_size))
    assert memory.allocated == pytest.approx(result["peak_bytes"], rel=0.05)


def test_there_are_peaks_of_every_kind_of_layout() -> None:
    layouts = {param.values[0]["settings"]["layout"] for param in peaks()}
    assert {"1x1x1-1", "1x1x2-1", "1x1x2-2", "1x1x2-3", "2x1x1-1", "1x2x1-1"} <= layouts
