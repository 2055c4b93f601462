"""The model that leaves here is the one that was trained, whatever the layout."""

import json
from pathlib import Path
from typing import Any

import cells
import numpy as np
import pytest
import rank_tasks
import torch
from cells import Cell
from pool import Worlds
from safetensors.torch import load_file
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import GPT2LMHeadModel

from web2gpt.checkpoint.load import newest_checkpoint
from web2gpt.checkpoint.merge import MergeFiles, merge_checkpoint
from web2gpt.checkpoint.open import ModelFiles
from web2gpt.config.outputs import MergeCheckpoint
from web2gpt.evaluate.measure import measure

STEPS = 3
LAYOUTS = [
    Cell(),
    Cell(tensor=2, zero=0),
    Cell(pipeline=2),
    Cell(data=2, zero=3),
    Cell(tensor=2, pipeline=2),
]


LONG = [Cell(tensor=4), Cell(pipeline=4, micro=1), Cell(tensor=2, data=2, zero=2)]


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    ids = {"<|endoftext|>": 0} | {f"w{number}": number for number in range(1, cells.VOCAB)}
    words = Tokenizer(models.WordLevel(ids, unk_token="<|endoftext|>"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    path = tmp_path_factory.mktemp("tokenizer") / "tokenizer.json"
    words.save(str(path))
    return path


@pytest.fixture(scope="module")
def losses() -> dict[str, float]:
    """What each layout's model is worth on the same tokens."""
    return {}


def evaluation(files: ModelFiles) -> float:
    stream = np.arange(400) ** 2 * 7 % cells.VOCAB
    gpt2 = files.open().gpt2
    return measure(gpt2, [stream], length=cells.MODEL.n_positions, batch_size=4).mean_loss


@pytest.mark.parametrize(
    "cell", [*LAYOUTS, *(pytest.param(cell, marks=pytest.mark.long) for cell in LONG)], ids=str
)
def test_transformers_computes_the_trainers_logits_and_evaluation_sees_no_layout(
    worlds: Worlds, tmp_path: Path, tokenizer: Path, losses: dict[str, Any], cell: Cell
) -> None:
    worlds[cell.size].run(rank_tasks.save_then_go_on, cell, tmp_path, STEPS, 0)
    folder, _ = newest_checkpoint(tmp_path)
    assert folder is not None
    (tmp_path / "done.json").write_text(json.dumps({"checkpoint": str(folder)}))
    files = MergeFiles(tmp_path / "done.json", tokenizer, tmp_path / "model", tmp_path / "work")
    merge_checkpoint(files, MergeCheckpoint(verify="logits"))
    theirs, info = GPT2LMHeadModel.from_pretrained(tmp_path / "model", output_loading_info=True)
    assert not info["missing_keys"] and not info["unexpected_keys"]
    reference = load_file(folder / "reference.safetensors")
    with torch.no_grad():
        logits = theirs.eval()(reference["tokens"]).logits
    torch.testing.assert_close(logits, reference["logits"], atol=1e-4, rtol=0)
    straight = evaluation(ModelFiles(folder, tokenizer))
    assert straight == evaluation(ModelFiles(tmp_path / "model"))
    losses[str(cell)] = straight
    assert straight == pytest.approx(next(iter(losses.values())), rel=1e-6)
